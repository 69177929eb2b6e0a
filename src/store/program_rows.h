/* SPDX-License-Identifier: MIT */
/* program_rows.h - rows that programs write about themselves, in a recording. Part of store.h. */
#ifndef PROBING_STORE_PROGRAM_ROWS_H
#define PROBING_STORE_PROGRAM_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

enum row_kind { ROW_NULL, ROW_INTEGER, ROW_REAL, ROW_TEXT };

struct row_value {
	enum row_kind kind;
	union {
		int64_t integer;
		double real;
		const char *text; /* n_text bytes of UTF-8; borrowed */
	};
	size_t n_text;
};

/* Rows of one ring, one after the other. Zeroed it is empty; `at` is freed by its owner. */
struct row_bytes {
	uint8_t *at;
	size_t n_bytes, room;
	size_t n_rows, n_columns;
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC */
	uint64_t time_ns;           /* of the last row */
};

/* row_put - append a row. @values: one for each column; all rows have the same number. -ENOMEM. */
int row_put(struct row_bytes *to, uint64_t time_ns, const struct row_value *values, size_t n_columns);

/* A ring; strings are borrowed. */
struct row_column_row {
	const char *name, *type; /* INTEGER, REAL, ANY, TEXT */
};
struct row_table_row {
	int64_t row_table;
	pid_t pid;
	const char *name;
	int64_t realtime_offset_ns;
	const struct row_column_row *columns;
	size_t n_columns;
};

struct row_losses {
	uint64_t lost, dropped, unfit;
};

/* All: errors as those of putting rows; -ENOENT: the file is of a version that has no such tables. */
int store_put_row_table(struct store *store, const struct row_table_row *row);
/* store_put_row_block - last rows of a ring that retention has dropped with its process meanwhile are dropped, too. */
int store_put_row_block(struct store *store, int64_t row_table, const struct row_bytes *rows);
int store_put_row_losses(struct store *store, int64_t row_table, const struct row_losses *losses);

/*
 * store_copy_row_blocks - all rows of a ring into another file, in large blocks: a recorder writes one for each flush.
 * @keep_going: called for each row; false ends it with -ECANCELED. May be NULL.
 * Errors: also -EBADMSG a block is damaged.
 */
int store_copy_row_blocks(sqlite3 *from, int64_t old, struct store *to, int64_t number, bool (*keep_going)(void *data),
			  void *data);

/* A step of a process, by rows of `steps`. end_ns: the begin of the next one; UINT64_MAX: there is none. CLOCK_REALTIME. */
struct step_time {
	int64_t pid, step;
	uint64_t begin_ns, end_ns;
};

/*
 * store_read_steps - all steps of a recording, process by process in the order of time.
 * @ret: for free(3). Errors: -EBADMSG a block is damaged; -E2BIG more than 16 million rows; -ENOMEM.
 */
int store_read_steps(sqlite3 *db, struct step_time **ret, size_t *ret_n);

/*
 * row_block_register - register row_block_error(rows, data): why a row of row_block is unreadable; NULL: it is
 * readable. Returns SQLite's code.
 */
int row_block_register(sqlite3 *db);

/*
 * row_tables_attach - show the rows of the connection's recording as tables of the schema python. After
 * catalogue_register(). A file that is no recording, or of an older version, has none. Returns SQLite's code.
 */
int row_tables_attach(sqlite3 *db);

/*
 * row_tables_copy - a plain table in another database for each table of rows, with its hidden columns. A name that is
 * taken there gets "_" appended. @from: in a transaction that is rolled back; temporary tables of such names are dropped in it. Errors: -EBADMSG a block is damaged; -ENOMEM; what writing to that database reports.
 */
int row_tables_copy(sqlite3 *from, sqlite3 *to);

#endif
