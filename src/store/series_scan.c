/* SPDX-License-Identifier: MIT */
/*
 * series_scan.c - reads those blocks of a file that may contain a range.
 *
 * The columns beside a block's bytes (its numbers, its times, its threads) decide whether it is decoded.
 * The bytes are foreign: a block that cannot be decoded, or has another number of samples than its row states, is an
 * error that names the block, because results without it would be silently wrong.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/store/series_private.h"

/* An older file may have rounded a block's time range. */
#define ROUNDED 1e-6

#define BLOCKS_SQL(order)                                                                                              \
	"SELECT first, samples, threads, data FROM main.sample_block"                                                  \
	" WHERE first >= coalesce((SELECT max(first) FROM main.sample_block WHERE first <= ?1), ?1)"                   \
	" AND first <= ?2 AND ended >= ?3 AND started <= ?4 ORDER BY first " order

uint64_t series_first_time(double seconds, bool is_after)
{
	uint64_t low = 0, high = UINT64_MAX;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		double at = store_seconds(middle);

		if (is_after ? at > seconds : at >= seconds)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* ---- Blocks ---- */

static int prepare(struct series_scan *scan, bool is_backward, char **ret_error)
{
	int code;

	if (scan->blocks && scan->is_backward == is_backward)
		return SQLITE_OK;
	sqlite3_finalize(TAKE(scan->blocks));
	code = sqlite3_prepare_v2(scan->db, is_backward ? BLOCKS_SQL("DESC") : BLOCKS_SQL("ASC"), -1, &scan->blocks,
				  NULL);
	scan->is_backward = is_backward;
	if (code == SQLITE_ERROR && ret_error)
		*ret_error = sqlite3_mprintf(
			"no table sample_block: this is not a recording, or a recording of a version "
			"with another format");
	return code;
}

int series_scan_begin(struct series_scan *scan, sqlite3 *db, const struct series_range *range, bool is_backward,
		      char **ret_error)
{
	int code;

	scan->db = db;
	scan->range = *range;
	code = prepare(scan, is_backward, ret_error);
	if (code != SQLITE_OK)
		return code;
	scan->edge = is_backward ? INT64_MAX : 0;
	sqlite3_reset(scan->blocks);
	code = sqlite3_bind_int64(scan->blocks, 1, range->first);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(scan->blocks, 2, range->last);
	if (code == SQLITE_OK)
		code = sqlite3_bind_double(scan->blocks, 3, store_seconds(range->since_ns) - ROUNDED);
	if (code == SQLITE_OK)
		code = sqlite3_bind_double(scan->blocks, 4, store_seconds(range->until_ns) + ROUNDED);
	return code;
}

static bool is_wanted(const struct series_range *range, uint32_t pid, uint32_t tid)
{
	return (range->pid < 0 || range->pid == pid) && (range->tid < 0 || range->tid == tid);
}

/* If the block lists no threads, any thread may be in it. */
static bool has_thread(const struct series_scan *scan)
{
	size_t n_bytes = (size_t)sqlite3_column_bytes(scan->blocks, 2);
	const uint8_t *bytes = sqlite3_column_blob(scan->blocks, 2);
	uint32_t thread[2];

	if ((scan->range.pid < 0 && scan->range.tid < 0) || !bytes || n_bytes % sizeof thread != 0)
		return true;
	for (size_t at = 0; at < n_bytes; at += sizeof thread) {
		memcpy(thread, bytes + at, sizeof thread);
		if (is_wanted(&scan->range, thread[0], thread[1]))
			return true;
	}
	return false;
}

/* Whether the block is already decoded: single-row lookups repeat blocks. */
static bool is_at_hand(const struct series_scan *scan, int64_t first, const void *bytes, size_t n_bytes)
{
	enum { HEAD_BYTES = 5 }; /* version and checksum */

	return scan->block.n_rows > 0 && scan->first == first && scan->block.n_bytes == n_bytes &&
	       n_bytes > HEAD_BYTES && memcmp(scan->block.bytes, bytes, HEAD_BYTES) == 0;
}

/* Sample numbers must increase from block to block. */
static bool is_in_order(struct series_scan *scan, int64_t first, int64_t n_samples)
{
	bool is = scan->is_backward ? first + n_samples <= scan->edge : first >= scan->edge;

	scan->edge = scan->is_backward ? first : first + n_samples;
	return is;
}

static int open_row(struct series_scan *scan, unsigned columns)
{
	int64_t first = sqlite3_column_int64(scan->blocks, 0);
	int64_t n_samples = sqlite3_column_int64(scan->blocks, 1);
	const void *bytes = sqlite3_column_blob(scan->blocks, 3);
	size_t n_bytes = (size_t)sqlite3_column_bytes(scan->blocks, 3);
	int r = 0;

	if (!bytes || first < 1 || first > INT64_MAX - BLOCK_MAX_ROWS)
		return -EBADMSG;
	if (!is_at_hand(scan, first, bytes, n_bytes))
		r = block_open(&scan->block, bytes, n_bytes);
	if (r >= 0 && (n_samples != (int64_t)scan->block.n_rows || !is_in_order(scan, first, n_samples)))
		r = -EBADMSG;
	scan->first = first;
	return r < 0 ? r : block_load(&scan->block, columns);
}

/* The numbers may be damaged, too: name the lost samples only if the range is plausible. */
static char *explain_damage(int64_t first, int64_t n_samples)
{
	int64_t after;

	if (first < 1 || n_samples < 1 || __builtin_add_overflow(first, n_samples, &after))
		return sqlite3_mprintf(
			"block %lld of sample_block is damaged, and so are its numbers: ask for the samples "
			"before it with 'WHERE rowid < %lld'",
			(long long)first, (long long)first);
	return sqlite3_mprintf("block %lld of sample_block is damaged, and with it the samples %lld to %lld: ask "
			       "for the others with 'WHERE rowid < %lld OR rowid >= %lld'",
			       (long long)first, (long long)first, (long long)after - 1, (long long)first,
			       (long long)after);
}

static int fail(struct series_scan *scan, int error, char **ret_error)
{
	int64_t first = sqlite3_column_int64(scan->blocks, 0);

	scan->block.n_rows = 0;
	if (error == -ENOMEM)
		return SQLITE_NOMEM;
	if (ret_error && error == -EPROTONOSUPPORT)
		*ret_error = sqlite3_mprintf(
			"block %lld of sample_block was written by a newer version: update probing to "
			"read it",
			(long long)first);
	else if (ret_error)
		*ret_error = explain_damage(first, sqlite3_column_int64(scan->blocks, 1));
	return SQLITE_CORRUPT_VTAB;
}

int series_scan_next(struct series_scan *scan, unsigned columns, char **ret_error)
{
	int code, r;

	while ((code = sqlite3_step(scan->blocks)) == SQLITE_ROW) {
		if (!has_thread(scan))
			continue;
		r = open_row(scan, columns);
		return r < 0 ? fail(scan, r, ret_error) : SQLITE_ROW;
	}
	sqlite3_reset(scan->blocks);
	return code;
}

void series_scan_end(struct series_scan *scan)
{
	sqlite3_reset(scan->blocks);
}

void series_scan_done(struct series_scan *scan)
{
	sqlite3_finalize(TAKE(scan->blocks));
	block_done(&scan->block);
}
