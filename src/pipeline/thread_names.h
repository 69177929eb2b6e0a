/* SPDX-License-Identifier: MIT */
/* thread_names.h - names of threads in Python, of the recorded processes. Private. */
#ifndef PROBING_PIPELINE_THREAD_NAMES_H
#define PROBING_PIPELINE_THREAD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id_map.h"
#include "unwind/cpython/cpython.h"

struct process_names;

/* Zeroed: none has been read. */
struct thread_names {
	struct process_names *processes;
	size_t n, allocated;
	struct id_map by_pid; /* pid + 1 -> index */
	bool is_unlimited;    /* samples are chosen by name: read all, whatever it takes */
	int64_t allowance_ns; /* CPU time that reads may take now; below 0: until it has grown */
	uint64_t refilled_ns; /* CLOCK_MONOTONIC: when it grew last; 0: never */
};

void thread_names_done(struct thread_names *names);

/*
 * thread_names_find - threading's name of a thread. Reads all names of a process together; they are valid for
 * 20 ms, and for longer if reading them takes long. Reads of all processes together take at most 2 % of the time.
 * @runtime: of the process; NULL: it has none (yet).
 * @time_ns: CLOCK_MONOTONIC.
 * Returns the name, borrowed until the next call; NULL: Python does not know the thread, cannot be read, or not now.
 */
const char *thread_names_find(struct thread_names *names, struct py_runtime *runtime, pid_t pid, pid_t tid,
			      uint64_t time_ns);

/* thread_names_by_ident - the same, by threading.get_ident(). Call it between samples (py_begin_sample). */
const char *thread_names_by_ident(struct thread_names *names, struct py_runtime *runtime, pid_t pid, uint64_t ident,
				  uint64_t time_ns);

/* thread_names_may_read - whether the reads of all processes so far leave time for another one. */
bool thread_names_may_read(struct thread_names *names, uint64_t time_ns);

/*
 * The process has ended or runs another program, or one of its threads has ended: the next thread may have the same
 * threading.get_ident().
 */
void thread_names_forget(struct thread_names *names, pid_t pid);

#endif
