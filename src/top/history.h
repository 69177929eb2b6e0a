/* history.h - samples since the start, and those of the last seconds. Private.
 *
 * Samples come in fresh, with stacks whose rows may not be readable yet;
 * history_absorb() counts them as soon as they are.
 */
#ifndef PROBING_TOP_HISTORY_H
#define PROBING_TOP_HISTORY_H

#include <stdbool.h>

#include "src/top/cells.h"

enum {
	HISTORY_BUCKET_NS = 250000000,
	HISTORY_MAX_WINDOW_S = 300,
	HISTORY_MAX_BUCKETS = HISTORY_MAX_WINDOW_S * 4 + 1,
	HISTORY_MAX_CELLS = 1 << 20, /* in all buckets: then the window gets shorter */
};

struct bucket {
	struct cells cells;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
};

struct history {
	struct cells fresh; /* not counted yet */
	struct cells all;   /* since the start */
	struct cells news;  /* of all, what history_take_news() has not shown yet */
	struct bucket *buckets; /* a ring of HISTORY_MAX_BUCKETS */
	size_t first, n;
	size_t n_cells; /* in all of them */
	uint64_t start_ns;
};

int history_init(struct history *history, uint64_t now_ns);
void history_done(struct history *history);

/* Forget all, and begin now. */
void history_reset(struct history *history, uint64_t now_ns);

/* Count what is fresh and has a stack up to that id. -ENOMEM. */
int history_absorb(struct history *history, uint32_t last_stack, uint64_t now_ns);

/*
 * history_window - the last seconds.
 * @ret: added to.
 * @ret_ns: how long that is: less after the start, or where too much happened in it.
 */
int history_window(const struct history *history, uint64_t window_ns, uint64_t now_ns, struct cells *ret,
		   uint64_t *ret_ns);

#endif
