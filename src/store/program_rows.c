/* SPDX-License-Identifier: MIT */
/* program_rows.c - rows that programs write into a recording: a few blocks a second, so statements are prepared for each. */
#include "src/store/program_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/row_block.h"
#include "src/store/store_private.h"

enum { FULL_BYTES = 1 << 20 }; /* of rows in a block */

static int prepare(struct store *store, const char *sql, sqlite3_stmt **ret)
{
	if (sqlite3_table_column_metadata(store->db, "main", "row_block", NULL, NULL, NULL, NULL, NULL, NULL) !=
	    SQLITE_OK)
		return -ENOENT;
	return store_errno(store->db, sqlite3_prepare_v2(store->db, sql, -1, ret, NULL));
}

static int run(struct store *store, sqlite3_stmt *statement, int code)
{
	int r = writer_run(store, statement, code);

	sqlite3_finalize(statement);
	return r;
}

static int put_column(struct store *store, int64_t row_table, int position, const struct row_column_row *column)
{
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, "INSERT OR REPLACE INTO row_column VALUES(?, ?, ?, ?)", &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, row_table);
	sqlite3_bind_int(statement, 2, position);
	sqlite3_bind_text(statement, 3, column->name, -1, SQLITE_STATIC);
	return run(store, statement, sqlite3_bind_text(statement, 4, column->type, -1, SQLITE_STATIC));
}

int store_put_row_table(struct store *store, const struct row_table_row *row)
{
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, "INSERT OR REPLACE INTO row_table VALUES(?, ?, ?, ?, 0, 0, 0)", &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, row->row_table);
	sqlite3_bind_int64(statement, 2, row->pid);
	sqlite3_bind_text(statement, 3, row->name, -1, SQLITE_STATIC);
	r = run(store, statement, sqlite3_bind_int64(statement, 4, row->realtime_offset_ns));
	for (size_t i = 0; i < row->n_columns && r >= 0; i++)
		r = put_column(store, row->row_table, (int)i, &row->columns[i]);
	return r;
}

int store_put_row_block(struct store *store, int64_t row_table, const struct row_bytes *rows)
{
	CLEANUP(freep) uint8_t *data = NULL;
	sqlite3_stmt *statement;
	size_t n_bytes;
	int r;

	r = row_block_pack(rows, &data, &n_bytes);
	if (r >= 0)
		r = prepare(store,
			    "INSERT INTO row_block SELECT NULL, ?1, ?2, ?3, ?4, ?5"
			    " WHERE EXISTS (SELECT 1 FROM row_table WHERE row_table = ?1)",
			    &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, row_table);
	sqlite3_bind_int64(statement, 2, (int64_t)rows->first_ns);
	sqlite3_bind_int64(statement, 3, (int64_t)rows->last_ns);
	sqlite3_bind_int64(statement, 4, (int64_t)rows->n_rows);
	return run(store, statement, sqlite3_bind_blob64(statement, 5, data, n_bytes, SQLITE_STATIC));
}

int store_put_row_losses(struct store *store, int64_t row_table, const struct row_losses *losses)
{
	sqlite3_stmt *statement;
	int r;

	r = prepare(store, "UPDATE row_table SET lost = ?2, dropped = ?3, unfit = ?4 WHERE row_table = ?1", &statement);
	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, row_table);
	sqlite3_bind_int64(statement, 2, (int64_t)losses->lost);
	sqlite3_bind_int64(statement, 3, (int64_t)losses->dropped);
	return run(store, statement, sqlite3_bind_int64(statement, 4, (int64_t)losses->unfit));
}

/* ---- Copy ---- */

static int put_full(struct store *to, int64_t number, struct row_bytes *rows)
{
	int r = rows->n_rows > 0 ? store_put_row_block(to, number, rows) : 0;

	rows->n_bytes = rows->n_rows = 0;
	rows->time_ns = 0;
	return r;
}

/* Whether a block must end before the next row. A row of a foreign file may be as large as a block: @n_bytes. */
static bool is_full(const struct row_bytes *rows, const struct row_block *block, size_t n_bytes)
{
	return rows->n_rows > 0 && (rows->n_bytes > FULL_BYTES || rows->n_bytes + n_bytes > ROW_BLOCK_MAX_BYTES ||
				    rows->n_rows == ROW_BLOCK_MAX_ROWS || rows->n_columns != block->n_columns);
}

/* Append the rows of a block. */
static int append(struct store *to, struct row_block *block, int64_t number, struct row_bytes *rows,
		  bool (*keep_going)(void *data), void *data)
{
	const uint8_t *at = block->cursor.at;
	int r, more;

	for (; (more = row_block_next(block)) > 0; at = block->cursor.at) {
		if (is_full(rows, block, (size_t)(block->cursor.at - at))) {
			r = put_full(to, number, rows);
			if (r < 0)
				return r;
		}
		r = row_put(rows, block->time_ns, block->values, block->n_columns);
		if (r >= 0 && keep_going && !keep_going(data))
			r = -ECANCELED;
		if (r < 0)
			return r;
	}
	return more;
}

int store_copy_row_blocks(sqlite3 *from, int64_t old, struct store *to, int64_t number, bool (*keep_going)(void *data),
			  void *data)
{
	sqlite3_stmt *blocks = NULL;
	struct row_block block = { 0 };
	struct row_bytes rows = { 0 };
	int code, r;

	r = store_errno(from,
			sqlite3_prepare_v2(from, "SELECT data FROM row_block WHERE row_table = ?1 ORDER BY row_block",
					   -1, &blocks, NULL));
	if (r >= 0)
		sqlite3_bind_int64(blocks, 1, old);
	while (r >= 0 && (code = sqlite3_step(blocks)) == SQLITE_ROW) {
		r = row_block_open(&block, sqlite3_column_blob(blocks, 0), (size_t)sqlite3_column_bytes(blocks, 0));
		if (r >= 0)
			r = append(to, &block, number, &rows, keep_going, data);
	}
	if (r >= 0)
		r = store_errno(from, code);
	if (r >= 0)
		r = put_full(to, number, &rows);
	sqlite3_finalize(blocks);
	row_block_done(&block);
	free(rows.at);
	return r;
}
