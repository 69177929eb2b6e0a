/* SPDX-License-Identifier: MIT */
/*
 * retention.c - keeps only the newest samples of a recording.
 *
 * Samples are dropped from the oldest on, some at a time, and subtracted from stack_total:
 * totals are those of the remaining samples. Afterwards stacks, frames, functions, threads
 * and processes without a total can be dropped, too.
 *
 * Invariants:
 * 1. The assigner of numbers of frames and stacks may still use those after the last
 *    ones of former trees (see store_drop_unused): these remain, used or not.
 * 2. Everything happens in transactions of the caller; a reader never sees a sample without
 *    its stack, nor totals that differ from the samples.
 */
#include <errno.h>
#include <math.h>

#include "base/util.h"
#include "src/store/series_private.h"

/* In all trees, frames of inlined functions are numbered from here on. */
#define FIRST_INLINED "4294967296"

/*
 * Blocks of rows that are older than a time in seconds. The last one that begins before it stays: its last step goes
 * on.
 */
#define DROP_ROWS(time)                                                                                                          \
	"DELETE FROM row_block WHERE row_block IN (SELECT b.row_block FROM row_block AS b JOIN row_table AS t USING (row_table)" \
	" WHERE (b.last_ns + t.realtime_offset_ns) / 1e9 < " time " AND EXISTS (SELECT 1 FROM row_block AS later"                \
	" WHERE later.row_table = b.row_table AND later.row_block > b.row_block"                                                 \
	" AND (later.first_ns + t.realtime_offset_ns) / 1e9 <= " time "))"

static const char find_sql[] = "SELECT rowid, timestamp FROM sample ORDER BY rowid LIMIT ?1";

/* ?1: the last sample to drop. */
static const char *const drop_sql[] = {
	("INSERT INTO stack_total(pid, tid, stack, samples, weight)"
	 " SELECT pid, tid, coalesce(stack, 0), -count(*), -sum(weight) FROM sample WHERE rowid <= ?1 GROUP BY 1, 2, 3"
	 " ON CONFLICT(pid, tid, stack) DO UPDATE SET samples = samples + excluded.samples,"
	 " weight = weight + excluded.weight"),
	("DELETE FROM stack_total WHERE (pid, tid, stack) IN"
	 " (SELECT pid, tid, coalesce(stack, 0) FROM sample WHERE rowid <= ?1) AND samples <= 0"),
	DROP_ROWS("(SELECT timestamp FROM sample WHERE rowid = ?1)"),
};

/* ?1: a time in seconds. */
static const char drop_rows_sql[] = DROP_ROWS("?1");

/* ?1: how many. */
static const char drop_first_rows_sql[] =
	"DELETE FROM row_block WHERE row_block IN (SELECT row_block FROM row_block ORDER BY row_block LIMIT ?1)";

/* ?1 and ?2: the last stack and frame of former trees. */
static const char *const unused_sql[] = {
	("WITH RECURSIVE live(stack) AS (SELECT stack FROM stack_total"
	 " UNION SELECT parent FROM stack JOIN live USING (stack) WHERE parent IS NOT NULL)"
	 " DELETE FROM stack WHERE stack <= ?1 AND stack NOT IN live"),
	("WITH RECURSIVE live(frame) AS (SELECT frame FROM stack"
	 " UNION SELECT frame FROM frame WHERE frame > ?2 AND frame < " FIRST_INLINED
	 " UNION SELECT inlined_into FROM frame JOIN live USING (frame) WHERE inlined_into IS NOT NULL)"
	 " DELETE FROM frame WHERE frame NOT IN live"),
	"DELETE FROM function WHERE function NOT IN (SELECT function FROM frame WHERE function IS NOT NULL)",
	("DELETE FROM thread WHERE ended IS NOT NULL AND NOT EXISTS"
	 " (SELECT 1 FROM stack_total AS t WHERE t.pid = thread.pid AND t.tid = thread.tid)"),
	("DELETE FROM process WHERE ended IS NOT NULL AND pid NOT IN (SELECT pid FROM thread)"
	 " AND pid NOT IN (SELECT pid FROM run) AND NOT EXISTS"
	 " (SELECT 1 FROM stack_total AS t WHERE t.pid = process.pid)"),
	"DELETE FROM pause WHERE ended < (SELECT timestamp FROM sample ORDER BY rowid LIMIT 1)",
	"DELETE FROM process_usage WHERE pid NOT IN (SELECT pid FROM process)",
	"DELETE FROM row_block WHERE row_table IN (SELECT row_table FROM row_table WHERE pid NOT IN (SELECT pid FROM process))",
	"DELETE FROM row_table WHERE pid NOT IN (SELECT pid FROM process)",
	"DELETE FROM row_column WHERE row_table NOT IN (SELECT row_table FROM row_table)",
};

static int prepare(struct store *store, const char *sql, sqlite3_stmt **ret)
{
	return store_errno(store->db, sqlite3_prepare_v2(store->db, sql, -1, ret, NULL));
}

/* Run the statement to its end. SQLite rejects binding a missing parameter, which does no harm. */
static int run(struct store *store, const char *sql, int64_t first, int64_t second)
{
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, sql, &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, first);
	sqlite3_bind_int64(statement, 2, second);
	r = store_errno(store->db, sqlite3_step(statement));
	sqlite3_finalize(statement);
	return r;
}

static int read_number(struct store *store, const char *sql, int64_t *ret)
{
	sqlite3_stmt *statement;
	int code, r;

	r = prepare(store, sql, &statement);
	if (r < 0)
		return r;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*ret = sqlite3_column_int64(statement, 0);
	r = code == SQLITE_ROW ? 0 : store_errno(store->db, code);
	sqlite3_finalize(statement);
	return r;
}

int store_limit_log(struct store *store, int64_t max_bytes)
{
	char sql[128];

	sqlite3_snprintf(sizeof sql, sql, "PRAGMA wal_autocheckpoint = %lld; PRAGMA journal_size_limit = %lld",
			 (long long)(max_bytes / STORE_PAGE_BYTES), (long long)max_bytes);
	return store_exec(store->db, sql);
}

int store_read_space(struct store *store, struct store_space *ret)
{
	int64_t n_pages = 0, n_free = 0, n_samples = 0;
	int r;

	r = read_number(store, "PRAGMA page_count", &n_pages);
	if (r >= 0)
		r = read_number(store, "PRAGMA freelist_count", &n_free);
	if (r >= 0) /* rows are dropped at one end and added at the other */
		r = read_number(store,
				"SELECT coalesce((SELECT first + samples FROM sample_block ORDER BY first DESC LIMIT 1)"
				" - (SELECT min(first) FROM sample_block), 0)",
				&n_samples);
	if (r < 0)
		return r;
	*ret = (struct store_space){
		.used_bytes = (n_pages - n_free) * STORE_PAGE_BYTES,
		.free_bytes = n_free * STORE_PAGE_BYTES,
		.n_samples = n_samples,
	};
	return 0;
}

/*
 * Count the oldest samples to drop, up to the first one that stays: samples are in order but for a second, and what is
 * dropped is one range. *ret_n 0: none.
 */
static int find_oldest(struct store *store, int64_t max, uint64_t before_ns, int64_t *ret_last, int64_t *ret_n)
{
	double before = before_ns == UINT64_MAX ? (double)INFINITY : store_seconds(before_ns);
	sqlite3_stmt *statement;
	int code, r;

	r = prepare(store, find_sql, &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, max);
	for (*ret_last = *ret_n = 0; (code = sqlite3_step(statement)) == SQLITE_ROW; ++*ret_n) {
		if (sqlite3_column_double(statement, 1) >= before)
			break;
		*ret_last = sqlite3_column_int64(statement, 0);
	}
	r = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_errno(store->db, code);
	sqlite3_finalize(statement);
	return r;
}

/* Metrics from before the first sample that stays. */
static int drop_metrics(struct store *store, int64_t last)
{
	sqlite3_stmt *statement;
	double seconds = 0;
	int code, r;

	r = prepare(store,
		    "SELECT coalesce((SELECT timestamp FROM sample WHERE rowid > ?1 ORDER BY rowid LIMIT 1),"
		    " (SELECT timestamp FROM sample WHERE rowid = ?1))",
		    &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, last);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		seconds = sqlite3_column_double(statement, 0);
	r = code == SQLITE_ROW ? 0 : store_errno(store->db, code);
	sqlite3_finalize(statement);
	return r < 0 ? r : store_drop_metrics_before(store, seconds);
}

int store_drop_oldest(struct store *store, int64_t max, uint64_t before_ns, int64_t *ret)
{
	int64_t last = 0, n = 0;
	int r;

	r = series_flush(store);
	if (r >= 0)
		r = find_oldest(store, max, before_ns, &last, &n);
	for (size_t i = 0; i < N_ELEMENTS(drop_sql) && r >= 0 && n > 0; i++)
		r = run(store, drop_sql[i], last, 0);
	if (r >= 0 && n > 0)
		r = drop_metrics(store, last);
	if (r >= 0 && n > 0)
		r = series_drop(store, last);
	if (r < 0)
		return r;
	*ret = n;
	return 0;
}

int store_drop_old_rows(struct store *store, uint64_t before_ns)
{
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, drop_rows_sql, &statement);
	if (r < 0)
		return r;
	sqlite3_bind_double(statement, 1, store_seconds(before_ns));
	r = store_errno(store->db, sqlite3_step(statement));
	sqlite3_finalize(statement);
	return r;
}

int store_drop_first_rows(struct store *store, int64_t max, int64_t *ret)
{
	int r;

	r = run(store, drop_first_rows_sql, max, 0);
	if (r >= 0)
		*ret = sqlite3_changes(store->db);
	return r;
}

int store_drop_unused(struct store *store, int64_t last_stack, int64_t last_frame)
{
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(unused_sql) && r >= 0; i++)
		r = run(store, unused_sql[i], last_stack, last_frame);
	return r;
}

int store_each_function_id(struct store *store, void (*take)(void *data, int64_t function), void *data)
{
	sqlite3_stmt *statement;
	int code, r;

	r = prepare(store, "SELECT function FROM function", &statement);
	if (r < 0)
		return r;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW)
		take(data, sqlite3_column_int64(statement, 0));
	r = store_errno(store->db, code);
	sqlite3_finalize(statement);
	return r;
}

/* Each step of the statement releases one page. */
int store_give_back(struct store *store, int64_t max_bytes)
{
	char sql[64];

	sqlite3_snprintf(sizeof sql, sql, "PRAGMA incremental_vacuum(%lld)", (long long)(max_bytes / STORE_PAGE_BYTES));
	return store_exec(store->db, sql);
}

int store_put_pause(struct store *store, const struct pause_row *row)
{
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, "INSERT OR REPLACE INTO pause(started, ended) VALUES(?, ?)", &statement);
	if (r < 0)
		return r;
	sqlite3_bind_double(statement, 1, store_seconds(row->started_ns));
	if (row->ended_ns != 0)
		sqlite3_bind_double(statement, 2, store_seconds(row->ended_ns));
	r = store_errno(store->db, sqlite3_step(statement));
	sqlite3_finalize(statement);
	return r;
}
