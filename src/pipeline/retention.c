/* SPDX-License-Identifier: MIT */
/* retention.c - see retention.h.
 *
 * Samples can be dropped at any time. Stacks, frames and names cannot while the capturing thread may still
 * use their numbers, which it keeps in memory as a tree. So from time to time it is asked to
 * begin a new tree, with new numbers; former ones without samples can be dropped then. A
 * program does the same things again and again, and its stacks are then in the file once per tree:
 * a new one begins when as many samples have been dropped as remain, so there are two or three.
 *
 * All steps are short compared with the time between two batches.
 */
#include "src/pipeline/retention.h"

#include "base/util.h"

enum {
	STEP = 4096,       /* samples dropped per transaction */
	MAX_STEPS = 64,    /* steps after one batch */
	ENOUGH_ROWS = 512, /* about 10 KiB */
	MAX_LOG_BYTES = 4 << 20,
	MIN_LOG_BYTES = 64 << 10,
	ROOM_PARTS = 16,  /* free 1/16 of the limit at once */
	SLACK_PARTS = 32, /* a sample may exceed its retention time by 1/32 */
	MIN_VACUUM_BYTES = 1 << 20,
	VACUUM_STEP_BYTES = 4 << 20,
	STEP_BLOCKS = 64, /* blocks of rows that are dropped at once */
	FEW_SAMPLES = 256,
};
#define RENEW_EVERY_NS 60000000000u
#define LOOK_ANYWAY_NS 5000000000u

static int64_t log_bytes(const struct store_limits *limits)
{
	return MAX(MIN(limits->max_bytes / 8, (int64_t)MAX_LOG_BYTES), (int64_t)MIN_LOG_BYTES);
}

int retention_init(struct retention *trim, struct store *store, const struct store_limits *limits)
{
	*trim = (struct retention){ .limits = *limits, .renewed_ns = monotonic_ns() };
	return limits->max_bytes > 0 ? store_limit_log(store, log_bytes(limits)) : 0;
}

/* Limit of the database file; the log beside it counts, too. */
static int64_t most_bytes(const struct retention *trim)
{
	return trim->limits.max_bytes - log_bytes(&trim->limits);
}

/* Reserve space for the next batch. */
static bool is_over(const struct retention *trim, const struct store_space *space, unsigned room_parts)
{
	int64_t most = most_bytes(trim);

	return trim->limits.max_bytes > 0 &&
	       space->used_bytes + MIN(trim->growth_bytes, most / 2) > most - most / ROOM_PARTS * room_parts;
}

/* Keep a decaying maximum of recent batch sizes. */
static void note_growth(struct retention *trim, const struct store_space *space)
{
	trim->growth_bytes = MAX(trim->growth_bytes - trim->growth_bytes / 8, space->used_bytes - trim->left_bytes);
}

static int finish_step(struct store *store, int r)
{
	if (r >= 0)
		r = store_commit(store);
	if (r < 0)
		store_rollback(store);
	return r;
}

/* Returns the number of dropped samples. */
static int drop_some(struct retention *trim, struct store *store, int64_t max, uint64_t before_ns)
{
	int64_t n = 0;
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = finish_step(store, store_drop_oldest(store, max, before_ns, &n));
	if (r < 0)
		return r;
	trim->since_renewal += n;
	trim->since_sweep += n;
	trim->n_dropped += (uint64_t)n;
	return (int)n;
}

/* Drop stacks and frames that no sample refers to. */
static int sweep(struct retention *trim, struct store *store, struct symbol_writer *names)
{
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = finish_step(store, store_drop_unused(store, trim->old_stacks, trim->old_frames));
	trim->since_sweep = 0;
	return r < 0 ? r : symbol_writer_forget_dropped(names);
}

/* Whether a sweep would free enough. */
static bool is_worth_it(const struct retention *trim, const struct store_space *space)
{
	return trim->old_stacks > 0 && trim->since_sweep > space->n_samples / 4;
}

/* Rows that programs wrote, and metrics, also go where there are no samples. */
static int drop_old_rows(struct store *store, uint64_t before_ns, uint64_t kept_ns)
{
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = store_drop_old_rows(store, before_ns);
	if (r >= 0)
		r = store_drop_metrics_before(store, store_seconds(before_ns));
	return finish_step(store,
			   r < 0 ? r : store_cut_metrics(store, store_seconds(before_ns), store_seconds(kept_ns)));
}

/* They alone are too large. */
static int drop_first_rows(const struct retention *trim, struct store *store, struct store_space *space)
{
	int64_t n = 1;
	int r = 0;

	while (r >= 0 && n > 0 && is_over(trim, space, 1)) {
		r = store_begin(store);
		if (r >= 0)
			r = finish_step(store, store_drop_first_rows(store, STEP_BLOCKS, &n));
		if (r >= 0)
			r = store_read_space(store, space);
	}
	return r;
}

/* The same of metrics: those of a program that never runs have no samples beside them. */
static int drop_first_metrics(const struct retention *trim, struct store *store, struct store_space *space)
{
	bool is_dropped = true;
	int r = 0;

	while (r >= 0 && is_dropped && is_over(trim, space, 1)) {
		r = store_begin(store);
		if (r >= 0)
			r = finish_step(store, store_drop_first_metrics(store, &is_dropped));
		if (r >= 0)
			r = store_read_space(store, space);
	}
	return r;
}

static int drop_old(struct retention *trim, struct store *store, uint64_t now_ns)
{
	uint64_t keep_ns = trim->limits.keep_ns, slack_ns = keep_ns / SLACK_PARTS;
	int n;

	if (keep_ns == 0 || now_ns < keep_ns + slack_ns)
		return 0;
	n = drop_some(trim, store, 1, now_ns - keep_ns - slack_ns);
	for (int i = 0; i < MAX_STEPS && n > 0; i++)
		n = drop_some(trim, store, STEP, now_ns - keep_ns);
	return n < 0 ? n : drop_old_rows(store, now_ns - keep_ns - slack_ns, now_ns - keep_ns);
}

/* Drop the oldest samples, and finally what only they refer to. */
static int make_room(struct retention *trim, struct store *store, struct symbol_writer *names,
		     struct store_space *space)
{
	int r = 0;

	if (!is_over(trim, space, 0))
		return 0;
	for (int i = 0; i < MAX_STEPS && r >= 0 && is_over(trim, space, 1) && space->n_samples > 0; i++) {
		r = drop_some(trim, store, MIN(space->n_samples / 16 + 16, (int64_t)STEP), UINT64_MAX);
		if (r >= 0 && is_worth_it(trim, space))
			r = sweep(trim, store, names);
		if (r >= 0)
			r = store_read_space(store, space);
		if (trim->since_renewal / 2 > space->n_samples)
			break; /* stacks take the rest, and become free with the next tree */
	}
	if (r >= 0 && space->n_samples <= FEW_SAMPLES)
		r = drop_first_rows(trim, store, space);
	if (r >= 0 && space->n_samples <= FEW_SAMPLES)
		r = drop_first_metrics(trim, store, space);
	return r;
}

/* Keep free space in the file for reuse, unless it is large. */
static int give_back(const struct retention *trim, struct store *store, const struct store_space *space)
{
	int64_t excess = space->used_bytes + space->free_bytes - most_bytes(trim);

	if (trim->limits.max_bytes > 0 && excess > 0 && space->free_bytes > 0)
		return store_give_back(store, MIN(excess, space->free_bytes));
	if (space->free_bytes < MIN_VACUUM_BYTES || space->free_bytes < space->used_bytes / 2)
		return 0;
	return store_give_back(store, MIN(space->free_bytes / 2, (int64_t)VACUUM_STEP_BYTES));
}

static void judge_renewal(struct retention *trim, const struct store_space *space)
{
	bool is_due = is_over(trim, space, ROOM_PARTS / 4) || monotonic_ns() - trim->renewed_ns > RENEW_EVERY_NS;

	trim->wants_renewal |= is_due && trim->since_renewal > space->n_samples;
}

static bool is_early(struct retention *trim, size_t n_rows)
{
	uint64_t now_ns = monotonic_ns();

	trim->n_rows += n_rows;
	if (trim->n_rows < ENOUGH_ROWS && now_ns - trim->looked_ns < LOOK_ANYWAY_NS)
		return true;
	trim->n_rows = 0;
	trim->looked_ns = now_ns;
	return false;
}

int retention_after(struct retention *trim, struct store *store, struct symbol_writer *names, size_t n_rows,
		    uint64_t now_ns)
{
	struct store_space space;
	int r;

	if ((trim->limits.keep_ns == 0 && trim->limits.max_bytes == 0) || is_early(trim, n_rows))
		return 0;
	r = store_read_space(store, &space);
	if (r < 0)
		return r;
	note_growth(trim, &space);
	r = drop_old(trim, store, now_ns);
	if (r >= 0)
		r = store_read_space(store, &space);
	if (r >= 0 && is_worth_it(trim, &space))
		r = sweep(trim, store, names);
	if (r >= 0)
		r = store_read_space(store, &space);
	if (r >= 0)
		r = make_room(trim, store, names, &space);
	if (r >= 0)
		r = give_back(trim, store, &space);
	if (r < 0)
		return r;
	trim->left_bytes = space.used_bytes;
	judge_renewal(trim, &space);
	return 0;
}

void retention_renewed(struct retention *trim, int64_t last_stack, int64_t last_frame)
{
	trim->old_stacks = last_stack;
	trim->old_frames = last_frame;
	trim->since_renewal = 0;
	trim->renewed_ns = monotonic_ns();
	trim->wants_renewal = false;
}
