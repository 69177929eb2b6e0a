/* SPDX-License-Identifier: MIT */
/* poll_pace.h - the time of the next poll tick.
 *
 * Ticks are due at multiples of the period, independent of the end of the previous one. One that takes
 * longer replaces those that it delays. If ticks take more than half of the period
 * on average, the period becomes longer, and shorter again when they do not.
 */
#ifndef PROBING_CAPTURE_POLL_PACE_H
#define PROBING_CAPTURE_POLL_PACE_H

#include <stdint.h>

struct poll_pace {
	uint64_t wanted_ns, period_ns;
	uint64_t longest_ns; /* 0: it was never lengthened */
	uint64_t mean_ns;    /* recent duration of ticks */
	uint64_t next_ns;    /* CLOCK_MONOTONIC, when the next is due */
	uint64_t began_ns;   /* the last one; 0: none yet */
	uint64_t n_looks, n_lost;
};

/* poll_pace_init - the first tick is due a period after now. Errors: -EINVAL a rate out of range. */
int poll_pace_init(struct poll_pace *pace, double hz, uint64_t now_ns);

/* End of a tick: computes when the next one is due, which is after now. */
void poll_pace_looked(struct poll_pace *pace, uint64_t began_ns, uint64_t now_ns);

/* End of a pause, with a tick due now; none counts as skipped. */
void poll_pace_resume(struct poll_pace *pace, uint64_t now_ns);

#endif
