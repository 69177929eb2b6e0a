/* SPDX-License-Identifier: MIT */
/* merge.c - order over the rings; see merge.h.
 *
 * Each ring is in order by itself, but a record in one may have been caused by
 * one in another: a library is mapped on CPU 0 and run on CPU 1. A reader of
 * CPU 1's ring a moment later than CPU 0's would see the sample before the
 * mapping. So reading goes in rounds: the clock is read first, the rings'
 * heads after it, and only records of a time up to that clock are returned,
 * the earliest first. The others wait for the next round.
 *
 * Invariants:
 * 1. The cause of a record comes before it. Let S be returned in the round
 *    of clock T, so S.time <= T, and let P have caused S. P was complete in its
 *    ring before S happened, hence before T, hence before any head was read in
 *    this round: P is visible, and P.time <= S.time puts it first.
 * 2. Records that did not cause one another may come out of order by the time
 *    it takes the kernel to write one: it stamps a record, then copies the
 *    stack, then publishes it, and T may fall in between.
 * 3. At most one record is current. Its memory is returned to the kernel at the
 *    next call, never earlier.
 */
#include "src/capture/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "src/capture/decode.h"

int merge_init(struct merge *merge, struct perf_ring *rings, size_t n_rings)
{
	/* malloc() aligns enough for any word of a record. */
	void *copy = malloc(RECORD_MAX_BYTES);

	if (!copy)
		return -ENOMEM;
	*merge = (struct merge){ .rings = rings, .n_rings = n_rings, .copy = copy };
	return 0;
}

void merge_done(struct merge *merge)
{
	free(merge->copy);
	*merge = (struct merge){ 0 };
}

static void take_back(struct merge *merge)
{
	if (!merge->current)
		return;
	perf_ring_advance(merge->current);
	perf_ring_release(merge->current);
	merge->current = NULL;
}

bool merge_begin(struct merge *merge, uint64_t now_ns)
{
	bool any = false;

	take_back(merge);
	merge->horizon_ns = now_ns;
	for (size_t i = 0; i < merge->n_rings; i++) {
		perf_ring_refresh(&merge->rings[i]);
		any |= merge->rings[i].n_record_bytes > 0;
	}
	return any;
}

static struct perf_ring *earliest(struct merge *merge)
{
	struct perf_ring *best = NULL;

	for (size_t i = 0; i < merge->n_rings; i++) {
		struct perf_ring *ring = &merge->rings[i];

		if (ring->n_record_bytes == 0 || ring->time_ns > merge->horizon_ns)
			continue;
		if (!best || ring->time_ns < best->time_ns)
			best = ring;
	}
	return best;
}

bool merge_time(struct merge *merge, uint64_t *ret_ns)
{
	const struct perf_ring *ring;

	take_back(merge);
	ring = earliest(merge);
	if (!ring)
		return false;
	*ret_ns = ring->time_ns;
	return true;
}

const struct perf_event_header *merge_next(struct merge *merge)
{
	struct perf_ring *ring;

	take_back(merge);
	ring = earliest(merge);
	if (!ring)
		return NULL;
	merge->current = ring;
	return perf_ring_record(ring, merge->copy);
}

const struct perf_event_header *merge_peek(const struct merge *merge, size_t n_behind)
{
	return merge->current ? perf_ring_peek(merge->current, n_behind) : NULL;
}
