/* SPDX-License-Identifier: MIT */
/* sample_periods.h - how many events a sample represents if the kernel adapts the period. Private. */
#ifndef PROBING_CAPTURE_SAMPLE_PERIODS_H
#define PROBING_CAPTURE_SAMPLE_PERIODS_H

#include <sys/types.h>

#include "base/id_map.h"

/* All zero is empty. */
struct sample_periods {
	struct id_map next; /* by thread and processor: the weight of its next sample; 0: unknown */
};
void sample_periods_done(struct sample_periods *paces);

/*
 * sample_periods_take - the weight of a sample.
 * @told: the kernel's period in the sample, which is that of the next one.
 * Errors: -ENOMEM.
 */
int sample_periods_take(struct sample_periods *paces, pid_t tid, unsigned cpu, uint64_t told, uint64_t *ret);

/* A thread's number may be another's from now on. */
void sample_periods_forget(struct sample_periods *paces, pid_t tid, unsigned cpu);

#endif
