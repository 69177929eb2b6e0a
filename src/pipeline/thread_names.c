/* SPDX-License-Identifier: MIT */
/* thread_names.c - see thread_names.h. */
#include "src/pipeline/thread_names.h"

#include <stdlib.h>

#include "base/util.h"

/*
 * Reading names takes at most 1/READ_SHARE of the time; 1/MISSING_SHARE while a requested thread is newer than the last
 * read.
 */
enum { NAMES_SERVE_NS = 20000000, READ_SHARE = 500, MISSING_SHARE = 50 };

/* Of all processes: at most 1/ALL_SHARE of the time, and so much at once. A tree of forks has hundreds in a second. */
enum { ALL_SHARE = 50, ALL_AT_ONCE_NS = 50000000 };

struct process_names {
	struct py_thread_names names;
	uint64_t missing_ns, next_ns; /* CLOCK_MONOTONIC: next read for an unlisted thread, and for any */
};

void thread_names_done(struct thread_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		py_thread_names_done(&names->processes[i].names);
	free(names->processes);
	id_map_done(&names->by_pid);
	*names = (struct thread_names){ 0 };
}

static struct process_names *find(const struct thread_names *names, pid_t pid)
{
	const struct id_slot *slot = id_map_find(&names->by_pid, (uint64_t)pid + 1);

	return slot ? &names->processes[slot->id] : NULL;
}

/* NULL: out of memory. */
static struct process_names *find_or_add(struct thread_names *names, pid_t pid)
{
	struct process_names *found = find(names, pid);

	if (found)
		return found;
	if (grow(&names->processes, names->n, &names->allocated, sizeof *names->processes) < 0 ||
	    id_map_add(&names->by_pid, (uint64_t)pid + 1, (uint32_t)names->n) < 0)
		return NULL;
	names->processes[names->n] = (struct process_names){ 0 };
	return &names->processes[names->n++];
}

bool thread_names_may_read(struct thread_names *names, uint64_t time_ns)
{
	if (names->refilled_ns == 0)
		names->allowance_ns = ALL_AT_ONCE_NS;
	else if (time_ns > names->refilled_ns)
		names->allowance_ns = MIN(names->allowance_ns + (int64_t)((time_ns - names->refilled_ns) / ALL_SHARE),
					  (int64_t)ALL_AT_ONCE_NS);
	names->refilled_ns = MAX(names->refilled_ns, time_ns);
	return names->is_unlimited || names->allowance_ns > 0;
}

static void read_names(struct thread_names *names, struct process_names *process, struct py_runtime *runtime,
		       uint64_t time_ns)
{
	uint64_t began_ns = thread_cpu_ns(), took_ns;

	py_thread_names_done(&process->names);
	(void)py_thread_names_read(runtime, &process->names); /* unreadable threads have no name */
	took_ns = thread_cpu_ns() - began_ns;
	names->allowance_ns -= (int64_t)took_ns;
	process->missing_ns = time_ns + MAX(took_ns * MISSING_SHARE, (uint64_t)NAMES_SERVE_NS);
	process->next_ns = time_ns + MAX(took_ns * READ_SHARE, (uint64_t)NAMES_SERVE_NS);
}

const char *thread_names_by_ident(struct thread_names *names, struct py_runtime *runtime, pid_t pid, uint64_t ident,
				  uint64_t time_ns)
{
	struct process_names *process = find_or_add(names, pid);
	const char *name;

	if (!process)
		return NULL;
	name = time_ns < process->next_ns ? py_thread_name(&process->names, ident) : NULL;
	if (name || time_ns < process->missing_ns || !thread_names_may_read(names, time_ns))
		return name;
	read_names(names, process, runtime, time_ns);
	return py_thread_name(&process->names, ident);
}

const char *thread_names_find(struct thread_names *names, struct py_runtime *runtime, pid_t pid, pid_t tid,
			      uint64_t time_ns)
{
	struct py_state state;

	if (!runtime)
		return NULL;
	py_begin_sample(runtime);
	return py_state_of(runtime, tid, &state) < 0 ? NULL
						     : thread_names_by_ident(names, runtime, pid, state.ident, time_ns);
}

/* PIDs are reused, so the slot stays for the next process. */
void thread_names_forget(struct thread_names *names, pid_t pid)
{
	struct process_names *process = find(names, pid);

	if (!process)
		return;
	py_thread_names_done(&process->names);
	process->missing_ns = process->next_ns = 0;
}
