/* SPDX-License-Identifier: MIT */
/* evict.c - evicts ended processes and threads, and trees that have become too large; see pipeline_private.h.
 *
 * Processes and threads start and end all the time. Objects that a batch points to
 * (modules, codes) are freed only after the writing thread has written it.
 */
#include "src/pipeline/pipeline_private.h"

/* Evict ended threads: the kernel reuses their TIDs. Nothing refers to an index after a flush. */
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
		uint64_t key = pipeline_thread_key(pipeline->threads[i].pid, pipeline->threads[i].tid);
		struct id_slot *slot = id_map_find(&pipeline->thread_index, key);

		if (slot)
			slot->id = (uint32_t)i;
		else
			r = id_map_add(&pipeline->thread_index, key, (uint32_t)i);
	}
	return r;
}

/* End the threads of ended processes whose EXIT record was lost. */
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

/* Remove the processes from the BPF program's map before evicting them. */
static void forget_all_watched(struct pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->processes.n; i++) {
		struct process *process = pipeline->processes.processes[i];

		if (process->layout_id != 0 && process->last_batch != 0 &&
		    processes_find(&pipeline->processes, process->pid) == process)
			pipeline_forget_watched(pipeline, process);
	}
}

int pipeline_evict_ended(struct pipeline *pipeline)
{
	int r;

	r = forget_threads(pipeline);
	end_threads(pipeline);
	forget_all_watched(pipeline);
	return r < 0 ? r
		     : processes_forget(&pipeline->processes, pipeline->n_batches, writer_written(pipeline->writer));
}

int pipeline_renew_tree(struct pipeline *pipeline)
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
