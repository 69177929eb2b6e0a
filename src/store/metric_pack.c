/* SPDX-License-Identifier: MIT */
/*
 * metric_pack.c - moves rows of metrics into blocks, cuts blocks, and drops them; see metric_table.h.
 *
 * A block has the columns of its table but the timestamp, in their order. All happens in transactions of the caller, so a reader sees
 * each row once.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "src/store/metric_block.h"
#include "src/store/metric_table.h"

/* MANY_ROWS: those of one more moment mostly fit, too. KEEP_S: rows of GPUs come a little after their timestamp, and any tool may look at the last minute. */
enum { MANY_ROWS = METRIC_BLOCK_ROWS - 128, KEEP_S = 60 };

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

struct packing {
	struct store *store;
	const char *table;
	int time_column;
	struct metric_encoder encoder;
	sqlite3_stmt *put; /* ?1 to ?5: name, first, last, rows, data */
};

/* Takes ownership of sql; NULL: out of memory. */
static int prepare(struct store *store, char *sql, sqlite3_stmt **ret)
{
	int code = sql ? sqlite3_prepare_v2(store->db, sql, -1, ret, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return store_errno(store->db, code);
}

static bool has_table(struct store *store, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(store->db, "main", table, column, NULL, NULL, NULL, NULL, NULL) ==
	       SQLITE_OK;
}

/* Columns of the key say what a row is about. */
static int read_columns(struct packing *packing)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *columns = NULL;
	size_t n = 0;
	int code = SQLITE_DONE, r;

	packing->time_column = -1;
	r = prepare(packing->store,
		    sqlite3_mprintf("SELECT name, pk FROM pragma_table_info(%Q, 'main') ORDER BY cid", packing->table),
		    &columns);
	for (int i = 0; r >= 0 && (code = sqlite3_step(columns)) == SQLITE_ROW; i++) {
		const char *name = (const char *)sqlite3_column_text(columns, 0);

		if (name && strcmp(name, "timestamp") == 0) {
			packing->time_column = i;
			continue;
		}
		if (n == METRIC_BLOCK_MAX_COLUMNS)
			return -EINVAL;
		packing->encoder.keys |= (uint64_t)(sqlite3_column_int(columns, 1) > 0) << n++;
	}
	packing->encoder.n_columns = n;
	return r < 0 ? r : packing->time_column < 0 ? -EINVAL : store_errno(packing->store->db, code);
}

static struct row_value value_of(sqlite3_stmt *row, int column)
{
	switch (sqlite3_column_type(row, column)) {
	case SQLITE_INTEGER:
		return (struct row_value){ .kind = ROW_INTEGER, .integer = sqlite3_column_int64(row, column) };
	case SQLITE_FLOAT:
		return (struct row_value){ .kind = ROW_REAL, .real = sqlite3_column_double(row, column) };
	case SQLITE_NULL:
		return (struct row_value){ .kind = ROW_NULL };
	default:
		return (struct row_value){ .kind = ROW_TEXT,
					   .text = (const char *)sqlite3_column_text(row, column),
					   .n_text = (size_t)sqlite3_column_bytes(row, column) };
	}
}

static int put_block(struct packing *packing)
{
	CLEANUP(freep) uint8_t *data = NULL;
	double first = packing->encoder.first, last = packing->encoder.last;
	size_t n_rows = packing->encoder.rows.n_rows, n_bytes;
	int r;

	if (n_rows == 0)
		return 0;
	r = metric_encoder_pack(&packing->encoder, &data, &n_bytes);
	if (r < 0)
		return r;
	if (packing->store->blocks_from != 0)
		packing->store->blocks_from = MIN(packing->store->blocks_from, first);
	sqlite3_bind_text(packing->put, 1, packing->table, -1, SQLITE_STATIC);
	sqlite3_bind_double(packing->put, 2, first);
	sqlite3_bind_double(packing->put, 3, last);
	sqlite3_bind_int64(packing->put, 4, (int64_t)n_rows);
	return writer_run(packing->store, packing->put,
			  sqlite3_bind_blob64(packing->put, 5, data, n_bytes, SQLITE_STATIC));
}

static int put_row(struct packing *packing, sqlite3_stmt *row)
{
	struct row_value values[METRIC_BLOCK_MAX_COLUMNS];
	size_t n = 0;
	int r;

	for (int i = 0; i < sqlite3_column_count(row); i++)
		if (i != packing->time_column)
			values[n++] = value_of(row, i);
	r = metric_encoder_put(&packing->encoder, sqlite3_column_double(row, packing->time_column), values);
	if (r != -E2BIG)
		return r;
	r = put_block(packing);
	return r < 0 ? r
		     : metric_encoder_put(&packing->encoder, sqlite3_column_double(row, packing->time_column), values);
}

/* All rows from before a time. Those that are left are of no time that a block may have. */
static int move_rows(struct packing *packing, double before)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *remove = NULL;
	struct store *store = packing->store;
	int code = SQLITE_DONE, r;

	r = prepare(
		store,
		sqlite3_mprintf("SELECT * FROM main.\"%w\" WHERE timestamp > 0 AND timestamp < ?1 ORDER BY timestamp",
				packing->table),
		&rows);
	if (r >= 0)
		r = prepare(store,
			    sqlite3_mprintf("DELETE FROM main.\"%w\" WHERE timestamp > 0 AND timestamp < ?1",
					    packing->table),
			    &remove);
	if (r < 0)
		return r;
	sqlite3_bind_double(rows, 1, before);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = put_row(packing, rows);
	if (r >= 0)
		r = store_errno(store->db, code);
	if (r >= 0)
		r = put_block(packing);
	sqlite3_reset(rows);
	return r < 0 ? r : writer_run(store, remove, sqlite3_bind_double(remove, 1, before));
}

static int pack(struct store *store, const char *table, double before)
{
	struct packing packing = { .store = store, .table = table };
	int r;

	r = read_columns(&packing);
	if (r >= 0)
		r = prepare(
			store,
			sqlite3_mprintf(
				"INSERT INTO main.metric_block(name, first, last, rows, data) VALUES(?, ?, ?, ?, ?)"),
			&packing.put);
	if (r >= 0)
		r = move_rows(&packing, before);
	sqlite3_finalize(packing.put);
	metric_encoder_done(&packing.encoder);
	return r;
}

/* @ret: of one number of a table; NULL is NaN. */
static int ask(struct store *store, char *sql, double *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code, r = prepare(store, sql, &row);

	if (r < 0)
		return r;
	code = sqlite3_step(row);
	*ret = code == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL ? sqlite3_column_double(row, 0)
										: (double)NAN;
	return code == SQLITE_ROW ? 0 : store_errno(store->db, code);
}

int metric_pack_due(struct store *store)
{
	int r = 0;

	for (size_t i = 0; store_metric_tables[i] && r >= 0; i++) {
		const char *table = store_metric_tables[i];
		double last;

		if (store->n_metrics[i] < MANY_ROWS || !has_table(store, "metric_block", NULL) ||
		    !has_table(store, table, "timestamp"))
			continue;
		store->n_metrics[i] = 0;
		r = ask(store, sqlite3_mprintf("SELECT max(timestamp) FROM main.\"%w\"", table), &last);
		if (r >= 0 && isfinite(last))
			r = pack(store, table, last - KEEP_S);
	}
	return r;
}

int metric_pack_all(struct store *store)
{
	bool is_moved = false;
	int r = 0;

	if (!has_table(store, "metric_block", NULL))
		return 0;
	for (size_t i = 0; store_metric_tables[i] && r >= 0; i++) {
		const char *table = store_metric_tables[i];
		double n;

		if (!has_table(store, table, "timestamp"))
			continue;
		r = ask(store, sqlite3_mprintf("SELECT count(*) FROM main.\"%w\"", table), &n);
		if (r < 0 || n < MANY_ROWS)
			continue;
		r = pack(store, table, INFINITY);
		is_moved = true;
	}
	return r < 0 ? r : is_moved;
}

/* ---- Drop ---- */

/* Looking for old blocks takes a look at all: remember when the first one begins. */
static int note_first(struct store *store)
{
	double first;
	int r = ask(store, sqlite3_mprintf("SELECT min(first) FROM main.metric_block"), &first);

	if (r >= 0)
		store->blocks_from = isfinite(first) ? first : (double)INFINITY;
	return r;
}

static bool may_have_before(struct store *store, double seconds)
{
	return (store->blocks_from == 0 || store->blocks_from < seconds) && has_table(store, "metric_block", NULL);
}

int metric_drop_blocks(struct store *store, double seconds)
{
	char *sql;
	int r;

	if (!may_have_before(store, seconds))
		return 0;
	sql = sqlite3_mprintf("DELETE FROM main.metric_block WHERE last < %!.17g", seconds);
	r = sql ? store_exec(store->db, sql) : -ENOMEM;
	sqlite3_free(sql);
	return r < 0 ? r : note_first(store);
}

/* Put the rows of a block from a time on into its place. */
static int cut_block(struct packing *packing, sqlite3_stmt *block, double seconds)
{
	struct metric_rows rows = { 0 };
	int r;

	packing->encoder = (struct metric_encoder){ 0 };
	r = read_columns(packing);
	if (r >= 0)
		r = metric_rows_open(&rows, sqlite3_column_blob(block, 2), (size_t)sqlite3_column_bytes(block, 2));
	if (r >= 0 && rows.n_columns != packing->encoder.n_columns)
		r = -EBADMSG;
	for (size_t i = 0; i < rows.n_rows && r >= 0; i++)
		if (rows.timestamps[i] >= seconds)
			r = metric_encoder_put(&packing->encoder, rows.timestamps[i], rows.values + i * rows.n_columns);
	if (r >= 0)
		r = store_errno(packing->store->db,
				sqlite3_bind_int64(packing->put, 6, sqlite3_column_int64(block, 0)));
	if (r >= 0)
		r = put_block(packing);
	metric_rows_done(&rows);
	metric_encoder_done(&packing->encoder);
	return r;
}

int store_cut_metrics(struct store *store, double limit, double kept)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *blocks = NULL, *replace = NULL;
	struct packing packing = { .store = store };
	int code = SQLITE_DONE, r;

	if (!may_have_before(store, limit))
		return 0;
	r = prepare(store,
		    sqlite3_mprintf(
			    "SELECT metric_block, name, data FROM main.metric_block WHERE first < ?1 AND last >= ?2"),
		    &blocks);
	if (r >= 0)
		r = prepare(store,
			    sqlite3_mprintf("UPDATE main.metric_block SET first = ?2, last = ?3, rows = ?4, data = ?5"
					    " WHERE metric_block = ?6 AND name = ?1"),
			    &replace);
	if (r < 0)
		return r;
	packing.put = replace;
	sqlite3_bind_double(blocks, 1, limit);
	sqlite3_bind_double(blocks, 2, kept);
	while (r >= 0 && (code = sqlite3_step(blocks)) == SQLITE_ROW) {
		packing.table = (const char *)sqlite3_column_text(blocks, 1);
		r = packing.table ? cut_block(&packing, blocks, kept) : -ENOMEM;
	}
	return r < 0 ? r : code != SQLITE_DONE ? store_errno(store->db, code) : note_first(store);
}

int metric_first_block(struct store *store, bool *ret, double *ret_last)
{
	int r;

	*ret = false;
	if (!has_table(store, "metric_block", NULL))
		return 0;
	r = ask(store, sqlite3_mprintf("SELECT min(last) FROM main.metric_block"), ret_last);
	*ret = r >= 0 && isfinite(*ret_last);
	return r;
}
