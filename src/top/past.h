/* SPDX-License-Identifier: MIT */
/* past.h - samples since the start, and those of the last seconds. Private.
 *
 * Samples arrive with stacks whose rows may not be readable yet;
 * past_absorb() counts them as soon as they are.
 */
#ifndef PROBING_TOP_PAST_H
#define PROBING_TOP_PAST_H

#include <stdbool.h>

#include "src/top/cells.h"

enum {
	PAST_BUCKET_NS = 250000000,
	PAST_MAX_WINDOW_S = 300,
	PAST_MAX_BUCKETS = PAST_MAX_WINDOW_S * 4 + 1,
	PAST_MAX_CELLS = 1 << 20, /* in all buckets: then the window gets shorter */
};

struct bucket {
	struct cells cells;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
};

struct past {
	struct cells fresh;     /* not counted yet */
	struct cells all;       /* since the start */
	struct cells news;      /* of all samples, those not yet in the sums since the start */
	struct bucket *buckets; /* a ring of PAST_MAX_BUCKETS */
	size_t first, n;
	size_t n_cells; /* total of all */
	uint64_t start_ns;
};

int past_init(struct past *past, uint64_t now_ns);
void past_done(struct past *past);

/* Forget all, and begin now. */
void past_reset(struct past *past, uint64_t now_ns);

/* Count new samples with stacks up to that id. -ENOMEM. */
int past_absorb(struct past *past, uint32_t last_stack, uint64_t now_ns);

/*
 * past_window - the last seconds.
 * @ret: added to.
 * @ret_ns: how long that is: less after the start, or where too much happened in it.
 */
int past_window(const struct past *past, uint64_t window_ns, uint64_t now_ns, struct cells *ret, uint64_t *ret_ns);

#endif
