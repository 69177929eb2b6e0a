/* SPDX-License-Identifier: MIT */
/* format.h - formats for the rows of a result.
 *
 * A format is a const descriptor in format_<name>.c. For a result set the caller calls
 * begin, row for each row, end; free always comes last. Writers ignore
 * errors of the file: run.c checks them after each call.
 */
#ifndef PROBING_SQL_FORMAT_H
#define PROBING_SQL_FORMAT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

/* Display options; each format uses those that apply to it. */
struct sql_look {
	unsigned columns; /* width of the terminal, 0: none */
	bool no_header;
};

struct sql_writer {
	const char *name;
	/*
	 * A result set begins.
	 * @statement: has the columns' names; outlives the state.
	 * @look:      borrowed for the call.
	 * @ret:       state for the other functions.
	 * Errors of all: -ENOMEM.
	 */
	int (*begin)(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret);
	/* The statement's current row. */
	int (*row)(void *state);
	/* No more rows. Not called when the query failed half way. */
	int (*end)(void *state);
	void (*free)(void *state);
	/* The column whose value was not of its type, after row returned -ERANGE. NULL: row never does. */
	int (*odd_column)(const void *state);
};

extern const struct sql_writer sql_writer_table, sql_writer_box, sql_writer_csv, sql_writer_json, sql_writer_jsonl,
	sql_writer_markdown, sql_writer_rows, sql_writer_arrow;

/* By enum sql_format (formats.c). */
extern const struct sql_writer *const sql_writers[];

#endif
