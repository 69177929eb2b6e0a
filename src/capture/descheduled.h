/* SPDX-License-Identifier: MIT */
/* descheduled.h - whether a sampled thread has not run since its sample. Private. */
#ifndef PROBING_CAPTURE_DESCHEDULED_H
#define PROBING_CAPTURE_DESCHEDULED_H

#include <sys/types.h>

#include "base/sample.h"
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

/*
 * descheduled_stack_is_unchanged - has the thread the bytes on top of its stack that it had at its sample?
 * Compares up to 1 KiB from the stack pointer on. True also if the sample has none; false if they cannot be read.
 * Source: process_vm_readv(2).
 */
bool descheduled_stack_is_unchanged(const struct sample *sample);

#endif
