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
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/hold.h"
#include "src/pipeline/intern.h"
#include "src/pipeline/keep.h"
#include "src/pipeline/off_cpu.h"
#include "src/pipeline/records.h"
#include "src/pipeline/process.h"
#include "src/pipeline/tasks.h"
#include "src/pipeline/wait_state.h"
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
	struct pipeline_options options;
	struct keep keep;
	struct off_cpu off_cpu;
	struct batch *batch;
	struct writer *writer;
	struct pipeline_counts counts;
	struct stale_places stale;
	struct capture *capture; /* reads frames inside the interrupt; NULL: none does */
	uint64_t n_layouts;
	uint64_t n_batches; /* handed over */
	uint64_t n_dropped; /* once the writing thread is no more */
	size_t most_tree_bytes; /* a larger tree of stacks is begun anew; 0: any */
	uint64_t paused_ns; /* CLOCK_MONOTONIC, since when; 0: it is not paused */
	char python[64];
	int64_t to_realtime_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC at the start */
};

/* What is limited in the file is limited in memory, too. A stack takes about as much here as there. */
static size_t most_tree_bytes(const struct store_limits *limits)
{
	enum { MOST_BYTES = 64 << 20, LEAST_BYTES = 256 << 10 };

	if (limits->max_bytes == 0 && limits->keep_ns == 0)
		return 0;
	if (limits->max_bytes == 0)
		return MOST_BYTES;
	return (size_t)MAX(MIN(limits->max_bytes / 2, (int64_t)MOST_BYTES), (int64_t)LEAST_BYTES);
}

static int put_stretch(void *data, const struct stretch *stretch);

static int begin_waits(struct pipeline *pipeline, enum capture_mode mode)
{
	if (mode == MODE_CPU)
		return 0;
	pipeline->off_cpu.n_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	pipeline->off_cpu.looker = (struct looker){
		.stitcher = pipeline->stitcher,
		.native = &pipeline->native,
		.memory = &pipeline->memory_stitcher,
	};
	return waits_new(mode == MODE_WALL, put_stretch, pipeline, &pipeline->off_cpu.waits);
}

int pipeline_new(struct store *store, const struct pipeline_options *options, struct pipeline **ret)
{
	CLEANUP(pipeline_freep) struct pipeline *pipeline = NULL;
	int r;

	pipeline = calloc(1, sizeof *pipeline);
	if (!pipeline)
		return -ENOMEM;
	pipeline->options = *options;
	pipeline->most_tree_bytes = most_tree_bytes(&options->limits);
	keep_init(&pipeline->keep, &pipeline->options.keep);
	pipeline->to_realtime_ns = (int64_t)(realtime_ns() - monotonic_ns());
	r = processes_init(&pipeline->processes);
	if (r >= 0)
		r = stitcher_new(&pipeline->stitcher);
	if (r >= 0)
		r = begin_waits(pipeline, options->mode);
	if (r >= 0)
		r = batch_new(&pipeline->batch);
	if (r >= 0)
		r = writer_start(store, options, &pipeline->writer);
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
	off_cpu_done(&pipeline->off_cpu);
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
	pipeline->off_cpu.began_ns = capture_began_ns(capture);
	pipeline->off_cpu.has_switch_stacks = capture_has_switch_stacks(capture);
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
	if (r >= 0)
		r = off_cpu_find_threads(&pipeline->off_cpu, pid);
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

static void count_hold(struct pipeline_counts *counts, const struct sample_row *row)
{
	counts->gil_ns += row->gil == ANSWER_YES ? row->weight_ns : 0;
	counts->gil_known_ns += row->gil != ANSWER_UNKNOWN ? row->weight_ns : 0;
	counts->gc_ns += row->gc == ANSWER_YES ? row->weight_ns : 0;
	counts->gc_known_ns += row->gc != ANSWER_UNKNOWN ? row->weight_ns : 0;
}

static void count(struct pipeline *pipeline, const struct sample_row *row, uint64_t time_ns)
{
	struct pipeline_counts *counts = &pipeline->counts;

	count_hold(counts, row);

	if (counts->samples++ == 0)
		counts->first_sample_ns = time_ns;
	counts->weight_ns += row->weight_ns;
	counts->by_verdict[row->verdict]++;
	counts->by_end[row->end]++;
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

static int keep_stack(struct pipeline *pipeline, uint64_t time_ns, struct process *process,
		      struct stack *stack, uint32_t *ret)
{
	struct stack_origin origin = { .program = process->program->id, .time_ns = time_ns };
	size_t n_before = pipeline->batch->n_frames;
	int r;

	keep_trim(&pipeline->keep, stack);
	r = intern_stack(&pipeline->intern, pipeline->batch, stack, &origin, ret);
	return r < 0 ? r : announce_new(pipeline, process->program, n_before);
}

/* What the file, or whoever takes samples instead, is told. */
static int batch_sample(struct pipeline *pipeline, uint32_t thread, const struct sample_row *sample)
{
	struct sample_row *row;

	if (pipeline->options.take_sample)
		return pipeline->options.take_sample(pipeline->options.take_data, sample);
	row = BATCH_ADD(pipeline->batch, samples);
	if (!row)
		return -ENOMEM;
	*row = *sample;
	return intern_total(&pipeline->intern, pipeline->batch, thread, row);
}

/* @row: but for its time, which is by CLOCK_MONOTONIC here. */
static int put_row(struct pipeline *pipeline, const struct sample_row *row, uint64_t time_ns)
{
	struct sample_row added = *row;
	uint32_t thread;
	int r;

	r = know_thread(pipeline, row->pid, row->tid, time_ns, &thread);
	if (r < 0)
		return r;
	added.time_ns = to_realtime(pipeline, time_ns);
	count(pipeline, row, time_ns);
	return batch_sample(pipeline, thread, &added);
}

static int put_sample(struct pipeline *pipeline, const struct sample *sample, struct process *process,
		      struct stack *stack, const struct hold *hold)
{
	struct waits *waits = pipeline->off_cpu.waits;
	struct sample_row row = {
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
		.weight_ns = sample->weight_ns,
		.verdict = stack->verdict,
		.end = stack->end,
		.state = waits ? STATE_RUNNING : STATE_NONE,
		.gil = hold->gil,
		.gc = hold->gc,
	};
	uint32_t id;
	int r = 0;

	if (!keep_wants_sample(&pipeline->keep, stack, hold)) {
		pipeline->counts.left_out++;
		return 0;
	}
	if (waits)
		r = waits_ran(waits, sample->pid, sample->tid, sample->weight_ns, sample->time_ns, &row.weight_ns);
	if (r < 0 || (waits && row.weight_ns == 0)) /* from before the beginning */
		return r;
	r = keep_stack(pipeline, sample->time_ns, process, stack, &id);
	if (r < 0)
		return r;
	row.stack = id;
	pipeline->counts.of_32_bit += sample->is_32_bit;
	pipeline->counts.python_cut += stack->python_cut;
	r = put_row(pipeline, &row, sample->time_ns);
	return r >= 0 && pipeline->options.tracepoint ? records_add(pipeline->batch, sample) : r;
}

/* ---- Waiting ---- */

/* A stretch of a thread's time becomes a row, with what it waited for as its innermost frame. */
static int put_stretch(void *data, const struct stretch *stretch)
{
	static const struct wait_stack nothing = { .verdict = VERDICT_NATIVE, .end = STACK_TRUNCATED };
	const struct wait_stack *stack = stretch->stack ? stretch->stack : &nothing;
	struct pipeline *pipeline = data;
	struct sample_row row = {
		.pid = stretch->pid,
		.tid = stretch->tid,
		.cpu = stretch->cpu,
		.weight_ns = stretch->weight_ns,
		.verdict = stack->verdict,
		.end = stack->end,
		.state = stretch->state,
		.stack = stack->id,
	};
	uint32_t id = stack->id;
	int r = 0;

	pipeline->counts.without_stack += !stretch->stack;
	if (stretch->state != STATE_RUNNING)
		r = intern_wait(&pipeline->intern, pipeline->batch, stack->id, stack->depth, stretch->state, &id);
	if (r < 0)
		return r;
	row.stack = id;
	return put_row(pipeline, &row, stretch->since_ns);
}

/* A stack of a thread that waits, until it is known how long it did. */
static int keep_wait(struct pipeline *pipeline, struct process *process, pid_t tid, struct stack *stack,
		     struct wait_stack *wait)
{
	int r;

	r = keep_stack(pipeline, wait->from_ns, process, stack, &wait->id);
	if (r < 0)
		return r;
	wait->depth = (unsigned)stack->n_frames;
	wait->verdict = stack->verdict;
	wait->end = stack->end;
	pipeline->counts.python_cut += stack->python_cut;
	return waits_stack(pipeline->off_cpu.waits, process->pid, tid, wait);
}

static int keep_switch(struct pipeline *pipeline, const struct sample *sample, struct process *process,
		       struct stack *stack)
{
	struct wait_stack wait = {
		.state = wait_state_of_sample(sample, process->remote, process->runtime),
		.from_ns = sample->time_ns,
		.to_ns = sample->time_ns,
		.at_switch = true,
	};

	return keep_wait(pipeline, process, sample->tid, stack, &wait);
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
	if (r >= 0 && pipeline->options.async && !sample->is_elsewhere)
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

/* One that is over by now, or that may not be looked at, stays without a stack. */
static int look(struct pipeline *pipeline, pid_t pid, pid_t tid)
{
	struct wait_stack wait = { .from_ns = monotonic_ns() };
	const struct sample sample = { .tid = tid, .is_polled = true };
	struct process *process;
	struct stack stack;
	int r;

	r = know_process(pipeline, pid, &process);
	if (r >= 0)
		r = process_search_python(process, wait.from_ns);
	if (r < 0)
		return r;
	r = look_at_thread(&pipeline->off_cpu.looker, process, tid, &wait.state, &stack);
	if (r >= 0 && pipeline->options.async)
		r = add_tasks(pipeline, process, &sample, &stack);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	wait.to_ns = monotonic_ns();
	return keep_wait(pipeline, process, tid, &stack, &wait);
}

int pipeline_idle(struct pipeline *pipeline)
{
	pid_t pid, tid;
	int r;

	r = off_cpu_idle(&pipeline->off_cpu);
	while (r >= 0 && off_cpu_next(&pipeline->off_cpu, &pid, &tid))
		r = look(pipeline, pid, tid);
	return r;
}

static int take_sample(struct pipeline *pipeline, const struct sample *captured)
{
	struct sample copy = *captured, *sample = &copy;
	struct process *process;
	struct stack stack;
	struct hold hold;
	int r;

	if (sample->is_switch &&
	    !off_cpu_affords(&pipeline->off_cpu, &pipeline->off_cpu.at_switches, sample->time_ns))
		return 0;
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
	if (r >= 0 && pipeline->options.async)
		r = add_tasks(pipeline, process, sample, &stack);
	if (r < 0)
		return r;
	r = sample->is_switch ? keep_switch(pipeline, sample, process, &stack)
			      : put_sample(pipeline, sample, process, &stack, &hold);
	/* Tasks are read from memory, right after the sample. */
	if (r >= 0 && pipeline->capture && !pipeline->options.async)
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

static int take_event(struct pipeline *pipeline, const struct capture_event *event)
{
	switch (event->type) {
	case CAPTURE_SAMPLE:
		return event->sample.is_polled ? take_polled(pipeline, &event->sample)
					       : take_sample(pipeline, &event->sample);
	case CAPTURE_MMAP: return take_mmap(pipeline, event);
	case CAPTURE_COMM: return take_comm(pipeline, event);
	case CAPTURE_FORK: return take_fork(pipeline, event);
	case CAPTURE_EXIT: take_exit(pipeline, event); return 0;
	case CAPTURE_SWITCH:
	case CAPTURE_END: return 0; /* see off_cpu_event() */
	case CAPTURE_LOST:
	case CAPTURE_THROTTLE: return 0; /* counted exactly where they are read */
	}
	return 0;
}

int pipeline_event(struct pipeline *pipeline, const struct capture_event *event)
{
	int r;

	r = off_cpu_event(&pipeline->off_cpu, event);
	return r < 0 ? r : take_event(pipeline, event);
}

/* So that the next sample of a process finds its interpreter known. */
static int look_between(struct pipeline *pipeline)
{
	struct processes *processes = &pipeline->processes;
	uint64_t now_ns = monotonic_ns();
	int r = 0;

	for (size_t i = 0; i < processes->n && r >= 0; i++) {
		if (processes->processes[i]->ended_ns != 0)
			continue;
		r = process_search_python(processes->processes[i], now_ns);
		if (r >= 0)
			watch(pipeline, processes->processes[i], now_ns);
	}
	return r;
}

/* ---- Pauses ---- */

static int put_pause(struct pipeline *pipeline, uint64_t ended_ns)
{
	struct pause_row *row = BATCH_ADD(pipeline->batch, pauses);

	if (!row)
		return -ENOMEM;
	row->started_ns = to_realtime(pipeline, pipeline->paused_ns);
	row->ended_ns = ended_ns ? to_realtime(pipeline, ended_ns) : 0;
	return 0;
}

int pipeline_pause(struct pipeline *pipeline)
{
	if (pipeline->paused_ns != 0)
		return 0;
	pipeline->paused_ns = monotonic_ns();
	processes_note_images(&pipeline->processes);
	return put_pause(pipeline, 0);
}

/* What it has mapped meanwhile; dumps that were there before are known. */
static int read_space_again(struct pipeline *pipeline, struct process *process)
{
	CLEANUP(address_space_freep) struct address_space *before = NULL;
	struct mapping *mapping;
	int r;

	r = address_space_fork(process->space, process->pid, &before);
	if (r >= 0)
		r = address_space_load(process->space);
	for (size_t i = 0; r >= 0 && (mapping = address_space_nth(process->space, i)) != NULL; i++) {
		const struct mapping *known = address_space_find(before, mapping->start);

		if (!known || known->module != mapping->module)
			r = note_dump(pipeline, process, mapping);
	}
	return r == -ENOMEM ? r : 0;
}

static int follow_pause(struct pipeline *pipeline, struct process *process)
{
	const struct program *program = process->program;
	int r;

	if (process->ended_ns != 0)
		return 0;
	r = process_follow_pause(&pipeline->processes, process);
	if (process->program != program || process->ended_ns != 0)
		forget_watched(pipeline, process);
	if (r >= 0 && process->ended_ns == 0)
		r = read_space_again(pipeline, process);
	return r;
}

int pipeline_resume(struct pipeline *pipeline, bool untold)
{
	int r;

	if (pipeline->paused_ns == 0)
		return 0;
	r = put_pause(pipeline, monotonic_ns());
	pipeline->paused_ns = 0;
	for (size_t i = 0; untold && i < pipeline->processes.n && r >= 0; i++)
		r = follow_pause(pipeline, pipeline->processes.processes[i]);
	return r;
}

/* ---- Flushing, and forgetting ---- */

/* Threads that have ended; their numbers are other threads' next time. Nothing refers to an index after a flush. */
static int forget_threads(struct pipeline *pipeline)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < pipeline->n_threads; i++)
		if (pipeline->threads[i].ended_ns == 0 || pipeline->threads[i].is_new)
			pipeline->threads[n++] = pipeline->threads[i];
	if (n == pipeline->n_threads)
		return 0;
	pipeline->n_threads = n;
	id_map_done(&pipeline->thread_index);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct id_slot *slot =
			id_map_find(&pipeline->thread_index, (uint64_t)pipeline->threads[i].tid + 1);

		if (slot)
			slot->id = (uint32_t)i;
		else
			r = id_map_add(&pipeline->thread_index, (uint64_t)pipeline->threads[i].tid + 1, (uint32_t)i);
	}
	return r;
}

/* Threads of processes that are gone, whose own end was lost or not told. */
static void end_threads(struct pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->n_threads; i++) {
		struct known_thread *thread = &pipeline->threads[i];
		const struct process *process = processes_find(&pipeline->processes, thread->pid);

		if (thread->ended_ns == 0 && process && process->last_batch != 0) {
			thread->ended_ns = process->ended_ns;
			thread->is_new = true;
		}
	}
}

/* The program in the kernel need not know whoever is about to be forgotten. */
static void forget_all_watched(struct pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->processes.n; i++) {
		struct process *process = pipeline->processes.processes[i];

		if (process->layout_id != 0 && process->last_batch != 0 &&
		    processes_find(&pipeline->processes, process->pid) == process)
			forget_watched(pipeline, process);
	}
}

/* Processes and threads come and go for as long as a recording lasts. */
static int forget_ended(struct pipeline *pipeline)
{
	int r;

	r = forget_threads(pipeline);
	end_threads(pipeline);
	forget_all_watched(pipeline);
	return r < 0 ? r : processes_forget(&pipeline->processes, pipeline->n_batches, writer_written(pipeline->writer));
}

static int renew_tree(struct pipeline *pipeline)
{
	bool is_asked = writer_take_renewal(pipeline->writer);
	bool is_large = pipeline->most_tree_bytes > 0 && intern_bytes(&pipeline->intern) > pipeline->most_tree_bytes;

	if (!is_asked && !is_large)
		return 0;
	pipeline->batch->old_stacks = pipeline->intern.n_stacks;
	pipeline->batch->old_frames = pipeline->intern.n_frames;
	intern_renew(&pipeline->intern);
	return processes_forget_codes(&pipeline->processes);
}

int pipeline_flush(struct pipeline *pipeline)
{
	struct batch *next;
	int r = 0;

	if (pipeline->options.is_seldom)
		r = look_between(pipeline);
	if (r >= 0)
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
	pipeline->n_batches++;
	intern_flushed(&pipeline->intern);
	r = renew_tree(pipeline);
	if (r >= 0)
		r = forget_ended(pipeline);
	return r < 0 ? r : pipeline_error(pipeline);
}

size_t pipeline_pending(const struct pipeline *pipeline)
{
	return pipeline->batch->n_samples;
}

bool pipeline_is_written(const struct pipeline *pipeline)
{
	return writer_written(pipeline->writer) >= pipeline->n_batches;
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
	if (r >= 0) /* known only now that all is written */
		r = store_put_counter(store, "dropped", (int64_t)pipeline->n_dropped);
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
	pipeline->n_dropped = writer_dropped(pipeline->writer);
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
	struct waits_sums sums = { 0 };

	*ret = pipeline->counts;
	if (pipeline->off_cpu.waits)
		waits_read_sums(pipeline->off_cpu.waits, &sums);
	memcpy(ret->by_state, sums.by_state, sizeof ret->by_state);
	ret->switches = sums.n_switches;
	ret->switch_stacks = sums.n_stacks;
	ret->unknown_ns = sums.unknown_ns;
	ret->n_frames = pipeline->intern.n_frames;
	ret->n_stacks = pipeline->intern.n_stacks;
	ret->dropped = pipeline->writer ? writer_dropped(pipeline->writer) : pipeline->n_dropped;
}

const char *pipeline_python(const struct pipeline *pipeline)
{
	return pipeline->python;
}

int64_t pipeline_store_bytes(const struct pipeline *pipeline)
{
	return pipeline->writer ? writer_bytes(pipeline->writer) : 0;
}
