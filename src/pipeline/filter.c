/* SPDX-License-Identifier: MIT */
/* filter.c - see filter.h.
 *
 * A thread's name is read again from time to time, because programs set names late and change them: soon
 * at first, then once a second.
 */
#include "src/pipeline/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/glob_list.h"

enum { NAME_BYTES = 64, SOON_NS = 20000000, LATEST_NS = 1000000000 };

struct filter_thread {
	pid_t pid;
	bool is_wanted, is_forgotten;
	uint64_t next_ns, wait_ns;
};

void filter_init(struct filter *filter, const struct filter_options *options, struct thread_names *names)
{
	*filter = (struct filter){ .options = options, .names = names };
	names->is_unlimited = options->threads.n > 0;
}

void filter_done(struct filter *filter)
{
	free(filter->threads);
	id_map_done(&filter->thread_index);
	*filter = (struct filter){ 0 };
}

static bool has_python_name(struct filter *filter, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns)
{
	const char *name = thread_names_find(filter->names, runtime, pid, tid, time_ns);

	return name && glob_list_match(&filter->options->threads, name);
}

static bool has_name(const struct filter *filter, pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *name = NULL;
	char file[32];

	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	name = proc_text(pid, file, NAME_BYTES);
	return name && name[0] && glob_list_match(&filter->options->threads, name);
}

static struct filter_thread *find(struct filter *filter, pid_t tid)
{
	struct id_slot *slot = id_map_find(&filter->thread_index, (uint64_t)tid + 1);

	return slot ? &filter->threads[slot->id] : NULL;
}

/* NULL: out of memory. */
static struct filter_thread *find_or_add(struct filter *filter, pid_t pid, pid_t tid)
{
	struct filter_thread *thread = find(filter, tid);

	if (!thread) {
		if (grow(&filter->threads, filter->n_threads, &filter->threads_allocated, sizeof *filter->threads) <
			    0 ||
		    id_map_add(&filter->thread_index, (uint64_t)tid + 1, (uint32_t)filter->n_threads) < 0)
			return NULL;
		thread = &filter->threads[filter->n_threads++];
		*thread = (struct filter_thread){ .is_forgotten = true };
	}
	if (thread->pid != pid || thread->is_forgotten)
		*thread = (struct filter_thread){ .pid = pid, .wait_ns = SOON_NS };
	return thread;
}

bool filter_wants_thread(struct filter *filter, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns)
{
	const struct glob_list *wanted = &filter->options->threads;
	struct filter_thread *thread;

	if (wanted->n == 0 || glob_list_have_number(wanted, tid))
		return true;
	if (glob_list_are_numbers(wanted))
		return false;
	thread = find_or_add(filter, pid, tid);
	if (!thread)
		return false;
	if (time_ns < thread->next_ns)
		return thread->is_wanted;
	thread->next_ns = time_ns + thread->wait_ns;
	thread->wait_ns = MIN(thread->wait_ns * 2, (uint64_t)LATEST_NS);
	thread->is_wanted = has_name(filter, pid, tid) || has_python_name(filter, runtime, pid, tid, time_ns);
	return thread->is_wanted;
}

void filter_forget_thread(struct filter *filter, pid_t tid)
{
	struct filter_thread *thread = find(filter, tid);

	if (thread)
		thread->is_forgotten = true;
}

static bool runs_wanted(const struct glob_list *wanted, const struct stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind == FRAME_PYTHON &&
		    glob_list_match_function(wanted, stack->frames[i].python.code->qualname))
			return true;
	return false;
}

bool filter_wants_sample(const struct filter *filter, const struct stack *stack, const struct gil_state *gil_state)
{
	if (filter->options->gil && gil_state->gil != ANSWER_YES)
		return false;
	return filter->options->functions.n == 0 || runs_wanted(&filter->options->functions, stack);
}

bool filter_wants_all(const struct filter *filter)
{
	return filter->options->threads.n == 0 && filter->options->functions.n == 0 && !filter->options->gil;
}

void filter_trim(const struct filter *filter, struct stack *stack)
{
	size_t n = 0;

	if (!filter->options->no_native)
		return;
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind == FRAME_PYTHON || stack->frames[i].kind == FRAME_TASK)
			stack->frames[n++] = stack->frames[i];
	stack->n_frames = n;
}
