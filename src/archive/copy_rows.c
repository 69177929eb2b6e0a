/* SPDX-License-Identifier: MIT */
/*
 * copy_rows.c - copies rows that programs wrote: the rings of all sources, one after the other.
 *
 * Rings get new numbers, and the numbers of their processes in the new file.
 */
#include <errno.h>
#include <stdio.h>

#include "src/archive/copy_private.h"

static int bind_and_run(struct copy *copy, sqlite3_stmt *rows, sqlite3_stmt *write, int first, int64_t number)
{
	sqlite3_bind_int64(write, 1, number);
	for (int i = first; i < sqlite3_column_count(rows); i++)
		sqlite3_bind_value(write, i + 1, sqlite3_column_value(rows, i));
	return copy_run(copy->db, write);
}

/* The columns of a ring; those of a copy are numbered from @number on. */
static int copy_ring_columns(struct copy *copy, struct source *source, int64_t old, int64_t number)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	int code, r;

	r = copy_prepare(source->db, "SELECT NULL, position, name, type FROM row_column WHERE row_table = ?1", &rows);
	if (r >= 0)
		r = copy_prepare(copy->db, "INSERT INTO row_column VALUES(?, ?, ?, ?)", &write);
	if (r < 0)
		return r;
	sqlite3_bind_int64(rows, 1, old);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = bind_and_run(copy, rows, write, 1, number);
	return r < 0 ? r : store_errno(source->db, code);
}

static bool count_row(void *data)
{
	return copy_step(data, "rows of programs", 0) == 0;
}

static int copy_ring(struct copy *copy, struct source *source, sqlite3_stmt *ring, sqlite3_stmt *write)
{
	int64_t old = sqlite3_column_int64(ring, 0), number = 0, pid = 0;
	int r;

	if (!numbers_find(&source->numbers[KIND_PROCESS], sqlite3_column_int64(ring, 1), &pid))
		return copy_damaged(copy, source, "rings");
	r = copy_number(copy->db, "SELECT coalesce(max(row_table), 0) + 1 FROM row_table", &number);
	if (r < 0)
		return r;
	sqlite3_bind_int64(write, 2, pid);
	r = bind_and_run(copy, ring, write, 2, number);
	if (r >= 0)
		r = copy_ring_columns(copy, source, old, number);
	return r < 0 ? r : store_copy_row_blocks(source->db, old, copy->to, number, count_row, copy);
}

int copy_program_rows(struct copy *copy, struct source *source)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rings = NULL, *write = NULL;
	int code, r;

	if (!copy_has(source->db, "row_table") || !copy_has(source->db, "row_column") ||
	    !copy_has(source->db, "row_block"))
		return 0;
	r = copy_prepare(source->db,
			 "SELECT row_table, pid, name, realtime_offset_ns - ?1, lost, dropped, unfit FROM row_table"
			 " ORDER BY row_table",
			 &rings);
	if (r >= 0)
		r = store_errno(source->db, sqlite3_bind_int64(rings, 1, source->clock.offset_ns));
	if (r >= 0)
		r = copy_prepare(copy->db, "INSERT INTO row_table VALUES(?, ?, ?, ?, ?, ?, ?)", &write);
	while (r >= 0 && (code = sqlite3_step(rings)) == SQLITE_ROW)
		r = copy_ring(copy, source, rings, write);
	if (r == -EBADMSG && !copy->result->why[0])
		snprintf(copy->result->why, sizeof copy->result->why, "a block of rows is damaged");
	return r < 0 ? r : store_errno(source->db, code);
}
