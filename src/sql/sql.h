/* sql.h - questions to a recording, and answers as text. */
#ifndef PROBING_SQL_H
#define PROBING_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

enum sql_format { SQL_TABLE, SQL_CSV, SQL_JSON, SQL_ROWS };

/* @name: "table", "csv", "json" or "rows". -EINVAL: none of them. */
int sql_format_parse(const char *name, enum sql_format *ret);

/*
 * sql_run - run all statements of a text and write their rows.
 * Only reads: a statement that would change anything is refused before it runs.
 * Rows are written as they come; several result sets stand one after another.
 * @columns: width for tables, 0: unlimited (nothing is ever cut).
 * @error:   receives a one-sentence message with the place in the text; where
 *           the place is known two more lines follow, the text and a caret
 *           under it. At least 512 bytes. Untouched on an output error.
 * Errors: -EINVAL SQL error, -EINTR interrupted, -ENOMEM (message in @error);
 *         what write(2) reports (-ENOSPC, -EPIPE, ...) with ferror(out) set.
 */
int sql_run(sqlite3 *db, const char *text, enum sql_format format, unsigned columns, FILE *out,
	    char *error, size_t error_bytes);

/*
 * sql_prompt - read statements from a terminal, with history, until EOF or .quit.
 * Ctrl-C drops the line being typed, or stops the running query. History is
 * kept in ${XDG_STATE_HOME:-~/.local/state}/probing/sql_history, for the user
 * alone. Lines are edited on out, or on stderr where out is no terminal.
 * @title: shown at the start (the file's name).
 * Errors: -ENOMEM; what write(2) on out reports.
 */
int sql_prompt(sqlite3 *db, const char *title, enum sql_format format, FILE *out);

/*
 * name_distance - edits between two names: letters inserted, removed, replaced
 * or swapped with their neighbour; upper and lower case are the same.
 * Only the first 63 bytes count.
 */
unsigned name_distance(const char *a, const char *b);

/* Whether somebody who typed one name may well have meant the other. */
bool name_is_near(const char *typed, const char *meant);

#endif
