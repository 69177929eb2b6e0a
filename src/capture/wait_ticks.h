/* SPDX-License-Identifier: MIT */
/* wait_ticks.h - running and waiting of threads, from the kernel's counts of each, without records of switches. Private.
 *
 * At each tick a thread's "schedstat" tells how long it has run and waited for a processor since the last one; the rest
 * it was blocked. How long is thereby exact, when is not: within a tick, one wait stands for all of them. It becomes the
 * switches (CAPTURE_SWITCH) of which those times add up.
 */
#ifndef PROBING_CAPTURE_WAIT_TICKS_H
#define PROBING_CAPTURE_WAIT_TICKS_H

#include "src/capture/capture.h"

struct wait_ticks;

/* wait_ticks_new - without any thread. -ENOMEM; -ENOSYS the kernel does not count (CONFIG_SCHED_INFO). */
int wait_ticks_new(struct wait_ticks **ret);
void wait_ticks_free(struct wait_ticks *ticks);

/*
 * wait_ticks_look - a tick of a process. Its threads at the first tick are older than the recording.
 * Events wait to be taken. Errors: -ENOMEM; -ENOSYS its counts make no sense.
 */
int wait_ticks_look(struct wait_ticks *ticks, pid_t pid);

/* wait_ticks_fork - a process that has begun since: its time counts from then on. -ENOMEM. */
int wait_ticks_fork(struct wait_ticks *ticks, pid_t pid, uint64_t time_ns);

/* wait_ticks_leave - the process has ended, and up to then its threads did what they did at the last tick. -ENOMEM. */
int wait_ticks_leave(struct wait_ticks *ticks, pid_t pid, uint64_t time_ns);

/* The next event, in order for each thread. Returns whether there is one. */
bool wait_ticks_take(struct wait_ticks *ticks, struct capture_event *ret);

/* ---- Pure accounting, for tests ---- */

/* What is known of a thread at a time; times in nanoseconds. */
struct wait_count {
	uint64_t time_ns;          /* CLOCK_MONOTONIC */
	uint64_t run_ns, delay_ns; /* on a processor; ready, and waiting for one */
	uint64_t n_runs;           /* how often it was put on a processor */
	bool is_ready;             /* on a processor or waiting for one; else blocked */
	int64_t owed_ns;           /* blocked, but not reported yet, as the kernel's counts of a running thread lag */
	uint64_t late_delay_ns;    /* counted when the delay was over, and not reported yet */
};

struct wait_step {
	uint64_t time_ns;
	bool is_out, is_preempted;
};
enum { WAIT_MAX_STEPS = 6 };

/*
 * wait_steps - the switches between two looks at a thread.
 * @last: replaced by @now. Returns how many of @ret are filled.
 */
unsigned wait_steps(struct wait_count *last, const struct wait_count *now, struct wait_step ret[WAIT_MAX_STEPS]);

#endif
