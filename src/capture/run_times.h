/* SPDX-License-Identifier: MIT */
/* run_times.h - run time of each thread by the records of context switches, to weigh its samples. Private.
 *
 * A sample weighs a period. Inherited events carry the rest of a period from thread to thread, and start new threads
 * with a whole one: a shorter thread may get a sample that weighs more than the thread ran, and mostly gets none.
 */
#ifndef PROBING_CAPTURE_RUN_TIMES_H
#define PROBING_CAPTURE_RUN_TIMES_H

#include "base/id_map.h"
#include "src/capture/capture.h"

struct run_time {
	bool is_known;     /* whether the thread runs is known */
	bool is_based;     /* base_ns is known */
	bool is_over;      /* samples weigh as much as the kernel accounts to the thread, or more */
	unsigned n_since;  /* samples since the kernel's account was read */
	uint64_t since_ns; /* CLOCK_MONOTONIC, since when it runs; 0: it does not */
	uint64_t seen_ns;  /* its last sample, or its start; 0: neither is known */
	uint64_t owed_ns;  /* run time that no sample weighs */
	uint64_t told_ns;  /* weight of its samples */
	int64_t base_ns;   /* the kernel's account when told_ns was 0, at the least */
};

/*
 * run_times_account - CPU time that the kernel accounts to a thread.
 * @ret_ns: nanoseconds up to now, or up to the last clock tick (10 ms) of a thread that runs.
 * Errors: any; then records of switches alone decide.
 */
typedef int run_times_account(pid_t pid, pid_t tid, uint64_t *ret_ns);

/* All zero is empty. */
struct run_times {
	struct run_time *items;
	size_t n, allocated;
	struct id_map index;        /* tid -> index */
	run_times_account *account; /* NULL: the kernel's account is not read */
	bool has_kernel;            /* time in the kernel is sampled, too */
};
void run_times_done(struct run_times *times);

/* run_times_note - a switch, a fork, an exit, an exec, or that records were lost. Errors: -ENOMEM. */
int run_times_note(struct run_times *times, const struct capture_event *event);

/*
 * run_times_weigh - weight of a sample: the whole periods that its thread ran since the last sample, or less than one
 * where the thread ran for less. Without samples of the kernel never more than a period.
 * Errors: -ENOMEM.
 */
int run_times_weigh(struct run_times *times, const struct sample *sample, uint64_t *ret_ns);

/*
 * run_times_unsampled - run time of a thread that has just ended, which no sample weighs.
 * @end_ns: of the thread. @ret_at_ns: when it ran: at its last sample or its start, or a second before the end if
 * that is later. At the end itself other threads already go on with something else.
 * Returns nanoseconds; 0: a small part of its time, or unknown.
 */
uint64_t run_times_unsampled(const struct run_times *times, pid_t tid, uint64_t end_ns, uint64_t *ret_at_ns);

/* Events were off for a while: nothing is known. */
void run_times_forget(struct run_times *times);

#endif
