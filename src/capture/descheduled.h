/* SPDX-License-Identifier: MIT */
/* descheduled.h - whether a sampled thread has not run since its sample. Private. */
#ifndef PROBING_CAPTURE_DESCHEDULED_H
#define PROBING_CAPTURE_DESCHEDULED_H

#include <sys/types.h>

#include "src/capture/perf_ring.h"

struct descheduled_query {
	pid_t tid;
	uint64_t time_ns;                /* time of the sample */
	const struct perf_ring *current; /* the ring whose current record is the sample */
};

/*
 * descheduled_since - did the thread leave its processor right after the sample, and has it not run since?
 * Looks at all switch records in the rings, read or unread. False also if the answer is unknown.
 * @rings: n_rings, of all processors, with events that report switches (PERF_RECORD_SWITCH).
 */
bool descheduled_since(const struct perf_ring *rings, size_t n_rings, const struct descheduled_query *question);

#endif
