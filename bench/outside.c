/* SPDX-License-Identifier: MIT */
/* outside.c - reads the Python frames of a process from outside, at a rate, as py-spy does; see bench/stolen.py.
 *
 * Usage: bench_outside PID HZ stop|nonstop
 * stop: all threads are stopped by ptrace(2) for each reading, by default py-spy's way. nonstop: they run on, as with its
 * --nonblocking. Ends at SIGINT, or with the process, and prints how often it read, and how many frames it found.
 *
 * The order is py-spy's (0.4, src/python_spy.rs, and lock() of its crate remoteprocess): read the state of each thread, stop
 * each, look for new ones until there are none, read the frames by process_vm_readv(2), release all. The reading is ours: it
 * takes whole pages and knows code objects again, so that threads stand still for a shorter time than with py-spy.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/proc.h"
#include "base/util.h"
#include "unwind/cpython/cpython.h"

enum { MAX_ANCHORS = 1024, MAX_THREADS = 4096 };

struct stopped {
	pid_t tid;
	int signal; /* with which it goes on */
};

struct outside {
	pid_t pid;
	bool stops;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct py_runtime *runtime;
	struct py_anchor anchors[MAX_ANCHORS];
	struct py_frames frames;
	struct stopped stopped[MAX_THREADS];
	size_t n_stopped;
	uint64_t n_readings, n_frames;
};

static volatile sig_atomic_t is_to_end;

static void end(int signal)
{
	(void)signal;
	is_to_end = 1;
}

/* ---- Stopping ---- */

static bool is_stopped(const struct outside *outside, pid_t tid)
{
	for (size_t i = 0; i < outside->n_stopped; i++)
		if (outside->stopped[i].tid == tid)
			return true;
	return false;
}

/* A thread that ends meanwhile is none. Returns whether it is stopped. */
static bool stop_one(struct outside *outside, pid_t tid)
{
	int status;

	if (outside->n_stopped == MAX_THREADS || ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status))
		return false;
	outside->stopped[outside->n_stopped++] = (struct stopped){
		.tid = tid,
		.signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status),
	};
	return true;
}

/* Negative errno. */
static int stop_all(struct outside *outside)
{
	bool any = true;

	while (any) {
		CLEANUP(freep) pid_t *tids = NULL;
		size_t n;
		int r = proc_tasks(outside->pid, &tids, &n);

		if (r < 0)
			return r;
		any = false;
		for (size_t i = 0; i < n; i++)
			any |= !is_stopped(outside, tids[i]) && stop_one(outside, tids[i]);
	}
	return 0;
}

static void release_all(struct outside *outside)
{
	while (outside->n_stopped > 0) {
		const struct stopped *one = &outside->stopped[--outside->n_stopped];

		(void)ptrace(PTRACE_DETACH, one->tid, NULL, (void *)(intptr_t)one->signal);
	}
}

/* ---- Reading ---- */

static void read_thread(struct outside *outside, pid_t tid)
{
	int n = py_live_anchors(outside->runtime, tid, false, outside->anchors, MAX_ANCHORS);
	uint64_t frame_end, outer;

	for (int i = 0; i < n; i++)
		if (py_walk(outside->runtime, outside->anchors[i].top, &outside->frames, &frame_end, &outer) < 0)
			return;
}

/* Negative errno: it has ended. */
static int read_all(struct outside *outside)
{
	CLEANUP(freep) pid_t *tids = NULL;
	struct proc_stat stat;
	size_t n;
	int r;

	r = proc_tasks(outside->pid, &tids, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		(void)proc_stat_read(outside->pid, tids[i], &stat);
	if (r >= 0 && outside->stops)
		r = stop_all(outside);
	py_begin_sample(outside->runtime);
	outside->frames.n = 0;
	for (size_t i = 0; r >= 0 && i < n; i++)
		read_thread(outside, tids[i]);
	release_all(outside);
	outside->n_readings++;
	outside->n_frames += outside->frames.n;
	return r;
}

static int open_process(struct outside *outside)
{
	char version[32];
	int r;

	r = module_table_new(&outside->modules);
	if (r >= 0)
		r = address_space_new(outside->pid, outside->modules, &outside->space);
	if (r >= 0)
		r = address_space_load(outside->space);
	if (r >= 0)
		r = remote_open_process(outside->pid, &outside->remote);
	if (r >= 0)
		r = py_runtime_find(outside->space, outside->remote, version, &outside->runtime);
	return r;
}

static void close_process(struct outside *outside)
{
	py_frames_done(&outside->frames);
	py_runtime_free(outside->runtime);
	remote_free(outside->remote);
	address_space_free(outside->space);
	module_table_free(outside->modules);
}

static int read_at(struct outside *outside, double hz)
{
	uint64_t period_ns = (uint64_t)(1e9 / hz), next_ns = monotonic_ns();
	int r = 0;

	while (!is_to_end && r >= 0) {
		struct timespec until;

		next_ns = MAX(next_ns + period_ns, monotonic_ns());
		until = (struct timespec){ (time_t)(next_ns / 1000000000u), (long)(next_ns % 1000000000u) };
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0)
			r = read_all(outside);
	}
	return r == -ESRCH ? 0 : r;
}

int main(int argc, char **argv)
{
	static struct outside outside;
	int r;

	if (argc != 4 || atoi(argv[1]) <= 0 || atof(argv[2]) <= 0 ||
	    (strcmp(argv[3], "stop") != 0 && strcmp(argv[3], "nonstop") != 0)) {
		fprintf(stderr, "usage: bench_outside PID HZ stop|nonstop\n");
		return 2;
	}
	outside.pid = atoi(argv[1]);
	outside.stops = strcmp(argv[3], "stop") == 0;
	signal(SIGINT, end);
	r = open_process(&outside);
	if (r >= 0)
		r = read_at(&outside, atof(argv[2]));
	if (r < 0)
		fprintf(stderr, "bench_outside: process %s: %s\n", argv[1], strerror(-r));
	else
		printf("%llu readings, %.1f frames in each\n", (unsigned long long)outside.n_readings,
		       outside.n_readings > 0 ? (double)outside.n_frames / (double)outside.n_readings : 0);
	close_process(&outside);
	return r < 0 || outside.n_frames == 0;
}
