/* SPDX-License-Identifier: MIT */
/*
 * gil.c - who holds the GIL, and who waits for it, while all threads run on.
 *
 * A look reads the interpreter's memory and the system call of each thread: nothing is stopped. Within a look the lock may change hands,
 * so single looks may name two holders or none; the sums say how often threads wait.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/backtrace/session.h"
#include "src/backtrace/target.h"

/* A waiting thread sleeps for 5 ms at a time (sys.getswitchinterval()), so the pauses are no multiple of that. */
enum { MAX_READINGS = 25, MIN_READINGS = 5, MAX_READS = 1000, PAUSE_US = 8300, MAX_NAME_BYTES = 64 };

void backtrace_gil_free(struct backtrace_gil_thread *threads, size_t n)
{
	for (size_t i = 0; threads && i < n; i++)
		free(threads[i].name);
	free(threads);
}

static void look_at(struct target *target, struct backtrace_gil_thread *thread)
{
	struct py_state state;

	if (!target_state(target, thread->tid, &state))
		return;
	thread->ident = state.ident;
	thread->n_readings++;
	if (state.holds_gil == PY_YES)
		thread->n_held++;
	else if (target_waits_for_gil(target, thread->tid) == PY_YES)
		thread->n_waited++;
}

static void look_at_all(struct target *target, struct backtrace_gil_thread *threads, size_t n)
{
	size_t n_readings = MIN(MAX((size_t)MAX_READS / MAX(n, (size_t)1), (size_t)MIN_READINGS), (size_t)MAX_READINGS);

	for (size_t i = 0; i < n_readings; i++) {
		if (i > 0)
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_US * 1000 }, NULL);
		py_begin_sample(target->runtime);
		for (size_t j = 0; j < n; j++)
			look_at(target, &threads[j]);
	}
}

/* Threads that the interpreter does not know are left out. */
static int name_threads(struct target *target, struct backtrace_gil_thread *threads, size_t *n)
{
	CLEANUP(py_thread_names_done) struct py_thread_names names = { 0 };
	CLEANUP(freep) char *process = proc_text(target->pid, "comm", MAX_NAME_BYTES);
	size_t n_kept = 0;

	if (!process || py_thread_names_read(target->runtime, &names) == -ENOMEM)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++) {
		CLEANUP(freep) char *comm = NULL;
		char file[64];

		if (threads[i].n_readings == 0)
			continue;
		snprintf(file, sizeof file, "task/%d/comm", (int)threads[i].tid);
		comm = proc_text(target->pid, file, MAX_NAME_BYTES);
		threads[n_kept] = threads[i];
		threads[n_kept].name = comm ? strdup(py_thread_title(py_thread_name(&names, threads[i].ident), comm,
								     process))
					    : NULL;
		if (!threads[n_kept++].name)
			return -ENOMEM;
	}
	*n = n_kept;
	return 0;
}

int backtrace_gil_take(struct backtrace_session *session, pid_t pid, struct backtrace_gil_thread **ret, size_t *ret_n)
{
	CLEANUP(target_freep) struct target *target = NULL;
	CLEANUP(freep) pid_t *tids = NULL;
	struct backtrace_gil_thread *threads;
	size_t n, n_all;
	int r;

	r = proc_tasks(pid, &tids, &n_all);
	if (r >= 0)
		r = target_open(pid, session->modules, &target);
	if (r < 0)
		return r;
	threads = calloc(n_all + 1, sizeof *threads);
	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < n_all; i++)
		threads[i].tid = tids[i];
	n = target->runtime ? n_all : 0;
	if (n > 0) {
		look_at_all(target, threads, n);
		r = name_threads(target, threads, &n);
	}
	if (r < 0) {
		backtrace_gil_free(threads, n_all);
		return r;
	}
	*ret = threads;
	*ret_n = n;
	return 0;
}
