/* SPDX-License-Identifier: MIT */
/* events.c - mappings, names, forks and ends from events, and pauses, which have none; see
 * pipeline_private.h. */
#include <errno.h>
#include <stdio.h>

#include "base/util.h"
#include "src/pipeline/pipeline_private.h"

/* New code must be read while its file exists, so stop deferring samples; see note_stack() in samples.c. */
static void hurry(struct pipeline *pipeline, struct process *process, uint64_t now_ns)
{
	process->mapped_ns = now_ns;
	for (size_t i = 0; pipeline->capture && i < pipeline->n_threads; i++) {
		struct known_thread *thread = &pipeline->threads[i];

		if (thread->pid == process->pid && thread->stack_start != 0) {
			capture_forget_stack(pipeline->capture, thread->tid);
			thread->stack_start = 0;
		}
	}
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

	r = pipeline_know_process(pipeline, event->pid, &process);
	if (r < 0)
		return r;
	/* /proc already contained this mapping, or it was gone again; no event reports an unmapping. */
	if (event->time_ns < process->loaded_ns)
		return 0;
	if (source.executable)
		hurry(pipeline, process, event->time_ns);
	r = address_space_mapped(process->space, &source);
	if (r >= 0 && source.executable)
		r = pipeline_note_dump(pipeline, process, address_space_find(process->space, source.start));
	return r == -ENOMEM ? r : 0;
}

static int take_comm(struct pipeline *pipeline, const struct capture_event *event)
{
	struct known_thread *thread = pipeline_find_thread(pipeline, event->tid);
	struct process *process;
	int r;

	if (thread) {
		snprintf(thread->comm, sizeof thread->comm, "%s", event->comm.name);
		thread->next_name_ns = thread->name_wait_ns = 0;
	}
	filter_forget_thread(&pipeline->filter, event->tid);
	r = pipeline_know_process(pipeline, event->pid, &process);
	if (r < 0)
		return r;
	if (event->tid == event->pid)
		(void)process_set_forked_name(process, NULL, false);
	if (event->tid == event->pid && event->time_ns >= process->loaded_ns)
		r = process_rename(process, event->comm.name);
	if (thread && event->comm.is_exec) { /* the new program's interpreter is not known yet */
		memcpy(thread->name, thread->comm, sizeof thread->comm);
		thread->has_python_name = false;
		thread->is_new = true;
	}
	if (r < 0 || !event->comm.is_exec || event->time_ns < process->loaded_ns)
		return r;
	pipeline_forget_watched(pipeline, process);
	thread_names_forget(&pipeline->thread_names, event->pid);
	r = process_exec(&pipeline->processes, process);
	if (r >= 0)
		process->program->started_ns = pipeline_to_realtime(pipeline, event->time_ns);
	return r;
}

/*
 * Until a COMM event, the child has the name of the thread that forked it. When /proc is read, the child may have
 * ended.
 */
static int begin_as_copy(struct pipeline *pipeline, const struct process *parent, struct process *child,
			 const struct capture_event *event)
{
	const struct known_thread *maker = pipeline_find_thread(pipeline, event->fork.parent_tid);
	const char *name = maker && maker->name[0] ? maker->name : parent->name;
	bool in_python = maker && maker->has_python_name;
	const char *title = maker ? maker->name : NULL;
	int r;

	/* The parent's main thread may have been without a sample so far. */
	if (!maker && event->fork.parent_tid == parent->pid) {
		title = parent->forked_name;
		in_python = parent->forked_in_python;
	}
	child->started_ns = child->program->started_ns = pipeline_to_realtime(pipeline, event->time_ns);
	r = process_set_forked_name(child, title, in_python);
	return r >= 0 && name ? process_rename(child, name) : r;
}

static int take_fork(struct pipeline *pipeline, const struct capture_event *event)
{
	struct process *parent, *child;
	int r;

	if (event->pid == event->fork.parent_pid)
		return 0; /* a thread becomes known with its first sample */
	r = pipeline_know_process(pipeline, event->fork.parent_pid, &parent);
	if (r < 0)
		return r;
	r = processes_fork(&pipeline->processes, parent, event->pid, event->time_ns, &child);
	if (r >= 0)
		r = begin_as_copy(pipeline, parent, child, event);
	return r;
}

static void take_exit(struct pipeline *pipeline, const struct capture_event *event)
{
	struct known_thread *thread = pipeline_find_thread(pipeline, event->tid);
	struct process *process = processes_find(&pipeline->processes, event->pid);

	filter_forget_thread(&pipeline->filter, event->tid);
	if (thread) {
		thread->ended_ns = pipeline_to_realtime(pipeline, event->time_ns);
		thread->is_new = true;
	}
	thread_names_forget(&pipeline->thread_names, event->pid);
	if (!process || process->ended_ns != 0)
		return;
	process_leave(process, event->tid == event->pid, pipeline_to_realtime(pipeline, event->time_ns));
	if (process->ended_ns != 0)
		pipeline_forget_watched(pipeline, process);
}

/*
 * An ending thread releases its TID a few instructions early; then the kernel reports -1 (perf_event_pid_type() in
 * kernel/events/core.c, Linux 6.1). Store these samples under TID 0 of the process. Skip them if waits are recorded:
 * the thread's time is already complete. Without a PID they are unattributed.
 */
static int take_last_sample(struct pipeline *pipeline, const struct sample *captured)
{
	struct sample sample = *captured;

	if (sample.is_switch || pipeline->off_cpu.waits)
		return 0;
	if (sample.pid <= 0) {
		pipeline->counts.nobodys++;
		return 0;
	}
	sample.tid = 0;
	return pipeline_take_sample(pipeline, &sample);
}

static int take_sample(struct pipeline *pipeline, const struct sample *sample)
{
	if (sample->time_ns < pipeline->since_ns)
		return 0;
	if (sample->is_polled)
		return pipeline_take_polled(pipeline, sample);
	if (sample->tid <= 0 || sample->pid <= 0)
		return take_last_sample(pipeline, sample);
	return pipeline_take_sample(pipeline, sample);
}

/* Events from before now are in what is read. */
static int read_space_again(struct pipeline *pipeline, struct process *process)
{
	process->loaded_ns = monotonic_ns();
	return pipeline_update_space(pipeline, process);
}

static int take_remapped(struct pipeline *pipeline, const struct capture_event *event)
{
	struct process *process;
	int r;

	r = pipeline_know_process(pipeline, event->pid, &process);
	return r < 0 ? r : read_space_again(pipeline, process);
}

int pipeline_take_event(struct pipeline *pipeline, const struct capture_event *event)
{
	switch (event->type) {
	case CAPTURE_SAMPLE:
		return take_sample(pipeline, &event->sample);
	case CAPTURE_MMAP:
		return take_mmap(pipeline, event);
	case CAPTURE_REMAPPED:
		return take_remapped(pipeline, event);
	case CAPTURE_COMM:
		return take_comm(pipeline, event);
	case CAPTURE_FORK:
		return take_fork(pipeline, event);
	case CAPTURE_EXIT:
		take_exit(pipeline, event);
		return 0;
	case CAPTURE_UNSAMPLED:
		return pipeline_take_unsampled(pipeline, event);
	case CAPTURE_SWITCH:
	case CAPTURE_END:
		return 0; /* see off_cpu_event() */
	case CAPTURE_LOST:
		pipeline->lost_ns = monotonic_ns();
		return 0;
	case CAPTURE_THROTTLE:
		return 0; /* its readers count it exactly */
	}
	return 0;
}

int pipeline_take(struct pipeline *pipeline, struct capture *capture, unsigned n, uint64_t ns)
{
	uint64_t end_ns = monotonic_ns() + ns;

	while (n-- > 0 && monotonic_ns() < end_ns) {
		struct capture_event event;
		struct sample next;
		int r;

		r = capture_next(capture, &event);
		if (r > 0 && capture_peek(capture, &next))
			pipeline_expect_sample(pipeline, &next);
		if (r == 0)
			return pipeline_idle(pipeline);
		if (r > 0)
			r = pipeline_event(pipeline, &event);
		if (r < 0)
			return r;
	}
	return 1;
}

/* ---- Pauses ---- */

static int put_pause(struct pipeline *pipeline, uint64_t ended_ns)
{
	struct pause_row *row = BATCH_ADD(pipeline->batch, pauses);

	if (!row)
		return -ENOMEM;
	row->started_ns = pipeline_to_realtime(pipeline, pipeline->paused_ns);
	row->ended_ns = ended_ns ? pipeline_to_realtime(pipeline, ended_ns) : 0;
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

static int follow_pause(struct pipeline *pipeline, struct process *process)
{
	const struct program *program = process->program;
	int r;

	if (process->ended_ns != 0)
		return 0;
	r = process_follow_pause(&pipeline->processes, process);
	if (process->program != program || process->ended_ns != 0)
		pipeline_forget_watched(pipeline, process);
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
