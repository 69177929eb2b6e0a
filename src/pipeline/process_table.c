/* SPDX-License-Identifier: MIT */
/* process_table.c - known processes, threads and generated code, and their rows; see pipeline_private.h.
 *
 * A process is known before its first sample is unwound: from its parent's fork, from
 * pipeline_attach() and pipeline_expect(), or, if that event was lost, from /proc.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/pipeline_private.h"

enum { MAX_COMMAND_BYTES = 4096, MAX_NAME_BYTES = 64 };

static void note_python(struct pipeline *pipeline, const struct process *process)
{
	if (pipeline->python[0] || !process->python[0])
		return;
	snprintf(pipeline->python, sizeof pipeline->python, "%s", process->python);
}

/* Read the text from /proc; keep the old one if the process is gone. */
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

/* @from: NULL: none. @ret: free(3) ends it. */
static int copy_rank(const struct rank_identity *from, struct rank_identity **ret)
{
	*ret = from ? malloc(sizeof **ret) : NULL;
	if (!from)
		return 0;
	if (!*ret)
		return -ENOMEM;
	**ret = *from;
	return 0;
}

/* What it inherited from its parent holds until it has another environment; one that ended keeps it. */
static int refresh_rank(struct process *process)
{
	struct rank_identity identity;
	int r = rank_of_process(process->pid, &identity);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return 0;
	free(TAKE(process->rank));
	return copy_rank(r > 0 ? &identity : NULL, &process->rank);
}

/* Append the row of a new or changed process. */
static int put_process(struct pipeline *pipeline, struct process *process)
{
	struct new_process *row;

	note_python(pipeline, process);
	if (refresh_text(&process->name, process->pid, "comm", MAX_NAME_BYTES) < 0 ||
	    refresh_text(&process->command, process->pid, "cmdline", MAX_COMMAND_BYTES) < 0 ||
	    refresh_rank(process) < 0)
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
	if (!row->name || !row->command || (!row->python && process->runtime))
		return -ENOMEM;
	return copy_rank(process->rank, &row->rank);
}

int pipeline_put_changed(struct pipeline *pipeline)
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
			.is_fallback = thread->is_fallback,
		};
		memcpy(row->name, thread->name, sizeof row->name);
	}
	return 0;
}

uint64_t pipeline_to_realtime(const struct pipeline *pipeline, uint64_t monotonic)
{
	return monotonic + (uint64_t)pipeline->to_realtime_ns;
}

uint64_t pipeline_thread_key(pid_t pid, pid_t tid)
{
	return tid > 0 ? (uint64_t)tid + 1 : (uint64_t)pid << 32;
}

struct known_thread *pipeline_find_thread(const struct pipeline *pipeline, pid_t tid)
{
	const struct id_slot *slot = id_map_find(&pipeline->thread_index, (uint64_t)tid + 1);

	return slot ? &pipeline->threads[slot->id] : NULL;
}

/* The last known name of a process, which is also its first thread's; "" if unknown. */
static const char *name_of(const struct pipeline *pipeline, pid_t pid)
{
	const struct process *process = processes_find(&pipeline->processes, pid);

	return process && process->name ? process->name : "";
}

/* Return the thread's index. Adds a thread that is new, or whose TID now belongs to another process. */
int pipeline_know_thread(struct pipeline *pipeline, pid_t pid, pid_t tid, uint64_t time_ns, uint32_t *ret)
{
	struct id_slot *slot = id_map_find(&pipeline->thread_index, pipeline_thread_key(pid, tid));
	struct known_thread *thread;
	char file[32], *name;
	int r;

	if (slot && pipeline->threads[slot->id].pid == pid) {
		*ret = slot->id;
		return 0;
	}
	r = grow(&pipeline->threads, pipeline->n_threads, &pipeline->threads_allocated, sizeof *pipeline->threads);
	if (r < 0)
		return r;
	if (slot)
		slot->id = (uint32_t)pipeline->n_threads;
	else
		r = id_map_add(&pipeline->thread_index, pipeline_thread_key(pid, tid), (uint32_t)pipeline->n_threads);
	if (r < 0)
		return r;
	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	name = tid > 0 ? proc_text(pid, file, sizeof thread->name - 1) : strdup("[ended]");
	if (!name)
		return -ENOMEM;
	*ret = (uint32_t)pipeline->n_threads;
	thread = &pipeline->threads[pipeline->n_threads++];
	*thread = (struct known_thread){
		.pid = pid, .tid = tid, .started_ns = pipeline_to_realtime(pipeline, time_ns), .is_new = true
	};
	snprintf(thread->comm, sizeof thread->comm, "%s", name[0] || tid != pid ? name : name_of(pipeline, pid));
	memcpy(thread->name, thread->comm, sizeof thread->comm);
	free(name);
	pipeline_name_thread(pipeline, processes_find(&pipeline->processes, pid), thread, time_ns);
	return 0;
}

/* ---- Names of threads ---- */

/*
 * Names are set late and change: the pipeline reads them again after 20 ms, 40 ms, ... 41 s. These times are multiples
 * of the interval, so that threads that started at different times share one read. The main thread of a forked process
 * first has the name of the thread that forked it: the memory is a copy.
 */
void pipeline_name_thread(struct pipeline *pipeline, const struct process *process, struct known_thread *thread,
			  uint64_t now_ns)
{
	const uint64_t soon_ns = 20000000, latest_ns = soon_ns << 11;
	const char *python = NULL, *title = NULL;

	if (process && process->forked_name && thread->tid == process->pid && thread->name_wait_ns == 0) {
		title = process->forked_name;
		python = process->forked_in_python ? title : NULL;
	} else if (process && thread->tid > 0) {
		python = thread_names_find(&pipeline->thread_names, process->runtime, thread->pid, thread->tid, now_ns);
	}
	if (!title)
		title = py_thread_title(python, thread->comm, process && process->name ? process->name : "");
	thread->name_wait_ns = MIN(MAX(thread->name_wait_ns * 2, soon_ns), latest_ns);
	thread->next_name_ns = (now_ns / thread->name_wait_ns + 1) * thread->name_wait_ns;
	/* Keep the name if it cannot be read now. */
	if (!python && thread->has_python_name)
		return;
	thread->has_python_name = python != NULL;
	if (strncmp(thread->name, title, sizeof thread->name - 1) == 0)
		return;
	snprintf(thread->name, sizeof thread->name, "%s", title);
	thread->is_new = true;
}

void pipeline_name_threads(struct pipeline *pipeline, uint64_t now_ns)
{
	for (size_t i = 0; i < pipeline->n_threads; i++) {
		struct known_thread *thread = &pipeline->threads[i];

		if (thread->ended_ns == 0 && now_ns >= thread->next_name_ns)
			pipeline_name_thread(pipeline, processes_find(&pipeline->processes, thread->pid), thread,
					     now_ns);
	}
}

/* ---- Generated code ---- */

/*
 * Tell the writing thread about a program whose anonymous code it will name, and about the programs it was forked from.
 */
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

/* Open a dump at once, while the process exists and leads to it. A dump that cannot be opened names nothing. */
int pipeline_note_dump(struct pipeline *pipeline, struct process *process, const struct mapping *mapping)
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

int pipeline_load_space(struct pipeline *pipeline, struct process *process)
{
	struct mapping *mapping;
	int r;

	process->mapped_ns = process->loaded_ns = monotonic_ns();
	r = address_space_load(process->space);
	for (size_t i = 0; r >= 0 && (mapping = address_space_nth(process->space, i)) != NULL; i++)
		r = pipeline_note_dump(pipeline, process, mapping);
	return r;
}

int pipeline_update_space(struct pipeline *pipeline, struct process *process)
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
			r = pipeline_note_dump(pipeline, process, mapping);
	}
	return r == -ENOMEM ? r : 0;
}

/*
 * The kernel may have dropped records of mappings. Events that wait in the rings still count (loaded_ns): an exec among them
 * would otherwise be missed. Losses come in a row, and a process may have thousands of mappings.
 */
static int fill_gaps(struct pipeline *pipeline, struct process *process)
{
	enum { EVERY_NS = 1000000000 };
	uint64_t read_ns = MAX(process->loaded_ns, process->filled_ns), now_ns;

	if (read_ns >= pipeline->lost_ns || process->ended_ns != 0)
		return 0;
	now_ns = monotonic_ns();
	if (now_ns - read_ns < EVERY_NS)
		return 0;
	process->filled_ns = now_ns;
	return pipeline_update_space(pipeline, process);
}

/* Announce the program if one of the frames from n_before on is anonymous code. */
int pipeline_announce_new(struct pipeline *pipeline, struct program *program, size_t n_before)
{
	for (size_t i = n_before; !program->is_announced && i < pipeline->batch->n_frames; i++)
		if (pipeline->batch->frames[i].program != 0)
			return announce(pipeline, program);
	return 0;
}

/* If no event reported the process, read its maps from /proc. */
int pipeline_know_process(struct pipeline *pipeline, pid_t pid, struct process **ret)
{
	struct process *process = processes_find(&pipeline->processes, pid);
	int r;

	if (!process) {
		r = processes_add(&pipeline->processes, pid, 0, &process);
		if (r < 0)
			return r;
		r = pipeline_load_space(pipeline, process);
	} else {
		process->last_batch = 0; /* it has ended by /proc, but some of its samples come only now: with the next batch */
		r = fill_gaps(pipeline, process);
	}
	if (r == -ENOMEM)
		return r;
	*ret = process;
	return 0;
}

/* ---- Frames read inside the interrupt ---- */

/* Have the BPF program read an interpreter's frames inside the interrupt. What it cannot read is read afterwards. */
void pipeline_watch(struct pipeline *pipeline, struct process *process, uint64_t now_ns)
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

void pipeline_forget_watched(struct pipeline *pipeline, struct process *process)
{
	if (process->layout_id != 0)
		capture_forget_python(pipeline->capture, process->pid);
	process->layout_id = 0;
}
