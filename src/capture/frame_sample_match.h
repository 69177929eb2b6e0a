/* SPDX-License-Identifier: MIT */
/* frame_sample_match.h - assigns Python frames to their samples.
 *
 * One interrupt writes both into its processor's ring, the frames first, and nothing else is
 * written in between. So a sample has the frames of the record right before it, or none: if one of
 * the two found no room, a record of lost ones precedes the next one. Then no two adjacent records
 * have the same thread and time.
 */
#ifndef PROBING_CAPTURE_FRAME_SAMPLE_MATCH_H
#define PROBING_CAPTURE_FRAME_SAMPLE_MATCH_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/python_record.h"

struct frame_sample_match {
	struct pending {
		bool is_full;
		uint64_t n_malformed; /* of the ring, then: a skipped record since may have been between the two */
		struct python_record *record;
	} * rings; /* one a ring */
	size_t n;
	uint64_t began_ns; /* CLOCK_MONOTONIC; frames of before do not count as unpaired */
	uint64_t unpaired; /* frames without a sample */
	uint64_t malformed;
};

/* frame_sample_match_init - for that many rings. -ENOMEM. Ended with frame_sample_match_done(). */
int frame_sample_match_init(struct frame_sample_match *pairs, size_t n_rings);
void frame_sample_match_done(struct frame_sample_match *pairs);

/* frame_sample_match_keep - a record of Python frames, for the sample that comes next in its ring. */
void frame_sample_match_keep(struct frame_sample_match *pairs, size_t ring, uint64_t n_malformed,
			     const struct perf_event_header *record);

/*
 * frame_sample_match_take - the Python frames of a record of another kind.
 * NULL: none, or it is no sample. Borrowed until the next frame_sample_match_keep() of that ring.
 */
const struct python_record *frame_sample_match_take(struct frame_sample_match *pairs, size_t ring, uint64_t n_malformed,
						    const struct perf_event_header *record);

#endif
