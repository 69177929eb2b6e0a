/* SPDX-License-Identifier: MIT */
/* run_times.h - how long each thread ran, by the records of switches, for weights to be held against. Private.
 *
 * A sample stands for a whole period. Events that are inherited carry what is left of one from thread to thread, and begin
 * new threads with a whole one: so a thread that is shorter may be sampled for more than it ran, and mostly is not sampled.
 */
#ifndef PROBING_CAPTURE_RUN_TIMES_H
#define PROBING_CAPTURE_RUN_TIMES_H

#include "base/id_map.h"
#include "src/capture/capture.h"

struct run_time {
	bool is_known;     /* it is known whether it runs */
	uint64_t since_ns; /* CLOCK_MONOTONIC, since when it runs; 0: it does not */
	uint64_t owed_ns;  /* ran, and no sample has told of it */
	uint64_t told_ns;  /* of which samples have told */
};

/* All zero is empty. */
struct run_times {
	struct run_time *items;
	size_t n, allocated;
	struct id_map index; /* tid -> index */
};
void run_times_done(struct run_times *times);

/* run_times_note - a switch, a fork, an exit, an exec, or that records were lost. Errors: -ENOMEM. */
int run_times_note(struct run_times *times, const struct capture_event *event);

/* run_times_weigh - what a sample stands for: a period, or less where its thread has not run for so long. Errors: -ENOMEM. */
int run_times_weigh(struct run_times *times, const struct sample *sample, uint64_t *ret_ns);

/* What a thread that has just ended ran, and samples have not told of; 0: little of all that it ran, or it is not known. */
uint64_t run_times_unsampled(const struct run_times *times, pid_t tid);

/* Events were off for a while: nothing is known. */
void run_times_forget(struct run_times *times);

#endif
