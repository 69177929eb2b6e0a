/* SPDX-License-Identifier: MIT */
/* own_periods.h - keeps the periods of threads that start processes. Private. */
#ifndef PROBING_CAPTURE_OWN_PERIODS_H
#define PROBING_CAPTURE_OWN_PERIODS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { MAX_FORKING = 256 };

/* All zero is empty. */
struct own_periods {
	struct forking {
		pid_t tid; /* 0: none */
		int fd;    /* -1: it has started one process only */
	} threads[MAX_FORKING];
	size_t next; /* of the threads: replaced by the next new one */
};
void own_periods_done(struct own_periods *periods);

/*
 * own_periods_forked - a thread with inherited events has started a process. From the second one on, its events stay with it.
 * Without the right or the descriptors for that, its samples are fewer, and its time is counted all the same.
 */
void own_periods_forked(struct own_periods *periods, pid_t tid);

/* own_periods_ended - a thread has ended: its TID may be reused. */
void own_periods_ended(struct own_periods *periods, pid_t tid);

#endif
