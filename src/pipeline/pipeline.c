/* pipeline.c - what each captured event does; see pipeline.h.
 *
 * Invariants:
 * - events come in time order, so the maps are those of the sample's instant;
 * - a process is known before its first sample is unwound: from its parent's
 *   fork, from pipeline_attach/expect, or, where that was lost, from /proc;
 * - everything a batch points to (modules, codes) lives until the writer has
 *   ended.
 */
#include "src/pipeline/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/hold.h"
#include "src/pipeline/intern.h"
#include "src/pipeline/keep.h"
#include "src/pipeline/process.h"
#include "src/pipeline/tasks.h"
#include "src/pipeline/writer.h"
#include "unwind/stitch/stitch.h"

enum { MAX_COMMAND_BYTES = 4096, MAX_NAME_BYTES = 64 };

struct known_thread {
	pid_t pid, tid;
	char name[32];
	uint64_t started_ns, ended_ns;
	uint64_t stack_start, stack_noted_ns; /* as the capture was told last; 0: it was not */
	bool is_new;
};

struct pipeline {
	struct processes processes;
	struct known_thread *threads;
	size_t n_threads, threads_allocated;
	struct id_map thread_index; /* tid -> index */
	struct stitcher *stitcher;
	struct memory_stitcher *memory_stitcher; /* NULL: not needed yet */
	struct native_stack native;
	struct intern intern;
	struct task_frames tasks;
	bool async;
	struct keep_options keep_options;
	struct keep keep;
	struct batch *batch;
	struct writer *writer;
	struct pipeline_counts counts;
	struct stale_places stale;
	struct capture *capture; /* reads frames inside the interrupt; NULL: none does */
	uint64_t n_layouts;
	char python[64];
	int64_t to_realtime_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC at the start */
};

int pipeline_new(struct store *store, const struct pipeline_options *options, struct pipeline **ret)
{
	CLEANUP(pipeline_freep) struct pipeline *pipeline = NULL;
	int r;

	pipeline = calloc(1, sizeof *pipeline);
	if (!pipeline)
		return -ENOMEM;
	pipeline->async = options->async;
	pipeline->keep_options = options->keep;
	keep_init(&pipeline->keep, &pipeline->keep_options);
	pipeline->to_realtime_ns = (int64_t)(realtime_ns() - monotonic_ns());
	r = processes_init(&pipeline->processes);
	if (r >= 0)
		r = stitcher_new(&pipeline->stitcher);
	if (r >= 0)
		r = batch_new(&pipeline->batch);
	if (r >= 0)
		r = writer_start(store, !options->no_symbols, &pipeline->writer);
	if (r < 0)
		return r;
	*ret = TAKE(pipeline);
	return 0;
}

static void stop_writer(struct pipeline *pipeline)
{
	if (!pipeline->writer)
		return;
	writer_stop(pipeline->writer, false);
	writer_free(TAKE(pipeline->writer));
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	stop_writer(pipeline);
	batch_free(pipeline->batch);
	intern_done(&pipeline->intern);
	keep_done(&pipeline->keep);
	task_frames_done(&pipeline->tasks);
	native_stack_done(&pipeline->native);
	stitcher_free(pipeline->stitcher);
	memory_stitcher_free(pipeline->memory_stitcher);
	processes_done(&pipeline->processes);
	free(pipeline->threads);
	free(pipeline->stale.places);
	id_map_done(&pipeline->thread_index);
	free(pipeline);
}

void pipeline_freep(struct pipeline **pipeline)
{
	pipeline_free(*pipeline);
}

static void note_python(struct pipeline *pipeline, const struct process *process)
{
	if (pipeline->python[0] || !process->python[0])
		return;
	snprintf(pipeline->python, sizeof pipeline->python, "%s", process->python);
}

/* What /proc says now; the last words of a process that is gone are kept. */
static int refresh_text(char **text, pid_t pid, const char *file, size_t max_bytes)
{
	char *now = proc_text(pid, file, max_bytes);

	if (!now)
		return -ENOMEM;
	if (now[0] == '\0' && *text) {
		free(now);
		return 0;
	}
	free(*text);
	*text = now;
	return 0;
}

/* Append the row of a process that is new or has changed. */
static int put_process(struct pipeline *pipeline, struct process *process)
{
	struct new_process *row;

	note_python(pipeline, process);
	if (refresh_text(&process->name, process->pid, "comm", MAX_NAME_BYTES) < 0 ||
	    refresh_text(&process->command, process->pid, "cmdline", MAX_COMMAND_BYTES) < 0)
		return -ENOMEM;
	row = BATCH_ADD(pipeline->batch, processes);
	if (!row)
		return -ENOMEM;
	row->row = (struct process_row){
		.pid = process->pid,
		.parent_pid = process->parent_pid,
		.started_ns = process->started_ns,
		.ended_ns = process->ended_ns,
	};
	row->name = strdup(process->name);
	row->command = strdup(process->command);
	row->python = process->runtime ? strdup(process->python) : NULL;
	process->is_new = false;
	return row->name && row->command && (row->python || !process->runtime) ? 0 : -ENOMEM;
}

static int put_changed(struct pipeline *pipeline)
{
	struct processes *processes = &pipeline->processes;

	for (size_t i = 0; i < processes->n; i++)
		if (processes->processes[i]->is_new) {
			int r = put_process(pipeline, processes->processes[i]);

			if (r < 0)
				return r;
		}
	for (size_t i = 0; i < pipeline->n_threads; i++) {
		struct known_thread *thread = &pipeline->threads[i];
		struct new_thread *row;

		if (!thread->is_new)
			continue;
		thread->is_new = false;
		row = BATCH_ADD(pipeline->batch, threads);
		if (!row)
			return -ENOMEM;
		row->row = (struct thread_row){
			.pid = thread->pid,
			.tid = thread->tid,
			.started_ns = thread->started_ns,
			.ended_ns = thread->ended_ns,
		};
		memcpy(row->name, thread->name, sizeof row->name);
	}
	return 0;
}

static uint64_t to_realtime(const struct pipeline *pipeline, uint64_t monotonic)
{
	return monotonic + (uint64_t)pipeline->to_realtime_ns;
}

static struct known_thread *find_thread(const struct pipeline *pipeline, pid_t tid)
{
	const struct id_slot *slot = id_map_find(&pipeline->thread_index, (uint64_t)tid + 1);

	return slot ? &pipeline->threads[slot->id] : NULL;
}

/* The thread's index; one not seen yet, or whose number now is another process', is added. */
static int know_thread(struct pipeline *pipeline, pid_t pid, pid_t tid, uint64_t time_ns, uint32_t *ret)
{
	struct id_slot *slot = id_map_find(&pipeline->thread_index, (uint64_t)tid + 1);
	struct known_thread *thread;
	char file[32], *name;
	int r;

	if (slot && pipeline->threads[slot->id].pid == pid) {
		*ret = slot->id;
		return 0;
	}
	r = grow(&pipeline->threads, pipeline->n_threads, &pipeline->threads_allocated,
		 sizeof *pipeline->threads);
	if (r < 0)
		return r;
	if (slot)
		slot->id = (uint32_t)pipeline->n_threads;
	else
		r = id_map_add(&pipeline->thread_index, (uint64_t)tid + 1, (uint32_t)pipeline->n_threads);
	if (r < 0)
		return r;
	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	name = proc_text(pid, file, sizeof thread->name - 1);
	if (!name)
		return -ENOMEM;
	*ret = (uint32_t)pipeline->n_threads;
	thread = &pipeline->threads[pipeline->n_threads++];
	*thread = (struct known_thread){
		.pid = pid, .tid = tid, .started_ns = to_realtime(pipeline, time_ns), .is_new = true
	};
	snprintf(thread->name, sizeof thread->name, "%s", name);
	free(name);
	return 0;
}

/* ---- Generated code ---- */

/* Tell the writing thread whose anonymous code it will be asked to name: the program's, and that
 * of those it was forked from. */
static int announce(struct pipeline *pipeline, struct program *program)
{
	for (; program && !program->is_announced; program = program->parent) {
		struct new_program *row = BATCH_ADD(pipeline->batch, programs);

		if (!row)
			return -ENOMEM;
		row->id = program->id;
		row->parent = program->parent ? program->parent->id : 0;
		row->forked_ns = program->forked_ns;
		row->owner.pid = program->pid;
		generated_owner_read(program->pid, &row->owner);
		row->owner.started_ns = MAX(row->owner.started_ns, program->started_ns);
		program->is_announced = true;
	}
	return 0;
}

/*
 * A dump is opened at once, while the process is there to find it through; one that cannot be
 * opened names nothing.
 */
static int note_dump(struct pipeline *pipeline, struct process *process, const struct mapping *mapping)
{
	struct new_dump *row;
	int fd, r;

	if (!mapping || !mapping->executable || !mapping->module || !generated_is_dump_name(mapping->module->path))
		return 0;
	r = module_open_file(mapping->module, &fd);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	row = BATCH_ADD(pipeline->batch, dumps);
	if (!row) {
		closep(&fd);
		return -ENOMEM;
	}
	*row = (struct new_dump){ .program = process->program->id, .fd = fd };
	return announce(pipeline, process->program);
}

static int load_space(struct pipeline *pipeline, struct process *process)
{
	struct mapping *mapping;
	int r;

	r = address_space_load(process->space);
	for (size_t i = 0; r >= 0 && (mapping = address_space_nth(process->space, i)) != NULL; i++)
		r = note_dump(pipeline, process, mapping);
	return r;
}

/* Frames that were added since there were n_before. */
static int announce_new(struct pipeline *pipeline, struct program *program, size_t n_before)
{
	for (size_t i = n_before; !program->is_announced && i < pipeline->batch->n_frames; i++)
		if (pipeline->batch->frames[i].program != 0)
			return announce(pipeline, program);
	return 0;
}

/* A process that no event has told of: its maps come from /proc. */
static int know_process(struct pipeline *pipeline, pid_t pid, struct process **ret)
{
	struct process *process = processes_find(&pipeline->processes, pid);
	int r;

	if (!process) {
		r = processes_add(&pipeline->processes, pid, 0, &process);
		if (r < 0)
			return r;
		r = load_space(pipeline, process);
		if (r == -ENOMEM)
			return r;
	}
	*ret = process;
	return 0;
}

/* ---- Frames read inside the interrupt ---- */

void pipeline_read_inside(struct pipeline *pipeline, struct capture *capture)
{
	pipeline->capture = capture_source(capture) == SOURCE_BPF ? capture : NULL;
}

/* Have the frames of an interpreter that was found read inside the interrupt. What cannot be is read afterwards. */
static void watch(struct pipeline *pipeline, struct process *process, uint64_t now_ns)
{
	enum { RETRY_NS = 100000000 };
	struct python_layout layout;

	if (!pipeline->capture || !process->runtime || process->layout_id != 0 || now_ns < process->next_watch_ns)
		return;
	process->next_watch_ns = now_ns + RETRY_NS;
	if (py_describe(process->runtime, &layout) < 0)
		return;
	layout.id = ++pipeline->n_layouts;
	if (capture_watch_python(pipeline->capture, process->pid, &layout) >= 0)
		process->layout_id = layout.id;
}

static void forget_watched(struct pipeline *pipeline, struct process *process)
{
	if (process->layout_id != 0)
		capture_forget_python(pipeline->capture, process->pid);
	process->layout_id = 0;
}

/* Frames that were read by what is known of this program's interpreter, not of a former one's. */
static bool is_readable(const struct process *process, const struct sample *sample)
{
	return process->layout_id != 0 && sample->python->layout_id == process->layout_id;
}

int pipeline_attach(struct pipeline *pipeline, pid_t pid, char *python, size_t python_bytes,
		    int *python_error)
{
	struct process *process;
	uint32_t thread;
	int r;

	r = processes_add(&pipeline->processes, pid, 0, &process);
	if (r >= 0)
		r = load_space(pipeline, process);
	if (r >= 0)
		r = process_search_python(process, monotonic_ns());
	if (r >= 0)
		r = know_thread(pipeline, pid, pid, monotonic_ns(), &thread);
	if (r < 0)
		return r;
	watch(pipeline, process, monotonic_ns());
	snprintf(python, python_bytes, "%s", process->python);
	*python_error = process->python_error;
	if (process->runtime || *python_error == -ENOENT || *python_error == -EAGAIN)
		*python_error = 0;
	return 0;
}

int pipeline_expect(struct pipeline *pipeline, pid_t pid)
{
	struct process *process;

	return processes_add(&pipeline->processes, pid, 0, &process);
}

static void count_hold(struct pipeline_counts *counts, const struct hold *hold, uint64_t weight_ns)
{
	counts->gil_ns += hold->gil == ANSWER_YES ? weight_ns : 0;
	counts->gil_known_ns += hold->gil != ANSWER_UNKNOWN ? weight_ns : 0;
	counts->gc_ns += hold->gc == ANSWER_YES ? weight_ns : 0;
	counts->gc_known_ns += hold->gc != ANSWER_UNKNOWN ? weight_ns : 0;
}

static void count(struct pipeline *pipeline, const struct sample *sample, const struct stack *stack,
		  const struct hold *hold)
{
	struct pipeline_counts *counts = &pipeline->counts;

	count_hold(counts, hold, sample->weight_ns);

	if (counts->samples++ == 0)
		counts->first_sample_ns = sample->time_ns;
	counts->weight_ns += sample->weight_ns;
	counts->by_verdict[stack->verdict]++;
	counts->by_end[stack->end]++;
	counts->of_32_bit += sample->is_32_bit;
	counts->python_cut += stack->python_cut;
}

/* Other code lies there now: what is sampled there from now on is another frame. */
static int forget_replaced(struct pipeline *pipeline)
{
	struct stale_places *stale = &pipeline->stale;
	int r;

	if (!writer_has_stale(pipeline->writer))
		return 0;
	r = writer_take_stale(pipeline->writer, stale);
	for (size_t i = 0; i < stale->n; i++)
		intern_forget(&pipeline->intern, stale->places[i].program, stale->places[i].address);
	stale->n = 0;
	return r;
}

static int put_sample(struct pipeline *pipeline, const struct sample *sample, struct process *process,
		      struct stack *stack, const struct hold *hold)
{
	struct stack_origin origin = { .program = process->program->id, .time_ns = sample->time_ns };
	size_t n_before = pipeline->batch->n_frames;
	struct sample_row *row;
	uint32_t thread, id;
	int r;

	if (!keep_wants_sample(&pipeline->keep, stack, hold)) {
		pipeline->counts.left_out++;
		return 0;
	}
	keep_trim(&pipeline->keep, stack);
	r = know_thread(pipeline, sample->pid, sample->tid, sample->time_ns, &thread);
	if (r >= 0)
		r = intern_stack(&pipeline->intern, pipeline->batch, stack, &origin, &id);
	if (r >= 0)
		r = announce_new(pipeline, process->program, n_before);
	if (r < 0)
		return r;
	row = BATCH_ADD(pipeline->batch, samples);
	if (!row)
		return -ENOMEM;
	*row = (struct sample_row){
		.time_ns = to_realtime(pipeline, sample->time_ns),
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
		.weight_ns = sample->weight_ns,
		.verdict = stack->verdict,
		.end = stack->end,
		.stack = id,
		.gil = hold->gil,
		.gc = hold->gc,
	};
	count(pipeline, sample, stack, hold);
	return intern_total(&pipeline->intern, pipeline->batch, thread, row);
}

static int add_tasks(struct pipeline *pipeline, struct process *process, const struct sample *sample,
		     struct stack *stack)
{
	if (!process->runtime || (!sample->has_user && !sample->is_polled))
		return 0;
	py_asyncio_look(process->runtime, process->space);
	return task_frames_add(&pipeline->tasks, process->runtime, sample->tid, stack);
}

/* Whether a sample's thread was asked for; one that was not costs no more than this. */
static bool is_wanted(struct pipeline *pipeline, const struct process *process, const struct sample *sample)
{
	if (keep_wants_thread(&pipeline->keep, process->runtime, sample->pid, sample->tid, sample->time_ns))
		return true;
	pipeline->counts.left_out++;
	return false;
}

/* Nothing was captured of it. */
static int take_polled(struct pipeline *pipeline, const struct sample *sample)
{
	struct process *process;
	struct stack stack;
	struct hold hold;
	int r = 0;

	if (!pipeline->memory_stitcher)
		r = memory_stitcher_new(&pipeline->memory_stitcher);
	if (r >= 0)
		r = know_process(pipeline, sample->pid, &process);
	if (r >= 0)
		r = process_search_unaided(process, sample->time_ns);
	if (r >= 0 && !is_wanted(pipeline, process, sample))
		return 0;
	if (r >= 0)
		r = stitch_memory(pipeline->memory_stitcher, sample->is_elsewhere ? NULL : process->runtime,
				  sample->tid, &stack);
	if (r >= 0)
		hold_read(process->runtime, sample, &stack, &hold);
	if (r >= 0 && pipeline->async && !sample->is_elsewhere)
		r = add_tasks(pipeline, process, sample, &stack);
	return r < 0 ? r : put_sample(pipeline, sample, process, &stack, &hold);
}

/*
 * Of a thread whose stack's beginning is known, samples need not be read at once, where frames are read inside
 * the interrupt. One that runs on several stacks in turns is not told of each time.
 */
static void note_stack(struct pipeline *pipeline, const struct sample *sample)
{
	enum { RENOTE_NS = 100000000 };
	const struct native_stack *stack = &pipeline->native;
	struct known_thread *thread = find_thread(pipeline, sample->tid);
	uint64_t start = stack->n_frames > 0 ? stack->frames[stack->n_frames - 1].cfa : 0;

	if (!thread || start == 0 || start == thread->stack_start ||
	    (stack->end != STACK_COMPLETE && stack->end != STACK_COMPLETED) ||
	    sample->time_ns - thread->stack_noted_ns < RENOTE_NS)
		return;
	capture_note_stack(pipeline->capture, sample->tid, start);
	thread->stack_start = start;
	thread->stack_noted_ns = sample->time_ns;
}

static int take_sample(struct pipeline *pipeline, const struct sample *captured)
{
	struct sample copy = *captured, *sample = &copy;
	struct process *process;
	struct stack stack;
	struct hold hold;
	int r;

	r = know_process(pipeline, sample->pid, &process);
	if (r >= 0)
		r = process_search_python(process, sample->time_ns);
	if (r >= 0 && !is_wanted(pipeline, process, sample))
		return 0;
	if (r >= 0)
		r = forget_replaced(pipeline);
	if (r < 0)
		return r;
	watch(pipeline, process, sample->time_ns);
	if (sample->python && !is_readable(process, sample))
		sample->python = NULL;
	r = native_unwind(process->native, sample, process->remote, &pipeline->native);
	if (r >= 0)
		r = stitch(pipeline->stitcher, process->space, process->runtime, &pipeline->native, &stack);
	if (r >= 0)
		hold_read(process->runtime, sample, &stack, &hold);
	if (r >= 0 && pipeline->async)
		r = add_tasks(pipeline, process, sample, &stack);
	if (r < 0)
		return r;
	r = put_sample(pipeline, sample, process, &stack, &hold);
	/* Tasks are read from memory, right after the sample. */
	if (r >= 0 && pipeline->capture && !pipeline->async)
		note_stack(pipeline, sample);
	return r;
}

void pipeline_expect_sample(struct pipeline *pipeline, const struct sample *sample)
{
	struct process *process = processes_find(&pipeline->processes, sample->pid);

	if (process && process->native && sample->has_user)
		native_expect(process->native, sample);
}

static int take_mmap(struct pipeline *pipeline, const struct capture_event *event)
{
	const struct mapping_source source = {
		.start = event->mmap.start,
		.end = event->mmap.end,
		.file_offset = event->mmap.file_offset,
		.executable = event->mmap.executable,
		.writable = event->mmap.writable,
		.device = event->mmap.device,
		.inode = event->mmap.inode,
		.path = event->mmap.path,
	};
	struct process *process;
	int r;

	r = know_process(pipeline, event->pid, &process);
	if (r < 0)
		return r;
	r = address_space_mapped(process->space, &source);
	if (r >= 0 && source.executable)
		r = note_dump(pipeline, process, address_space_find(process->space, source.start));
	return r == -ENOMEM ? r : 0;
}

static int take_comm(struct pipeline *pipeline, const struct capture_event *event)
{
	struct known_thread *thread = find_thread(pipeline, event->tid);
	struct process *process;
	int r;

	if (thread) {
		snprintf(thread->name, sizeof thread->name, "%s", event->comm.name);
		thread->is_new = true;
	}
	keep_forget_thread(&pipeline->keep, event->tid);
	r = know_process(pipeline, event->pid, &process);
	if (r < 0)
		return r;
	if (event->tid == event->pid)
		process->is_new = true;
	if (!event->comm.is_exec)
		return 0;
	forget_watched(pipeline, process);
	r = process_exec(&pipeline->processes, process);
	if (r >= 0)
		process->program->started_ns = to_realtime(pipeline, event->time_ns);
	return r;
}

static int take_fork(struct pipeline *pipeline, const struct capture_event *event)
{
	struct process *parent, *child;
	int r;

	if (event->pid == event->fork.parent_pid)
		return 0; /* a thread: known from its first sample on */
	r = know_process(pipeline, event->fork.parent_pid, &parent);
	if (r < 0)
		return r;
	r = processes_fork(&pipeline->processes, parent, event->pid, event->time_ns, &child);
	if (r >= 0)
		child->program->started_ns = to_realtime(pipeline, event->time_ns);
	return r;
}

static void take_exit(struct pipeline *pipeline, const struct capture_event *event)
{
	struct known_thread *thread = find_thread(pipeline, event->tid);
	struct process *process = processes_find(&pipeline->processes, event->pid);

	keep_forget_thread(&pipeline->keep, event->tid);
	if (thread) {
		thread->ended_ns = to_realtime(pipeline, event->time_ns);
		thread->is_new = true;
	}
	if (process && event->tid == event->pid) {
		forget_watched(pipeline, process);
		process_end(process);
	}
}

int pipeline_event(struct pipeline *pipeline, const struct capture_event *event)
{
	switch (event->type) {
	case CAPTURE_SAMPLE:
		return event->sample.is_polled ? take_polled(pipeline, &event->sample)
					       : take_sample(pipeline, &event->sample);
	case CAPTURE_MMAP: return take_mmap(pipeline, event);
	case CAPTURE_COMM: return take_comm(pipeline, event);
	case CAPTURE_FORK: return take_fork(pipeline, event);
	case CAPTURE_EXIT: take_exit(pipeline, event); return 0;
	case CAPTURE_LOST:
	case CAPTURE_THROTTLE: return 0; /* counted exactly where they are read */
	}
	return 0;
}

int pipeline_flush(struct pipeline *pipeline)
{
	struct batch *next;
	int r;

	r = put_changed(pipeline);
	if (r < 0)
		return r;
	if (batch_is_empty(pipeline->batch))
		return pipeline_error(pipeline);
	r = writer_get_batch(pipeline->writer, &next);
	if (r < 0)
		return r;
	writer_put_batch(pipeline->writer, pipeline->batch);
	pipeline->batch = next;
	intern_flushed(&pipeline->intern);
	return pipeline_error(pipeline);
}

int pipeline_error(const struct pipeline *pipeline)
{
	return writer_error(pipeline->writer);
}

/* What was learnt of interpreters whose functions are in the file. */
static int put_places(struct store *store, const struct pipeline *pipeline)
{
	struct stitch_place place;
	int r = 0;

	for (size_t n = 0; r >= 0 && stitcher_place(pipeline->stitcher, n, &place); n++) {
		const struct evaluation_place_row row = {
			.module = (int64_t)place.module + 1,
			.address = (int64_t)place.address,
			.holds = place.holds,
			.is_leaf = place.is_leaf,
			.below_cfa = (int64_t)place.below_cfa,
			.reg = (int)place.reg,
			.agreed = place.agreed,
			.tries = place.tries,
		};

		if (intern_knows_module(&pipeline->intern, place.module))
			r = store_put_evaluation_place(store, &row);
	}
	return r;
}

static int put_end(struct store *store, const struct pipeline *pipeline, const struct pipeline_counter *counters,
		   const char *python)
{
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = put_places(store, pipeline);
	for (; counters->name && r >= 0; counters++)
		r = store_put_counter(store, counters->name, (int64_t)counters->value);
	if (r >= 0 && python[0])
		r = store_set_run_python(store, python);
	if (r >= 0)
		r = store_commit(store);
	if (r < 0)
		store_rollback(store);
	return r;
}

int pipeline_finish(struct pipeline *pipeline, const struct pipeline_counter *counters)
{
	struct store *store;
	int r, stopped;

	r = pipeline_flush(pipeline);
	stopped = writer_stop(pipeline->writer, true);
	store = writer_take_store(pipeline->writer);
	writer_free(TAKE(pipeline->writer));
	if (r >= 0)
		r = stopped;
	if (r >= 0)
		r = put_end(store, pipeline, counters, pipeline->python);
	if (r < 0) {
		store_close(store);
		return r;
	}
	return store_finish(store, realtime_ns());
}

void pipeline_read_counts(const struct pipeline *pipeline, struct pipeline_counts *ret)
{
	*ret = pipeline->counts;
	ret->n_frames = pipeline->intern.n_frames;
	ret->n_stacks = pipeline->intern.n_stacks;
}

const char *pipeline_python(const struct pipeline *pipeline)
{
	return pipeline->python;
}

int64_t pipeline_store_bytes(const struct pipeline *pipeline)
{
	return pipeline->writer ? writer_bytes(pipeline->writer) : 0;
}
