/* SPDX-License-Identifier: MIT */
/* past.c - see past.h.
 *
 * Memory is bounded: buckets older than the longest window are dropped, and the oldest
 * before that if all together have too many cells. The sums since the start
 * grow only with the number of different stacks, which top.c bounds.
 */
#include "src/top/past.h"

#include <errno.h>
#include <string.h>

int past_init(struct past *past, uint64_t now_ns)
{
	memset(past, 0, sizeof *past);
	past->buckets = calloc(PAST_MAX_BUCKETS, sizeof *past->buckets);
	past->start_ns = now_ns;
	return past->buckets ? 0 : -ENOMEM;
}

static struct bucket *bucket_nth(const struct past *past, size_t n)
{
	return &past->buckets[(past->first + n) % PAST_MAX_BUCKETS];
}

static void drop_oldest(struct past *past)
{
	struct bucket *bucket = bucket_nth(past, 0);

	past->n_cells -= bucket->cells.n;
	cells_done(&bucket->cells);
	past->first = (past->first + 1) % PAST_MAX_BUCKETS;
	past->n--;
}

void past_reset(struct past *past, uint64_t now_ns)
{
	while (past->n > 0)
		drop_oldest(past);
	cells_done(&past->fresh);
	cells_done(&past->all);
	cells_done(&past->news);
	past->start_ns = now_ns;
}

void past_done(struct past *past)
{
	if (past->buckets)
		past_reset(past, 0);
	free(past->buckets);
	memset(past, 0, sizeof *past);
}

/* The current bucket; drop the oldest if there is no space. */
static struct bucket *current_bucket(struct past *past, uint64_t now_ns)
{
	struct bucket *bucket = past->n > 0 ? bucket_nth(past, past->n - 1) : NULL;

	if (bucket && now_ns - bucket->start_ns < PAST_BUCKET_NS)
		return bucket;
	if (past->n == PAST_MAX_BUCKETS)
		drop_oldest(past);
	bucket = bucket_nth(past, past->n++);
	bucket->start_ns = now_ns;
	return bucket;
}

static int count(struct past *past, struct bucket *bucket, const struct cell *cell)
{
	size_t n_before = bucket->cells.n;
	int r;

	r = cells_add(&bucket->cells, cell);
	past->n_cells += bucket->cells.n - n_before;
	if (r >= 0)
		r = cells_add(&past->all, cell);
	if (r >= 0)
		r = cells_add(&past->news, cell);
	return r;
}

int past_absorb(struct past *past, uint32_t last_stack, uint64_t now_ns)
{
	struct bucket *bucket = current_bucket(past, now_ns);
	struct cells later = { 0 };
	int r = 0;

	for (size_t i = 0; i < past->fresh.n && r >= 0; i++) {
		const struct cell *cell = &past->fresh.items[i];

		r = cell->stack > last_stack ? cells_add(&later, cell) : count(past, bucket, cell);
	}
	cells_done(&past->fresh);
	past->fresh = later;
	while (past->n > 1 && past->n_cells > PAST_MAX_CELLS)
		drop_oldest(past);
	return r;
}

int past_window(const struct past *past, uint64_t window_ns, uint64_t now_ns, struct cells *ret, uint64_t *ret_ns)
{
	uint64_t start_ns = now_ns;
	int r = 0;

	for (size_t i = past->n; i-- > 0 && r >= 0;) {
		const struct bucket *bucket = bucket_nth(past, i);

		/* A bucket contains the samples between the previous bucket's start and its own. */
		if (now_ns > bucket->start_ns && now_ns - bucket->start_ns >= window_ns)
			break;
		start_ns = i > 0 ? bucket_nth(past, i - 1)->start_ns : past->start_ns;
		r = cells_add_all(ret, &bucket->cells);
	}
	*ret_ns = now_ns > start_ns ? MIN(now_ns - start_ns, window_ns) : 0;
	return r;
}
