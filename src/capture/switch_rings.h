/* SPDX-License-Identifier: MIT */
/* switch_rings.h - records of switches of all processors, as events in order of time. Private.
 *
 * Nothing here uses the kernel: another writer fills the rings in memory.
 */
#ifndef PROBING_CAPTURE_SWITCH_RINGS_H
#define PROBING_CAPTURE_SWITCH_RINGS_H

#include "src/capture/capture.h"
#include "src/capture/switch_record.h"

struct switch_rings {
	struct switch_ring *rings; /* one a processor; borrowed */
	struct switch_reader {
		uint64_t position, head; /* [position, head) is known, but not read */
	} * readers;
	size_t n;
	uint64_t horizon_ns; /* records up to this time may be handed out */
	size_t next;         /* the ring with the earliest one; n: none is ripe */
	bool has_left;       /* the event of the leaving thread has been given out */
};

/* switch_rings_init - @rings: n of them, borrowed, which outlive it. -ENOMEM. Ended with switch_rings_done(). */
int switch_rings_init(struct switch_rings *rings, struct switch_ring *shared, size_t n);
void switch_rings_done(struct switch_rings *rings);

/*
 * switch_rings_begin - start a round: release what was read, and read the heads of the rings.
 * @now_ns: CLOCK_MONOTONIC, read before this call: see merge_begin().
 * Returns whether any record waits, of whatever time.
 */
bool switch_rings_begin(struct switch_rings *rings, uint64_t now_ns);

/* switch_rings_time - when the next event was; false: the round is over. */
bool switch_rings_time(const struct switch_rings *rings, uint64_t *ret_ns);

/*
 * switch_rings_take - that event: CAPTURE_SWITCH, or CAPTURE_LOST where records before it found no room.
 * To be called only where switch_rings_time() is true.
 */
void switch_rings_take(struct switch_rings *rings, struct capture_event *ret);

/* switch_rings_lost - how many found no room, ever. */
uint64_t switch_rings_lost(const struct switch_rings *rings);

#endif
