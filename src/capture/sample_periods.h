/* SPDX-License-Identifier: MIT */
/* sample_periods.h - how many events a sample stands for, where the kernel seeks a pace for them. Private. */
#ifndef PROBING_CAPTURE_SAMPLE_PERIODS_H
#define PROBING_CAPTURE_SAMPLE_PERIODS_H

#include <sys/types.h>

#include "base/id_map.h"

/* All zero is empty. */
struct sample_periods {
	struct id_map next; /* by thread and processor: how many its next sample stands for; 0: not known */
};
void sample_periods_done(struct sample_periods *paces);

/*
 * sample_periods_take - what a sample stands for.
 * @told: what the kernel says of it, which is what it will wait for next.
 * Errors: -ENOMEM.
 */
int sample_periods_take(struct sample_periods *paces, pid_t tid, unsigned cpu, uint64_t told, uint64_t *ret);

/* A thread's number may be another's from now on. */
void sample_periods_forget(struct sample_periods *paces, pid_t tid, unsigned cpu);

#endif
