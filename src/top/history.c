/* history.c - see history.h.
 *
 * Memory is bounded: buckets older than the longest window go, and the oldest
 * before that when all together hold too many cells. What counts from the start
 * grows with the number of different stacks alone, which top.c bounds.
 */
#include "src/top/history.h"

#include <errno.h>
#include <string.h>

int history_init(struct history *history, uint64_t now_ns)
{
	memset(history, 0, sizeof *history);
	history->buckets = calloc(HISTORY_MAX_BUCKETS, sizeof *history->buckets);
	history->start_ns = now_ns;
	return history->buckets ? 0 : -ENOMEM;
}

static struct bucket *bucket_nth(const struct history *history, size_t n)
{
	return &history->buckets[(history->first + n) % HISTORY_MAX_BUCKETS];
}

static void drop_oldest(struct history *history)
{
	struct bucket *bucket = bucket_nth(history, 0);

	history->n_cells -= bucket->cells.n;
	cells_done(&bucket->cells);
	history->first = (history->first + 1) % HISTORY_MAX_BUCKETS;
	history->n--;
}

void history_reset(struct history *history, uint64_t now_ns)
{
	while (history->n > 0)
		drop_oldest(history);
	cells_done(&history->fresh);
	cells_done(&history->all);
	cells_done(&history->news);
	history->start_ns = now_ns;
}

void history_done(struct history *history)
{
	if (history->buckets)
		history_reset(history, 0);
	free(history->buckets);
	memset(history, 0, sizeof *history);
}

/* The bucket of now; older ones go when there is no room. */
static struct bucket *current_bucket(struct history *history, uint64_t now_ns)
{
	struct bucket *bucket = history->n > 0 ? bucket_nth(history, history->n - 1) : NULL;

	if (bucket && now_ns - bucket->start_ns < HISTORY_BUCKET_NS)
		return bucket;
	if (history->n == HISTORY_MAX_BUCKETS)
		drop_oldest(history);
	bucket = bucket_nth(history, history->n++);
	bucket->start_ns = now_ns;
	return bucket;
}

static int count(struct history *history, struct bucket *bucket, const struct cell *cell)
{
	size_t n_before = bucket->cells.n;
	int r;

	r = cells_add(&bucket->cells, cell);
	history->n_cells += bucket->cells.n - n_before;
	if (r >= 0)
		r = cells_add(&history->all, cell);
	if (r >= 0)
		r = cells_add(&history->news, cell);
	return r;
}

int history_absorb(struct history *history, uint32_t last_stack, uint64_t now_ns)
{
	struct bucket *bucket = current_bucket(history, now_ns);
	struct cells later = { 0 };
	int r = 0;

	for (size_t i = 0; i < history->fresh.n && r >= 0; i++) {
		const struct cell *cell = &history->fresh.items[i];

		r = cell->stack > last_stack ? cells_add(&later, cell) : count(history, bucket, cell);
	}
	cells_done(&history->fresh);
	history->fresh = later;
	while (history->n > 1 && history->n_cells > HISTORY_MAX_CELLS)
		drop_oldest(history);
	return r;
}

int history_window(const struct history *history, uint64_t window_ns, uint64_t now_ns, struct cells *ret,
		   uint64_t *ret_ns)
{
	uint64_t start_ns = now_ns;
	int r = 0;

	for (size_t i = history->n; i-- > 0 && r >= 0;) {
		const struct bucket *bucket = bucket_nth(history, i);

		/* A bucket holds what was there when it began: samples since the one before. */
		if (now_ns > bucket->start_ns && now_ns - bucket->start_ns >= window_ns)
			break;
		start_ns = i > 0 ? bucket_nth(history, i - 1)->start_ns : history->start_ns;
		r = cells_add_all(ret, &bucket->cells);
	}
	*ret_ns = now_ns > start_ns ? MIN(now_ns - start_ns, window_ns) : 0;
	return r;
}
