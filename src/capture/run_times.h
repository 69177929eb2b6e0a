/* SPDX-License-Identifier: MIT */
/* run_times.h - running time of each thread, by the records of switches, to check weights. Private.
 *
 * A sample's weight is a whole period. Inherited events carry the rest of a period from thread to thread, and begin
 * new threads with a whole one: a thread with a shorter life may be sampled for more than it ran, and mostly is not
 * sampled.
 */
#ifndef PROBING_CAPTURE_RUN_TIMES_H
#define PROBING_CAPTURE_RUN_TIMES_H

#include "base/id_map.h"
#include "src/capture/capture.h"

struct run_time {
	bool is_known;     /* it is known whether it runs */
	uint64_t since_ns; /* CLOCK_MONOTONIC, since when it runs; 0: it does not */
	uint64_t owed_ns;  /* ran, without a sample */
	uint64_t told_ns;  /* in samples */
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

/* run_times_weigh - the weight of a sample: a period, or less if its thread has not run for so long. Errors: -ENOMEM.
 * */
int run_times_weigh(struct run_times *times, const struct sample *sample, uint64_t *ret_ns);

/* Running time of a thread that has just ended, without its samples; 0: a small part of its time, or unknown. */
uint64_t run_times_unsampled(const struct run_times *times, pid_t tid);

/* Events were off for a while: nothing is known. */
void run_times_forget(struct run_times *times);

#endif
