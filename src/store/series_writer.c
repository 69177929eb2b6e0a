/* SPDX-License-Identifier: MIT */
/*
 * series_writer.c - samples into blocks, batch by batch.
 *
 * Large blocks are efficient, and a batch may be a few samples. So the newest samples are kept in
 * memory until they fill a block, and at each commit they are in the file, too: as pieces, small
 * blocks, of which only the last is rewritten when samples come. The cost of a flush is thus bounded by
 * PIECE_ROWS, however slowly samples come, and each sample is written about PIECE_ROWS / batch / 2 + 1 times.
 *
 * Invariants:
 * 1. Numbers are dense: a block's samples are first .. first + samples - 1, and no two blocks overlap.
 * 2. After a commit rows[0 .. written) are in the file, in pieces that begin at `first`.
 * 3. After a rollback the state of the file is unknown: the rows are dropped, and numbers continue after the
 *    last ones of the file. Existing pieces then remain pieces.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/series_private.h"

enum { PIECE_ROWS = 256, THREADS_TOLD = 64, THREAD_BYTES = 8 };

static const char put_sql[] =
	"INSERT OR REPLACE INTO sample_block(first, samples, started, ended, weight, threads, data)"
	" VALUES(?,?,?,?,?,?,?)";
static const char drop_sql[] = "DELETE FROM sample_block WHERE first BETWEEN ? AND ?";

void series_finalize(struct store *store)
{
	if (!store->series)
		return;
	sqlite3_finalize(TAKE(store->series->put));
	sqlite3_finalize(TAKE(store->series->drop));
}

void series_free(struct series *series)
{
	if (!series)
		return;
	block_encoder_free(series->encoder);
	free(series);
}

static int prepare(struct store *store, const char *sql, sqlite3_stmt **to)
{
	if (*to)
		return 0;
	return store_errno(store->db, sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, to, NULL));
}

/* Created on demand: a recording that only gets new names has none. */
static int get_series(struct store *store, struct series **ret)
{
	int r;

	if (!store->series) {
		store->series = calloc(1, sizeof *store->series);
		if (!store->series)
			return -ENOMEM;
	}
	r = store->series->encoder ? 0 : block_encoder_new(&store->series->encoder);
	if (r >= 0)
		r = prepare(store, put_sql, &store->series->put);
	if (r >= 0)
		r = prepare(store, drop_sql, &store->series->drop);
	if (r < 0)
		return r;
	*ret = store->series;
	return 0;
}

/* ---- Blocks ---- */

/* The block's threads, 4 bytes PID and 4 bytes TID each, so that readers can skip the block; 0: too many to list. */
static size_t tell_threads(const struct sample_row *rows, size_t n, uint32_t *to)
{
	size_t n_told = 0, at;

	for (size_t i = 0; i < n; i++) {
		uint32_t pid = (uint32_t)rows[i].pid, tid = (uint32_t)rows[i].tid;

		if (i > 0 && rows[i].tid == rows[i - 1].tid && rows[i].pid == rows[i - 1].pid)
			continue;
		for (at = 0; at < n_told && (to[2 * at] != pid || to[2 * at + 1] != tid); at++)
			;
		if (at < n_told)
			continue;
		if (n_told == THREADS_TOLD)
			return 0;
		to[2 * n_told] = pid;
		to[2 * n_told++ + 1] = tid;
	}
	return n_told;
}

static int bind_summary(sqlite3_stmt *put, int64_t first, const struct sample_row *rows, size_t n)
{
	uint64_t started_ns = UINT64_MAX, ended_ns = 0, weight = 0;
	int code;

	for (size_t i = 0; i < n; i++) {
		started_ns = MIN(started_ns, rows[i].time_ns);
		ended_ns = MAX(ended_ns, rows[i].time_ns);
		weight += rows[i].weight;
	}
	code = sqlite3_bind_int64(put, 1, first);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(put, 2, (int64_t)n);
	if (code == SQLITE_OK)
		code = sqlite3_bind_double(put, 3, store_seconds(started_ns));
	if (code == SQLITE_OK)
		code = sqlite3_bind_double(put, 4, store_seconds(ended_ns));
	return code == SQLITE_OK ? sqlite3_bind_int64(put, 5, (int64_t)weight) : code;
}

static int put_block(struct store *store, int64_t first, const struct sample_row *rows, size_t n)
{
	uint32_t threads[2 * THREADS_TOLD];
	const uint8_t *bytes;
	size_t n_bytes, n_threads;
	int r, code;

	r = block_encode(store->series->encoder, rows, n, &bytes, &n_bytes);
	if (r < 0)
		return r;
	n_threads = tell_threads(rows, n, threads);
	code = bind_summary(store->series->put, first, rows, n);
	if (code == SQLITE_OK && n_threads > 0)
		code = sqlite3_bind_blob64(store->series->put, 6, threads, n_threads * THREAD_BYTES, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_blob64(store->series->put, 7, bytes, n_bytes, SQLITE_STATIC);
	return writer_run(store, store->series->put, code);
}

/* Drop the blocks whose first sample is in this range. */
static int drop_blocks(struct store *store, int64_t from, int64_t to)
{
	int code = sqlite3_bind_int64(store->series->drop, 1, from);

	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(store->series->drop, 2, to);
	return writer_run(store, store->series->drop, code);
}

/* ---- The tail ---- */

static void start_tail(struct series *series, int64_t first)
{
	series->first = first;
	series->n = series->piece = series->written = 0;
}

/* Continue the file's numbers. A damaged file may use up the range; half of it suffices for any recording. */
static int find_first(struct store *store, struct series *series)
{
	static const char sql[] = "SELECT first + samples FROM sample_block ORDER BY first DESC LIMIT 1";
	sqlite3_stmt *statement = NULL;
	int64_t first = 1;
	int code, r;

	if (series->first > 0)
		return 0;
	code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		first = sqlite3_column_int64(statement, 0);
	r = store_errno(store->db, code);
	sqlite3_finalize(statement);
	if (r < 0)
		return r;
	if (first < 1 || first > INT64_MAX / 2)
		return -EBADMSG;
	start_tail(series, first);
	return 0;
}

/* Replace the pieces by one block with all rows. */
static int put_whole(struct store *store, struct series *series)
{
	int r = 0;

	if (series->piece > 0)
		r = drop_blocks(store, series->first, series->first + (int64_t)series->n - 1);
	if (r >= 0)
		r = put_block(store, series->first, series->rows, series->n);
	return r;
}

static int finish_block(struct store *store, struct series *series)
{
	int r = put_whole(store, series);

	if (r >= 0)
		start_tail(series, series->first + (int64_t)series->n);
	return r;
}

int series_flush(struct store *store)
{
	struct series *series = store->series;
	int r;

	if (!series || series->n == series->written)
		return 0;
	r = get_series(store, &series);
	if (r >= 0)
		r = put_block(store, series->first + (int64_t)series->piece, series->rows + series->piece,
			      series->n - series->piece);
	if (r < 0)
		return r;
	series->written = series->n;
	if (series->n - series->piece >= PIECE_ROWS)
		series->piece = series->n;
	return 0;
}

int series_put(struct store *store, const struct sample_row *row)
{
	struct series *series;
	int r;

	if (store->batch_error < 0)
		return store->batch_error;
	r = block_check_row(row);
	if (r >= 0)
		r = get_series(store, &series);
	if (r >= 0)
		r = find_first(store, series);
	if (r < 0)
		return r;
	series->rows[series->n] = *row;
	series->rows[series->n++].time_ns = store_time(row->time_ns);
	if (series->n == BLOCK_ROWS)
		r = finish_block(store, series);
	else if (!store->in_batch)
		r = series_flush(store);
	return r;
}

int store_put_sample(struct store *store, const struct sample_row *row)
{
	return series_put(store, row);
}

int64_t series_last(const struct store *store)
{
	return store->series && store->series->first > 0 ? store->series->first + (int64_t)store->series->n - 1 : 0;
}

int series_end(struct store *store)
{
	struct series *series = store->series;
	int r;

	if (!series || series->n == 0)
		return 0;
	r = get_series(store, &series);
	return r < 0 ? r : finish_block(store, series);
}

void series_forget(struct store *store)
{
	if (store->series)
		start_tail(store->series, 0);
}

/* ---- Drop the oldest ---- */

/* Write the rest of the block that contains the last dropped sample. */
static int cut_block(struct store *store, struct series_scan *scan, int64_t last)
{
	CLEANUP(freep) struct sample_row *rows = NULL;
	size_t from, n;
	int r = 0;

	if (last >= scan->first + (int64_t)scan->block.n_rows - 1)
		return 0;
	from = (size_t)(last + 1 - scan->first);
	n = scan->block.n_rows - from;
	rows = malloc(n * sizeof *rows);
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		block_row(&scan->block, from + i, &rows[i]);
	/* A block of another version may be larger than ours. */
	for (size_t at = 0; at < n && r >= 0; at += BLOCK_ROWS)
		r = put_block(store, last + 1 + (int64_t)at, rows + at, MIN(n - at, (size_t)BLOCK_ROWS));
	return r;
}

static int cut_edge(struct store *store, int64_t last)
{
	CLEANUP(series_scan_done) struct series_scan scan = { 0 };
	struct series_range range = SERIES_ALL;
	int code;

	range.first = range.last = last;
	code = series_scan_begin(&scan, store->db, &range, false, NULL);
	if (code == SQLITE_OK)
		code = series_scan_next(&scan, BLOCK_ALL, NULL);
	if (code != SQLITE_ROW)
		return store_errno(store->db, code);
	/* The statement that reads the row must end before the row is written. */
	series_scan_end(&scan);
	return cut_block(store, &scan, last);
}

int series_drop(struct store *store, int64_t last)
{
	struct series *series;
	int r;

	r = get_series(store, &series);
	/* If the newest samples are dropped, too, new pieces start after the rest. */
	if (r >= 0 && series->first > 0 && last >= series->first)
		r = series_end(store);
	if (r >= 0)
		r = cut_edge(store, last);
	if (r >= 0)
		r = drop_blocks(store, 0, last);
	return r;
}
