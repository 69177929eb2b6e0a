/* SPDX-License-Identifier: MIT */
/* samples.c - from a sample, or a wait, to a row; see pipeline_private.h.
 *
 * Events come in time order, so the maps are those of the sample's instant.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/gil_state.h"
#include "src/pipeline/pipeline_private.h"
#include "src/pipeline/records.h"
#include "src/pipeline/wait_state.h"

static void count_hold(struct pipeline_counts *counts, const struct sample_row *row)
{
	counts->gil_ns += row->gil == ANSWER_YES ? row->weight : 0;
	counts->gil_known_ns += row->gil != ANSWER_UNKNOWN ? row->weight : 0;
	counts->gc_ns += row->gc == ANSWER_YES ? row->weight : 0;
	counts->gc_known_ns += row->gc != ANSWER_UNKNOWN ? row->weight : 0;
}

static void count(struct pipeline *pipeline, const struct sample_row *row, uint64_t time_ns)
{
	struct pipeline_counts *counts = &pipeline->counts;

	count_hold(counts, row);

	if (counts->samples++ == 0)
		counts->first_sample_ns = time_ns;
	if (row->state == STATE_AWAIT) {
		counts->task_ns += row->weight;
		counts->n_task_rows++;
	} else {
		counts->weight += row->weight;
	}
	counts->by_verdict[row->verdict]++;
	counts->by_end[row->end]++;
}

/* Whether the frames were read with the layout of the process's current interpreter, not of one before exec. */
static bool is_readable(const struct process *process, const struct sample *sample)
{
	return process->layout_id != 0 && sample->python->layout_id == process->layout_id;
}

/* Other code lies at these addresses now: new samples there need new frames. */
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

static int keep_stack(struct pipeline *pipeline, uint64_t time_ns, struct process *process, struct stack *stack,
		      uint32_t *ret)
{
	struct stack_origin origin = { .program = process->program->id, .time_ns = time_ns };
	size_t n_before = pipeline->batch->n_frames;
	int r;

	filter_trim(&pipeline->filter, stack);
	r = intern_stack(&pipeline->intern, pipeline->batch, stack, &origin, ret);
	return r < 0 ? r : pipeline_announce_new(pipeline, process->program, n_before);
}

/* Put a sample into the batch, or pass it to the callback that replaces the file. */
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

/* @row->time_ns is not set; @time_ns: CLOCK_MONOTONIC. */
static int put_row(struct pipeline *pipeline, const struct sample_row *row, uint64_t time_ns)
{
	struct sample_row added = *row;
	uint32_t thread;
	int r;

	r = pipeline_know_thread(pipeline, row->pid, row->tid, time_ns, &thread);
	if (r < 0)
		return r;
	added.time_ns = pipeline_to_realtime(pipeline, time_ns);
	count(pipeline, row, time_ns);
	return batch_sample(pipeline, thread, &added);
}

static int put_sample(struct pipeline *pipeline, const struct sample *sample, struct process *process,
		      struct stack *stack, const struct gil_state *gil_state)
{
	struct waits *waits = pipeline->off_cpu.waits;
	struct sample_row row = {
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
		.weight = sample->weight,
		.verdict = stack->verdict,
		.end = stack->end,
		.state = waits ? STATE_RUNNING : STATE_NONE,
		.gil = gil_state->gil,
		.gc = gil_state->gc,
	};
	uint32_t id;
	int r = 0;

	if (!filter_wants_sample(&pipeline->filter, stack, gil_state)) {
		pipeline->counts.left_out++;
		return 0;
	}
	if (waits && pipeline->off_cpu.is_counted)
		row.weight = waits_sampled(waits, sample->tid, sample->weight, sample->time_ns);
	else if (waits)
		r = waits_account_run(waits, sample->pid, sample->tid, sample->weight, sample->time_ns, &row.weight);
	if (r < 0 || (waits && row.weight == 0)) /* the sample precedes the start */
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

/* Turn an interval of a thread's time into a row, with its wait state and the object of the wait as the innermost frames. */
int pipeline_put_interval(void *data, const struct interval *interval)
{
	static const struct wait_stack nothing = { .verdict = VERDICT_NO_PYTHON, .end = STACK_TRUNCATED };
	const struct wait_stack *stack = interval->stack ? interval->stack : &nothing;
	struct pipeline *pipeline = data;
	struct sample_row row = {
		.pid = interval->pid,
		.tid = interval->tid,
		.cpu = interval->cpu,
		.weight = interval->weight,
		.verdict = stack->verdict,
		.end = stack->end,
		.state = interval->state,
		.gil = interval->state == STATE_GIL ? ANSWER_NO : ANSWER_UNKNOWN, /* a waiter does not hold it */
		.stack = stack->id,
	};
	uint32_t id = stack->id;
	int r = 0;

	pipeline->counts.without_stack += !interval->stack;
	if (interval->state != STATE_RUNNING)
		r = intern_wait(&pipeline->intern, pipeline->batch, stack->id, stack->depth, interval->state, &id);
	if (r >= 0 && stack->object != 0 && interval->state == stack->state)
		r = intern_object(&pipeline->intern, pipeline->batch, id, stack->depth + 1, stack->object, &id);
	if (r < 0)
		return r;
	row.stack = id;
	return put_row(pipeline, &row, interval->since_ns);
}

/* The wait may continue: see check_object() in waits.c. */
static int read_object(struct pipeline *pipeline, const struct waiter *waiter, struct wait_stack *wait)
{
	char name[WAIT_OBJECT_BYTES];
	int r;

	r = wait_object_read(&pipeline->wait_objects, &pipeline->thread_names, waiter, name);
	if (r >= 0)
		r = intern_object_name(&pipeline->intern, name, &wait->object);
	wait->object_ns = monotonic_ns();
	return r;
}

/* Keep the stack of a waiting thread until the duration of the wait is known. */
static int keep_wait(struct pipeline *pipeline, const struct waiter *waiter, struct stack *stack,
		     struct wait_stack *wait)
{
	int r;

	r = keep_stack(pipeline, wait->from_ns, waiter->process, stack, &wait->id);
	if (r >= 0)
		r = read_object(pipeline, waiter, wait);
	if (r < 0)
		return r;
	wait->depth = (unsigned)stack->n_frames;
	wait->verdict = stack->verdict;
	wait->end = stack->end;
	pipeline->counts.python_cut += stack->python_cut;
	return waits_stack(pipeline->off_cpu.waits, waiter->process->pid, waiter->tid, wait);
}

/* A waiting thread may run an event loop. */
static void note_loop(struct pipeline *pipeline, const struct process *process, pid_t tid, enum thread_state state)
{
	if (pipeline->options.pending_tasks && process->runtime && (state == STATE_IO || state == STATE_SLEEP))
		pending_tasks_note(&pipeline->pending, process->pid, tid, monotonic_ns());
}

static int keep_switch(struct pipeline *pipeline, const struct sample *sample, struct process *process,
		       struct stack *stack)
{
	struct proc_call call;
	struct wait_stack wait = {
		.state = wait_state_of_sample(sample, process->remote, process->runtime, &call),
		.from_ns = sample->time_ns,
		.to_ns = sample->time_ns,
		.at_switch = true,
	};
	const struct waiter waiter = {
		process, sample->tid, wait.state, &call, sample->stack, sample->stack_bytes,
	};

	note_loop(pipeline, process, sample->tid, wait.state);
	return keep_wait(pipeline, &waiter, stack, &wait);
}

/* With a filter, skip unsampled time: no stack shows whether it passes. */
int pipeline_take_unsampled(struct pipeline *pipeline, const struct capture_event *event)
{
	struct sample_row row = {
		.pid = event->pid,
		.tid = event->tid,
		.weight = event->unsampled.weight,
		.verdict = VERDICT_NO_PYTHON,
		.end = STACK_TRUNCATED,
		.is_unsampled = true,
	};
	struct process *process;
	uint32_t id, thread;
	size_t n_before = pipeline->n_threads;
	int r;

	if (!filter_wants_all(&pipeline->filter))
		return 0;
	r = intern_unsampled(&pipeline->intern, pipeline->batch, &id);
	/* The record of its fork may be lost. At the end, an evicted process already has its row. */
	if (r >= 0 && !event->unsampled.is_of_process)
		r = pipeline_know_process(pipeline, row.pid, &process);
	if (r >= 0)
		r = pipeline_know_thread(pipeline, row.pid, row.tid, event->time_ns, &thread);
	if (r < 0)
		return r;
	/* The main thread may have ended and been evicted. */
	if (pipeline->n_threads > n_before)
		pipeline->threads[thread].is_fallback = event->unsampled.is_of_process;
	row.stack = id;
	pipeline->counts.without_stack++;
	pipeline->counts.unsampled_ns += row.weight;
	pipeline->counts.n_unsampled++;
	return put_row(pipeline, &row, event->unsampled.at_ns);
}

static int add_tasks(struct pipeline *pipeline, struct process *process, const struct sample *sample,
		     struct stack *stack)
{
	if (!process->runtime || (!sample->has_user && !sample->is_polled))
		return 0;
	py_asyncio_look(process->runtime, process->space);
	return task_frames_add(&pipeline->tasks, process->runtime, sample->tid, stack);
}

/* Check the thread first, so that an unwanted sample costs no more than this. */
static bool is_wanted(struct pipeline *pipeline, const struct process *process, const struct sample *sample)
{
	if (filter_wants_thread(&pipeline->filter, process->runtime, sample->pid, sample->tid, sample->time_ns))
		return true;
	pipeline->counts.left_out++;
	return false;
}

/* A polled sample has no captured data. */
int pipeline_take_polled(struct pipeline *pipeline, const struct sample *sample)
{
	struct process *process;
	struct stack stack;
	struct gil_state gil_state;
	int r = 0;

	if (!pipeline->memory_stitcher)
		r = memory_stitcher_new(&pipeline->memory_stitcher);
	if (r >= 0)
		r = pipeline_know_process(pipeline, sample->pid, &process);
	if (r >= 0)
		r = process_search_unaided(process, sample->time_ns);
	if (r >= 0 && !is_wanted(pipeline, process, sample))
		return 0;
	if (r >= 0)
		r = stitch_memory(pipeline->memory_stitcher, sample->is_elsewhere ? NULL : process->runtime,
				  sample->tid, &stack);
	if (r >= 0)
		gil_state_read(process->runtime, sample, &stack, &gil_state);
	if (r >= 0 && pipeline->options.async && !sample->is_elsewhere)
		r = add_tasks(pipeline, process, sample, &stack);
	return r < 0 ? r : put_sample(pipeline, sample, process, &stack, &gil_state);
}

/*
 * If BPF reads the frames and the stack's start is known, samples of the thread can wait in the ring. A thread that
 * alternates between stacks is noted only from time to time. While code is being mapped, read samples at once: its file
 * may be gone soon.
 */
static void note_stack(struct pipeline *pipeline, const struct process *process, const struct sample *sample)
{
	enum { RENOTE_NS = 100000000, QUIET_NS = 500000000 };
	const struct native_stack *stack = &pipeline->native;
	struct known_thread *thread = pipeline_find_thread(pipeline, sample->tid);
	uint64_t start = stack->n_frames > 0 ? stack->frames[stack->n_frames - 1].cfa : 0;

	if (!thread || start == 0 || start == thread->stack_start ||
	    (stack->end != STACK_COMPLETE && stack->end != STACK_COMPLETED) ||
	    sample->time_ns < process->mapped_ns + QUIET_NS || sample->time_ns < thread->stack_noted_ns + RENOTE_NS)
		return;
	capture_note_stack(pipeline->capture, sample->tid, start);
	thread->stack_start = start;
	thread->stack_noted_ns = sample->time_ns;
}

/* ---- Waiting tasks ---- */

static int keep_pending(struct pipeline *pipeline, const struct process *process, uint64_t time_ns,
			const struct stack *stack)
{
	const struct stack_origin origin = { .program = process->program->id, .time_ns = time_ns };
	uint32_t id = 0;
	int r;

	r = intern_stack(&pipeline->intern, pipeline->batch, stack, &origin, &id);
	if (r >= 0)
		r = intern_wait(&pipeline->intern, pipeline->batch, id, (unsigned)stack->n_frames, STATE_AWAIT, &id);
	return r < 0 ? r : pending_tasks_keep(&pipeline->pending, id);
}

/* Tasks that wait in the same stack share a row. */
static int put_pending(struct pipeline *pipeline, const struct event_loop *loop, enum verdict verdict, uint64_t weight,
		       uint64_t time_ns)
{
	const struct pending_tasks *pending = &pipeline->pending;
	struct sample_row row = {
		.pid = loop->pid,
		.tid = loop->tid,
		.verdict = verdict,
		.end = STACK_TRUNCATED,
		.state = STATE_AWAIT,
		.gil = ANSWER_UNKNOWN,
		.gc = ANSWER_UNKNOWN,
	};
	int r = 0;

	for (size_t i = 0, n; i < pending->n_stacks && r >= 0 && weight > 0; i += n) {
		for (n = 1; i + n < pending->n_stacks && pending->stacks[i + n] == pending->stacks[i]; n++)
			;
		row.stack = pending->stacks[i];
		row.weight = weight * n;
		r = put_row(pipeline, &row, time_ns);
	}
	return r;
}

/* A thread before its tasks are read: the call that it waits in, and how often it has been put on a processor. */
struct still {
	struct proc_call call;
	uint64_t n_runs;
	bool is_known;
};

static struct still see_thread(const struct event_loop *loop)
{
	struct still still = { .call = { .is_running = true } };

	still.is_known = proc_run_count(loop->pid, loop->tid, &still.n_runs) >= 0 &&
			 proc_call_read(loop->pid, loop->tid, &still.call) >= 0;
	return still;
}

/* It has stayed in one system call, so none of its tasks has moved: a loop that woke meanwhile waits in the same call. */
static bool was_still(const struct event_loop *loop, const struct still *before)
{
	struct still now = see_thread(loop);

	return before->is_known && now.is_known && !before->call.is_running && !now.call.is_running &&
	       now.call.sp == before->call.sp && now.call.pc == before->call.pc && now.n_runs == before->n_runs;
}

static int read_pending(struct pipeline *pipeline, struct process *process, struct event_loop *loop)
{
	struct pending_tasks *pending = &pipeline->pending;
	uint64_t began_ns = monotonic_ns(), now_ns, weight;
	enum verdict verdict;
	struct still before;
	struct stack stack;
	int r;

	py_asyncio_look(process->runtime, process->space);
	before = see_thread(loop);
	r = pending_tasks_read(pending, process->runtime, loop->tid);
	for (size_t i = 0; i < pending->tasks.n && r >= 0; i++) {
		r = pending_tasks_stack(pending, i, &stack);
		if (r > 0)
			r = keep_pending(pipeline, process, began_ns, &stack);
	}
	if (r < 0) {
		pending_tasks_forget(pending, loop);
		return r == -ENOMEM ? r : 0;
	}
	verdict = was_still(loop, &before) ? VERDICT_PYTHON : VERDICT_APPROXIMATE;
	now_ns = monotonic_ns();
	pipeline->counts.n_task_reads++;
	pipeline->counts.task_read_ns += now_ns - began_ns;
	weight = pending_tasks_end_tick(pending, loop, began_ns, now_ns);
	return put_pending(pipeline, loop, verdict, weight, began_ns - weight);
}

static int read_due_loops(struct pipeline *pipeline)
{
	struct event_loop *loop;
	uint64_t now_ns = monotonic_ns();
	int r = 0;

	while (r >= 0 && (loop = pending_tasks_next(&pipeline->pending, now_ns)) != NULL) {
		struct process *process = processes_find(&pipeline->processes, loop->pid);

		if (!process || !process->runtime || process->ended_ns != 0)
			pending_tasks_forget(&pipeline->pending, loop);
		else
			r = read_pending(pipeline, process, loop);
	}
	return r;
}

/* A wait that has ended, or a thread that may not be read, stays without a stack. */
static int look(struct pipeline *pipeline, pid_t pid, pid_t tid)
{
	struct wait_stack_reader *reader = &pipeline->off_cpu.wait_stack_reader;
	bool is_counted = pipeline->off_cpu.is_counted;
	uint64_t n_runs = 0, n_runs_now = 0;
	struct wait_stack wait = { .from_ns = monotonic_ns() };
	struct proc_call call;
	const struct sample sample = { .tid = tid, .is_polled = true };
	struct process *process;
	struct stack stack;
	int r;

	r = pipeline_know_process(pipeline, pid, &process);
	if (r >= 0)
		r = process_search_python(process, wait.from_ns);
	if (r < 0)
		return r;
	if (is_counted && proc_run_count(pid, tid, &n_runs) < 0)
		return 0;
	r = read_wait_stack(reader, process, tid, &call, &wait.state, &stack);
	if (r >= 0 && pipeline->options.async)
		r = add_tasks(pipeline, process, &sample, &stack);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (is_counted && (proc_run_count(pid, tid, &n_runs_now) < 0 || n_runs_now != n_runs))
		return 0; /* it has run meanwhile */
	wait.to_ns = monotonic_ns();
	note_loop(pipeline, process, tid, wait.state);
	return keep_wait(pipeline, &(struct waiter){ process, tid, wait.state, &call, reader->bytes, reader->n_bytes },
			 &stack, &wait);
}

int pipeline_idle(struct pipeline *pipeline)
{
	pid_t pid, tid;
	int r;

	r = off_cpu_idle(&pipeline->off_cpu);
	while (r >= 0 && off_cpu_next(&pipeline->off_cpu, &pid, &tid))
		r = look(pipeline, pid, tid);
	return r < 0 ? r : read_due_loops(pipeline);
}

static int unwind(struct pipeline *pipeline, struct process *process, const struct sample *sample, struct stack *ret)
{
	int r;

	r = native_unwind(process->native, sample, process->remote, &pipeline->native);
	return r < 0 ? r : stitch(pipeline->stitcher, process->space, process->runtime, &pipeline->native, ret);
}

static bool stands_still(const struct pipeline *pipeline, const struct sample *sample)
{
	return pipeline->source && !sample->is_switch && capture_is_descheduled(pipeline->source, sample);
}

/*
 * While the sampled thread is descheduled, its memory is as it was at the sample. If it ran meanwhile, or the stacks
 * did not match, check memory against the captured bytes.
 */
static int make_stack(struct pipeline *pipeline, struct process *process, struct sample *sample, struct stack *ret)
{
	int r;

	sample->is_still = sample->is_held = stands_still(pipeline, sample);
	r = unwind(pipeline, process, sample, ret);
	if (r < 0 || !sample->is_still || (ret->verdict != VERDICT_APPROXIMATE && stands_still(pipeline, sample)))
		return r;
	sample->is_still = sample->is_held = false;
	return unwind(pipeline, process, sample, ret);
}

int pipeline_take_sample(struct pipeline *pipeline, const struct sample *captured)
{
	struct sample copy = *captured, *sample = &copy;
	struct process *process;
	struct stack stack;
	struct gil_state gil_state;
	int r;

	if (sample->is_switch && !off_cpu_affords(&pipeline->off_cpu, &pipeline->off_cpu.at_switches, sample->time_ns))
		return 0;
	r = pipeline_know_process(pipeline, sample->pid, &process);
	if (r >= 0)
		r = process_search_python(process, sample->time_ns);
	if (r >= 0 && !is_wanted(pipeline, process, sample))
		return 0;
	if (r >= 0)
		r = forget_replaced(pipeline);
	if (r < 0)
		return r;
	pipeline_watch(pipeline, process, sample->time_ns);
	if (sample->python && !is_readable(process, sample))
		sample->python = NULL;
	r = make_stack(pipeline, process, sample, &stack);
	if (r >= 0)
		gil_state_read(process->runtime, sample, &stack, &gil_state);
	if (r >= 0 && pipeline->options.async)
		r = add_tasks(pipeline, process, sample, &stack);
	if (r < 0)
		return r;
	r = sample->is_switch ? keep_switch(pipeline, sample, process, &stack)
			      : put_sample(pipeline, sample, process, &stack, &gil_state);
	/* With async, tasks are read from memory right after the sample, so samples cannot wait. */
	if (r >= 0 && pipeline->capture && !pipeline->options.async)
		note_stack(pipeline, process, sample);
	return r;
}

void pipeline_expect_sample(struct pipeline *pipeline, const struct sample *sample)
{
	struct process *process = processes_find(&pipeline->processes, sample->pid);

	if (process && process->native && sample->has_user)
		native_expect(process->native, sample);
}
