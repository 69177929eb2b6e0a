/* SPDX-License-Identifier: MIT */
/*
 * columns.c - intervals folded to columns of 2^level ns.
 *
 * A tally adds up one column: time by call, by state, with the GIL. At the end of the column the dominant path is chosen, and the tally
 * is added to that of the column of twice the width. So each sample is read once for all levels. A tally has at most
 * MAX_SHARES calls: with more, those of the least time become their callers, whose time is thus complete.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"

enum { MAX_SHARES = 48, ROOM = 256, SAMPLES_PER_COLUMN = 8, MIN_INTERVALS = 256 };

struct share {
	uint32_t call;
	uint64_t ns;
};

struct tally {
	uint64_t index; /* of its column */
	size_t n;
	uint32_t n_samples;
	uint64_t state_ns[STATE_N], held_ns, covered_ns;
	struct share shares[ROOM];
};

/* ---- Tallies ---- */

static void tally_reset(struct tally *tally, uint64_t index)
{
	memset(tally, 0, offsetof(struct tally, shares));
	tally->index = index;
}

static int by_call(const void *a, const void *b)
{
	uint32_t left = ((const struct share *)a)->call, right = ((const struct share *)b)->call;

	return left < right ? -1 : left > right;
}

static int by_time(const void *a, const void *b)
{
	const struct share *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns > right->ns ? -1 : 1;
	return by_call(a, b);
}

/* Shares of equal calls become one. */
static void merge(struct tally *tally)
{
	size_t n = 0;

	if (tally->n < 2)
		return;
	qsort(tally->shares, tally->n, sizeof *tally->shares, by_call);
	for (size_t i = 1; i < tally->n; i++) {
		if (tally->shares[i].call == tally->shares[n].call)
			tally->shares[n].ns += tally->shares[i].ns;
		else
			tally->shares[++n] = tally->shares[i];
	}
	tally->n = n + 1;
}

/* Each round ends: depths decrease, and the root is one call. */
static void shrink(struct tally *tally, const struct calls *calls)
{
	merge(tally);
	while (tally->n > MAX_SHARES) {
		qsort(tally->shares, tally->n, sizeof *tally->shares, by_time);
		for (size_t i = MAX_SHARES / 2; i < tally->n; i++)
			tally->shares[i].call = calls->calls[tally->shares[i].call].parent;
		merge(tally);
	}
}

static void add_share(struct tally *tally, const struct calls *calls, uint32_t call, uint64_t ns)
{
	if (tally->n > 0 && tally->shares[tally->n - 1].call == call) {
		tally->shares[tally->n - 1].ns += ns;
		return;
	}
	if (tally->n == ROOM)
		shrink(tally, calls);
	tally->shares[tally->n++] = (struct share){ call, ns };
}

static bool is_running(unsigned state)
{
	return state == STATE_NONE || state == STATE_RUNNING;
}

static void add_interval(struct tally *tally, const struct calls *calls, const struct interval *item, uint64_t ns,
			 bool begins)
{
	tally->n_samples += begins;
	tally->covered_ns += ns;
	tally->state_ns[item->state < STATE_N ? item->state : STATE_BLOCKED] += ns;
	if (item->gil == ANSWER_YES)
		tally->held_ns += ns;
	add_share(tally, calls, item->call, ns);
}

static void add_tally(struct tally *to, const struct calls *calls, const struct tally *from)
{
	to->n_samples += from->n_samples;
	to->covered_ns += from->covered_ns;
	to->held_ns += from->held_ns;
	for (unsigned i = 0; i < STATE_N; i++)
		to->state_ns[i] += from->state_ns[i];
	for (size_t i = 0; i < from->n; i++)
		add_share(to, calls, from->shares[i].call, from->shares[i].ns);
}

/* ---- The dominant path ---- */

struct candidate {
	uint32_t path[LANES_MAX_DEPTH];
	uint32_t depth;
	uint64_t ns;
};

/* Of the candidates that share the path so far, the call at this depth with the most time; 0: they end here. */
static uint32_t heaviest(const struct candidate *const *candidates, size_t n, uint32_t depth, uint64_t *ret_ns)
{
	uint32_t best = 0;

	*ret_ns = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = 0;

		if (candidates[i]->depth <= depth)
			continue;
		for (size_t j = 0; j < n; j++)
			if (candidates[j]->depth > depth && candidates[j]->path[depth] == candidates[i]->path[depth])
				ns += candidates[j]->ns;
		if (ns > *ret_ns) {
			*ret_ns = ns;
			best = candidates[i]->path[depth];
		}
	}
	return best;
}

/* Leaves those that go on by that call. Returns how many; @ret_ns: the time of those that ended before it. */
static size_t follow(const struct candidate **candidates, size_t n, uint32_t depth, uint32_t call, uint64_t *ret_ns)
{
	size_t kept = 0;

	*ret_ns = 0;
	for (size_t i = 0; i < n; i++) {
		if (candidates[i]->depth <= depth)
			*ret_ns += candidates[i]->ns;
		else if (candidates[i]->path[depth] == call)
			candidates[kept++] = candidates[i];
	}
	return kept;
}

/* Time that ends at a call counts like that of one more callee: the path ends there if it is the most. */
static uint32_t dominant(struct tally *tally, const struct calls *calls)
{
	struct candidate all[MAX_SHARES];
	const struct candidate *candidates[MAX_SHARES];
	uint32_t call = 0;
	size_t n;

	shrink(tally, calls);
	if (tally->n == 1)
		return tally->shares[0].call;
	for (n = 0; n < tally->n; n++) {
		all[n].depth = lane_calls_path(calls, tally->shares[n].call, all[n].path, LANES_MAX_DEPTH);
		all[n].ns = tally->shares[n].ns;
		candidates[n] = &all[n];
	}
	for (uint32_t depth = 0; n > 1; depth++) {
		uint64_t next_ns, ended_ns;
		uint32_t next = heaviest(candidates, n, depth, &next_ns);

		n = follow(candidates, n, depth, next, &ended_ns);
		if (next == 0 || ended_ns > next_ns)
			return call;
		call = next;
	}
	return n == 1 && candidates[0]->depth > 0 ? candidates[0]->path[candidates[0]->depth - 1] : call;
}

static uint8_t part(uint64_t ns, unsigned level)
{
	uint64_t width = UINT64_C(1) << level;

	if (ns == 0)
		return 0;
	if (ns >= width)
		return SHARE_ALL;
	return (uint8_t)MAX((uint64_t)((double)ns / (double)width * SHARE_ALL), UINT64_C(1));
}

static struct column finish(struct tally *tally, const struct calls *calls, unsigned level)
{
	unsigned state = STATE_NONE;

	for (unsigned i = 1; i < STATE_N; i++)
		if (tally->state_ns[i] > tally->state_ns[state])
			state = i;
	return (struct column){
		.call = dominant(tally, calls),
		.n = tally->n_samples,
		.state = (uint8_t)state,
		.running = part(tally->state_ns[STATE_NONE] + tally->state_ns[STATE_RUNNING], level),
		.held = part(tally->held_ns, level),
		.covered = part(tally->covered_ns, level),
	};
}

/* A column that one interval covers. */
static struct column whole(const struct interval *item, bool begins)
{
	return (struct column){
		.call = item->call,
		.n = begins,
		.state = item->state,
		.running = is_running(item->state) ? SHARE_ALL : 0,
		.held = item->gil == ANSWER_YES ? SHARE_ALL : 0,
		.covered = SHARE_ALL,
	};
}

/* ---- All levels of a thread ---- */

struct making {
	struct lane_thread *thread;
	const struct calls *calls;
	struct tally *tallies; /* by level, from first_level on */
};

static void close_column(struct making *making, unsigned at)
{
	struct lane_thread *thread = making->thread;
	struct tally *tally = &making->tallies[at];
	struct level *level = &thread->levels[at];

	if (tally->covered_ns == 0 && tally->n_samples == 0)
		return;
	level->columns[tally->index - level->first] = finish(tally, making->calls, thread->first_level + at);
	if (at + 1 < thread->n_levels) {
		struct tally *above = &making->tallies[at + 1];

		if (above->index != tally->index >> 1) {
			close_column(making, at + 1);
			tally_reset(above, tally->index >> 1);
		}
		add_tally(above, making->calls, tally);
	}
}

static void take_interval(struct making *making, const struct interval *item)
{
	unsigned width = making->thread->first_level;
	uint64_t end = interval_end(item);
	struct tally *tally = &making->tallies[0];

	for (uint64_t at = item->start_ns; at < end;) {
		uint64_t index = at >> width, until = MIN(end, (index + 1) << width);

		if (tally->index != index) {
			close_column(making, 0);
			tally_reset(tally, index);
		}
		add_interval(tally, making->calls, item, until - at, at == item->start_ns);
		at = until;
	}
}

static int make_room(struct lane_thread *thread)
{
	uint64_t begin = thread->items[0].start_ns, end = interval_end(&thread->items[thread->n - 1]);

	/* Few samples over decades, as after a clock that began in 1970, have the widest columns alone. */
	while (thread->first_level < MAX_LEVEL && (end - begin) >> thread->first_level > thread->n / SAMPLES_PER_COLUMN)
		thread->first_level++;
	for (unsigned at = 0; thread->first_level + at <= MAX_LEVEL; at++) {
		struct level *level = &thread->levels[at];
		unsigned width = thread->first_level + at;

		level->first = begin >> width;
		level->n = ((end - 1) >> width) - level->first + 1;
		level->columns = calloc(level->n, sizeof *level->columns);
		if (!level->columns)
			return -ENOMEM;
		thread->n_levels = at + 1;
	}
	return 0;
}

void columns_drop(struct lane_thread *thread)
{
	for (unsigned i = 0; i < thread->n_levels; i++)
		free(thread->levels[i].columns);
	thread->n_levels = thread->first_level = 0;
	memset(thread->levels, 0, sizeof thread->levels);
}

int columns_make(struct lane_thread *thread, const struct calls *calls)
{
	CLEANUP(freep) struct tally *tallies = NULL;
	struct making making = { thread, calls, NULL };
	int r;

	columns_drop(thread);
	if (thread->n < MIN_INTERVALS)
		return 0;
	r = make_room(thread);
	if (r < 0) {
		columns_drop(thread);
		return r;
	}
	tallies = calloc(thread->n_levels, sizeof *tallies);
	if (!tallies) {
		columns_drop(thread);
		return -ENOMEM;
	}
	making.tallies = tallies;
	for (unsigned i = 0; i < thread->n_levels; i++)
		tally_reset(&tallies[i], thread->levels[i].first);
	for (size_t i = 0; i < thread->n; i++)
		take_interval(&making, &thread->items[i]);
	for (unsigned i = 0; i < thread->n_levels; i++)
		close_column(&making, i);
	return 0;
}

/* ---- Some columns ---- */

/* The first interval that ends after a time. */
static size_t first_after(const struct lane_thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (interval_end(&thread->items[middle]) > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void copy_columns(const struct level *level, uint64_t first, size_t n, struct column *ret)
{
	for (size_t i = 0; i < n; i++)
		if (first + i >= level->first && first + i - level->first < level->n)
			ret[i] = level->columns[first + i - level->first];
}

static void fold_intervals(const struct lane_thread *thread, const struct calls *calls, unsigned level, uint64_t first,
			   size_t n, struct tally *tally, struct column *ret)
{
	uint64_t begin = first << level, end = (first + n) << level;
	bool is_open = false;

	for (size_t i = first_after(thread, begin); i < thread->n && thread->items[i].start_ns < end; i++) {
		const struct interval *item = &thread->items[i];
		uint64_t stop = MIN(interval_end(item), end);

		for (uint64_t at = MAX(item->start_ns, begin); at < stop;) {
			uint64_t index = at >> level, until = MIN(stop, (index + 1) << level);
			bool begins = at == item->start_ns;

			if (is_open && tally->index != index) {
				ret[tally->index - first] = finish(tally, calls, level);
				is_open = false;
			}
			if (until - at == UINT64_C(1) << level) {
				ret[index - first] = whole(item, begins);
			} else {
				if (!is_open)
					tally_reset(tally, index);
				is_open = true;
				add_interval(tally, calls, item, until - at, begins);
			}
			at = until;
		}
	}
	if (is_open)
		ret[tally->index - first] = finish(tally, calls, level);
}

int columns_fold(const struct lane_thread *thread, const struct calls *calls, unsigned level, uint64_t first, size_t n,
		 struct column *ret)
{
	CLEANUP(freep) struct tally *tally = NULL;

	memset(ret, 0, n * sizeof *ret);
	if (thread->n_levels > 0 && level >= thread->first_level && level - thread->first_level < thread->n_levels) {
		copy_columns(&thread->levels[level - thread->first_level], first, n, ret);
		return 0;
	}
	tally = malloc(sizeof *tally);
	if (!tally)
		return -ENOMEM;
	fold_intervals(thread, calls, level, first, n, tally, ret);
	return 0;
}
