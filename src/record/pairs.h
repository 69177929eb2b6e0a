/* pairs.h - Python frames and the samples that they belong to.
 *
 * One interrupt writes both into its processor's ring, the frames first, and nothing else
 * is written there in between. So a sample has the frames of the record right before it,
 * or none: where one of the two found no room, the kernel tells of lost records before the
 * next one, and no two neighbours are of one thread and moment.
 */
#ifndef PROBING_RECORD_PAIRS_H
#define PROBING_RECORD_PAIRS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/python_record.h"

struct pairs {
	struct pending {
		bool is_full;
		uint64_t n_malformed; /* of the ring, then: what was skipped since may have been between the two */
		struct python_record *record;
	} *rings; /* one a ring */
	size_t n;
	uint64_t unpaired;  /* frames that no sample came for */
	uint64_t malformed;
};

/* pairs_init - for that many rings. -ENOMEM. Ended with pairs_done(). */
int pairs_init(struct pairs *pairs, size_t n_rings);
void pairs_done(struct pairs *pairs);

/* pairs_keep - a record of Python frames, for the sample that comes next in its ring. */
void pairs_keep(struct pairs *pairs, size_t ring, uint64_t n_malformed, const struct perf_event_header *record);

/*
 * pairs_take - what belongs to a record that is none of Python frames.
 * NULL: nothing, or it is no sample. Borrowed until the next pairs_keep() of that ring.
 */
const struct python_record *pairs_take(struct pairs *pairs, size_t ring, uint64_t n_malformed,
				       const struct perf_event_header *record);

#endif
