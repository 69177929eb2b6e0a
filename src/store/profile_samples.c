/* SPDX-License-Identifier: MIT */
/*
 * profile_samples.c - loads single samples.
 *
 * Rows come in the order in which they were written. Their times vary a little: a wait is stored at its
 * end, with the time of its beginning. A thread without a row of its own gets one here, without a name.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/store/profile_private.h"
#include "src/store/series_private.h"

enum { SHOW_SAMPLES = 1 << 12 };

_Static_assert(VERDICT_N <= 16 && STATE_N <= 16, "as struct profile_sample holds them");

static int compare_thread(const struct profile_thread *thread, int32_t pid, int32_t tid)
{
	if (thread->pid != pid)
		return thread->pid < pid ? -1 : 1;
	return thread->tid < tid ? -1 : thread->tid > tid;
}

static int32_t find_sorted(const struct loader *loader, int32_t pid, int32_t tid)
{
	size_t low = 0, high = loader->n_sorted_threads;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_thread(&loader->profile->threads[middle], pid, tid);

		if (order == 0)
			return (int32_t)middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

static int find_thread(struct loader *loader, int32_t pid, int32_t tid, int32_t *ret)
{
	struct profile *profile = loader->profile;
	int32_t found;
	int r;

	found = find_sorted(loader, pid, tid);
	for (size_t i = loader->n_sorted_threads; found < 0 && i < profile->n_threads; i++)
		if (compare_thread(&profile->threads[i], pid, tid) == 0)
			found = (int32_t)i;
	if (found < 0) {
		if (profile->n_threads >= INT32_MAX)
			return -EBADMSG;
		r = grow(&profile->threads, profile->n_threads, &loader->thread_room, sizeof *profile->threads);
		if (r < 0)
			return r;
		found = (int32_t)profile->n_threads;
		profile->threads[profile->n_threads++] = (struct profile_thread){ pid, tid, "", "" };
	}
	*ret = found;
	return 0;
}

/* Consecutive samples often have the same thread. */
static int load_sample_thread(struct loader *loader, int32_t *ret)
{
	const struct profile *profile = loader->profile;
	int32_t pid, tid;
	int r;

	r = row_int32(loader, 1, &pid);
	if (r == 0)
		r = row_int32(loader, 2, &tid);
	if (r < 0)
		return r;
	if ((size_t)loader->last_thread >= profile->n_threads ||
	    compare_thread(&profile->threads[loader->last_thread], pid, tid) != 0)
		r = find_thread(loader, pid, tid, &loader->last_thread);
	if (r == 0)
		*ret = loader->last_thread;
	return r;
}

static enum answer answer(const struct loader *loader, int column)
{
	if (row_is_null(loader, column))
		return ANSWER_UNKNOWN;
	return sqlite3_column_int(loader->row, column) != 0 ? ANSWER_YES : ANSWER_NO;
}

static int load_verdict(const struct loader *loader, int column, enum verdict *ret)
{
	return verdict_parse((const char *)sqlite3_column_text(loader->row, column), ret) < 0 ? -EBADMSG : 0;
}

static int load_state(const struct loader *loader, int column, enum thread_state *ret)
{
	const char *text = (const char *)sqlite3_column_text(loader->row, column);

	*ret = STATE_NONE;
	for (int i = STATE_NONE + 1; text && i < STATE_N; i++)
		if (strcmp(text, thread_state_name((enum thread_state)i)) == 0)
			*ret = (enum thread_state)i;
	return text && *ret == STATE_NONE ? -EBADMSG : 0;
}

/* Load all columns except weight and time: these fields are packed, so they have no address to pass. */
static int load_what(struct loader *loader, struct profile_sample *sample)
{
	enum verdict verdict = VERDICT_EXACT;
	enum thread_state state = STATE_NONE;
	int64_t cpu = 0;
	int r;

	r = load_sample_thread(loader, &sample->thread);
	if (r == 0)
		r = row_integer(loader, 3, 0, UINT16_MAX, &cpu);
	if (r == 0)
		r = load_verdict(loader, 5, &verdict);
	if (r == 0 && sqlite3_column_int64(loader->row, 6) != 0)
		r = row_reference(loader, 6, &loader->stacks, &sample->stack);
	if (r == 0)
		r = load_state(loader, 9, &state);
	if (r < 0)
		return r;
	sample->cpu = (uint16_t)cpu;
	sample->verdict = verdict;
	sample->state = state;
	return 0;
}

int load_sample(struct loader *loader)
{
	struct profile *profile = loader->profile;
	struct profile_sample sample = { .gil = answer(loader, 7), .gc = answer(loader, 8), .stack = -1 };
	uint64_t time_ns = 0;
	int64_t weight = 0;
	int r;

	r = grow(&profile->samples, profile->n_samples, &loader->sample_room, sizeof *profile->samples);
	if (r == 0)
		r = row_time(loader, 0, &time_ns);
	if (r == 0)
		r = row_integer(loader, 4, 0, INT64_MAX, &weight);
	if (r == 0)
		r = load_what(loader, &sample);
	if (r < 0)
		return r;
	sample.time_ns = time_ns;
	sample.weight = (uint64_t)weight;
	profile->samples[profile->n_samples++] = sample;
	if (profile->n_samples % SHOW_SAMPLES == 0 && loader->filter->show)
		loader->filter->show(loader->filter->show_data, profile->n_samples, loader->n_samples_all);
	return 0;
}

/* ---- From blocks ---- */

/* The dictionaries of a block as indices of the profile. */
struct block_places {
	int32_t *stacks, *threads;
	struct sample_row *flags; /* verdict, gil, gc, state */
	size_t stack_room, thread_room, flag_room;
};

static void block_places_done(struct block_places *places)
{
	free(places->stacks);
	free(places->threads);
	free(places->flags);
}

static int make_room(struct block_places *places, const struct block *block)
{
	int r = 0;

	while (r >= 0 && places->stack_room < block->n_stacks)
		r = grow(&places->stacks, places->stack_room, &places->stack_room, sizeof *places->stacks);
	while (r >= 0 && places->thread_room < block->n_threads)
		r = grow(&places->threads, places->thread_room, &places->thread_room, sizeof *places->threads);
	while (r >= 0 && places->flag_room < block->n_flags)
		r = grow(&places->flags, places->flag_room, &places->flag_room, sizeof *places->flags);
	return r;
}

static int find_places(struct loader *loader, const struct block *block, struct block_places *places)
{
	int r = make_room(places, block);

	for (size_t i = 0; i < block->n_stacks && r >= 0; i++) {
		places->stacks[i] = -1;
		if (block->stacks[i] > INT64_MAX)
			return -EBADMSG;
		if (block->stacks[i] != 0)
			r = row_index_find(&loader->stacks, (int64_t)block->stacks[i], &places->stacks[i]);
	}
	for (size_t i = 0; i < block->n_threads && r >= 0; i++) {
		if (block->pids[i] > INT32_MAX || block->tids[i] > INT32_MAX)
			return -EBADMSG;
		r = find_thread(loader, (int32_t)block->pids[i], (int32_t)block->tids[i], &places->threads[i]);
	}
	for (size_t i = 0; i < block->n_flags && r >= 0; i++)
		r = block_unflags(block->flags[i], &places->flags[i]);
	return r;
}

/* As row_time() reads it. */
static int load_block_row(struct loader *loader, const struct block *block, const struct block_places *places, size_t i)
{
	const struct sample_row *flags = &places->flags[block->values[BLOCK_FLAGS][i]];
	uint64_t time_ns = block->values[BLOCK_TIME][i], weight = block->values[BLOCK_WEIGHT][i];
	struct profile *profile = loader->profile;
	int r;

	if (time_ns > INT64_MAX || weight > INT64_MAX || block->values[BLOCK_CPU][i] > UINT16_MAX)
		return -EBADMSG;
	r = grow(&profile->samples, profile->n_samples, &loader->sample_room, sizeof *profile->samples);
	if (r < 0)
		return r;
	profile->samples[profile->n_samples++] = (struct profile_sample){
		.time_ns = (uint64_t)(store_seconds(time_ns) * 1e9),
		.weight = weight,
		.thread = places->threads[block->values[BLOCK_THREAD][i]],
		.stack = places->stacks[block->values[BLOCK_STACK][i]],
		.cpu = (uint16_t)block->values[BLOCK_CPU][i],
		.verdict = flags->verdict,
		.state = flags->state,
		.gil = flags->gil,
		.gc = flags->gc,
	};
	return 0;
}

static int load_block(struct loader *loader, const struct series_scan *scan, int64_t after, struct block_places *places)
{
	size_t i = after >= scan->first ? (size_t)(after - scan->first + 1) : 0;
	int r = find_places(loader, &scan->block, places);

	for (; i < scan->block.n_rows && r >= 0; i++)
		r = load_block_row(loader, &scan->block, places, i);
	return r;
}

int load_blocks(struct loader *loader, int64_t after)
{
	CLEANUP(series_scan_done) struct series_scan scan = { 0 };
	CLEANUP(block_places_done) struct block_places places = { 0 };
	struct series_range range = SERIES_ALL;
	int code, r = 0;

	if (after >= INT64_MAX)
		return 0;
	range.first = MAX(after, 0) + 1;
	code = series_scan_begin(&scan, loader->db, &range, false, NULL);
	if (code != SQLITE_OK)
		return store_read_errno(loader->db, code);
	while (r >= 0 && (code = series_scan_next(&scan, BLOCK_ALL, NULL)) == SQLITE_ROW)
		r = load_block(loader, &scan, after, &places);
	return r < 0 ? r : code == SQLITE_DONE ? 0 : store_read_errno(loader->db, code);
}
