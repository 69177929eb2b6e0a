/* SPDX-License-Identifier: MIT */
/* merge.h - the records of several rings as one stream in order of time. */
#ifndef PROBING_CAPTURE_MERGE_H
#define PROBING_CAPTURE_MERGE_H

#include <stdbool.h>

#include "src/capture/perf_ring.h"

struct merge {
	struct perf_ring *rings;
	size_t n_rings;
	uint64_t horizon_ns;       /* records up to this time may be handed out */
	struct perf_ring *current; /* whose record is out; NULL: none */
	void *copy;                /* for a record that wraps around */
};

/*
 * merge_init - over rings that outlive the merge.
 * @rings: borrowed. Errors: -ENOMEM. Ended with merge_done().
 */
int merge_init(struct merge *merge, struct perf_ring *rings, size_t n_rings);
void merge_done(struct merge *merge);

/*
 * merge_begin - start a round: read the heads of the rings.
 * @now_ns: CLOCK_MONOTONIC, read before this call; UINT64_MAX: the kernel writes no more
 *          records, all may come out.
 * Returns whether any record waits, of whatever time.
 */
bool merge_begin(struct merge *merge, uint64_t now_ns);

/* merge_time - the time of merge_next()'s next record; false: none. Its previous record is no longer borrowed. */
bool merge_time(struct merge *merge, uint64_t *ret_ns);

/*
 * merge_next - the earliest ripe record; NULL: the round is over.
 * Borrowed until the next call of merge_next() or merge_begin().
 */
const struct perf_event_header *merge_next(struct merge *merge);

/* The record so many bytes behind the borrowed one in its ring; NULL: none is known. Borrowed as long. */
const struct perf_event_header *merge_peek(const struct merge *merge, size_t n_behind);

#endif
