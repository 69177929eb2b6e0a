/* SPDX-License-Identifier: MIT */
/* sql.h - questions to a recording, and answers as text. */
#ifndef PROBING_SQL_H
#define PROBING_SQL_H

#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sql_format { SQL_TABLE, SQL_CSV, SQL_JSON, SQL_JSONL, SQL_MARKDOWN, SQL_BOX, SQL_ROWS, SQL_ARROW };

/* @name: "table", "csv", "json", ... -EINVAL: unknown. */
int sql_format_parse(const char *name, enum sql_format *ret);

/* The n-th name; NULL: there are no more. */
const char *sql_format_name(size_t n);

/* All names as part of a sentence: "table, csv or json". @to: 128 bytes. */
void sql_format_list(char *to, size_t n_bytes);

/* How statements are run, and how their rows are written. All zeros: a table, of all rows, nothing is changed. */
struct sql_rules {
	enum sql_format format;
	unsigned columns;  /* width for tables, 0: unlimited (nothing is ever cut) */
	bool no_header;    /* where a format has one that it can do without */
	bool may_write;    /* else a statement that would change anything is refused */
	uint64_t max_rows; /* of each answer; 0: all */
	uint64_t max_memory; /* bytes that a query may take, as a message names them; sql_limit_memory() sets the limit; 0: any */
};

/*
 * sql_limit_memory - bound the memory of this process: a query that wants more ends with -E2BIG and a sentence.
 * @max_bytes: of SQLite's heap. All of the process, with the files that sorting makes, may take a little more each.
 * The caller ignores SIGXFSZ. Errors: what setrlimit(2) reports.
 */
int sql_limit_memory(uint64_t max_bytes);

/*
 * sql_run - run all statements of a text and write their rows. They may use the syntax of dialect.h.
 * Only reads: a statement that would change anything is refused before it runs.
 * Writes rows at once; several result sets follow each other.
 * @error:   receives a one-sentence message with the position in the text; if
 *           the position is known two more lines follow, the text and a caret
 *           under it. At least 512 bytes. Untouched on an output error.
 * Errors: -EINVAL SQL error, -EINTR interrupted, -ENOMEM, -E2BIG more than rules->max_memory (message in @error);
 *         what write(2) reports (-ENOSPC, -EPIPE, ...) with ferror(out) set.
 */
int sql_run(sqlite3 *db, const char *text, enum sql_format format, unsigned columns, FILE *out, char *error,
	    size_t error_bytes);

/* The same by other rules. @ret_cut: whether an answer had more rows than were to be written; always set. */
int sql_run_by(sqlite3 *db, const char *text, const struct sql_rules *rules, FILE *out, char *error, size_t error_bytes,
	       bool *ret_cut);

/* A connection, and the settings for every query. */
struct sql_session {
	sqlite3 *db;
	struct sql_rules rules;
	uint64_t timeout_ns;    /* a text that takes longer is ended; 0: however long it takes */
	sqlite3 *const *behind; /* connections that tables of db read through; they are stopped with it */
	size_t n_behind;
	const volatile sig_atomic_t *interrupted; /* not 0: stop the query; NULL: never */
};

/*
 * sql_ask - sql_run_by() under the session's limits.
 * @note: receives a sentence if the result is incomplete; "" else. 256 bytes.
 * Errors: those of sql_run(); -ETIME it took too long.
 */
int sql_ask(const struct sql_session *session, const char *text, FILE *out, char *error, size_t error_bytes, char *note,
	    size_t note_bytes);

/*
 * sql_attach - add the tables and functions to a connection that its file does not have: functions,
 * schemas, and views that an older file lacks. Once for a connection, before sql_run().
 * Errors: -ENOMEM; -EIO, with SQLite's message.
 */
int sql_attach(sqlite3 *db);

/*
 * sql_prompt - read statements from a terminal, with history, until EOF or .quit.
 * Ctrl-C drops the current line, or stops the running query. The history is
 * in ${XDG_STATE_HOME:-~/.local/state}/probing/sql_history, for the user
 * alone. Lines are edited on out, or on stderr if out is no terminal.
 * @session: its columns are ignored; the terminal's count.
 * @title:   shown at the start (the file's name).
 * Errors: -ENOMEM; what write(2) on out reports.
 */
int sql_prompt(const struct sql_session *session, const char *title, FILE *out);

/* ---- Tables there are (catalogue.c) ---- */

struct sql_table {
	const char *schema, *name;
	const char *type;    /* table, view, virtual */
	const char *doc;     /* one line; "": none is known */
	const char *columns; /* their names: "pid, tid, name" */
	int64_t n_rows;      /* -1: counting them would take its time */
};

/*
 * sql_each_table - all tables of a connection, by schema and name.
 * @pattern: of LIKE, on the name or on "schema.name"; a word without wildcards is looked for anywhere. NULL: all.
 * @take:    strings are borrowed for the call; a negative result ends it and is returned.
 * Errors: -ENOMEM; -E2BIG a view or a name is too large; -EINVAL the schema cannot be read.
 */
int sql_each_table(sqlite3 *db, const char *pattern, int (*take)(void *data, const struct sql_table *table),
		   void *data);

/* ---- One statement for many databases (split.c) ---- */

/*
 * One statement for each of many databases, and one that puts their answers together: the pair answers as the statement
 * would over all rows of all databases. Only what is known to be so is split: a SELECT of one table, with aggregates that can
 * be put together again.
 */
struct sql_split {
	char *part;  /* for each database; NULL: the statement cannot be split */
	char *whole; /* over the table "answer": host, rank, local_rank and the columns of part, one row of part each */
	bool is_approximate; /* it has percentiles, within 1 % */
	const char *reason;  /* why it cannot be split, "" if nothing would be saved; NULL: it is split */
};

/*
 * sql_split - split a statement. Its table has the columns host, rank and local_rank in front, which differ by database.
 * @is_exact: percentiles must be exact: they cannot be put together, and are a reason not to split.
 * @ret:      ended with sql_split_done().
 * Errors: -ENOMEM.
 */
int sql_split(const char *sql, bool is_exact, struct sql_split *ret);
void sql_split_done(struct sql_split *split);

/* ---- Several recordings as one (multi_db.c) ---- */

struct multi_db;

/*
 * multi_db_open - all tables of several recordings, each with a first column "run", the file's number: 1 is the first.
 * The table run itself gets that as its key, and "file". Columns are matched by name; missing ones are NULL.
 * @paths:      borrowed for the call.
 * @ret_db:     reads only. Ended with sqlite3_close() before multi_db_close().
 * @ret_failed: on failure: the file that cannot be opened.
 * Errors: those of store_open_reader(); -ENOMEM.
 */
int multi_db_open(const char *const *paths, size_t n, sqlite3 **ret_db, struct multi_db **ret, size_t *ret_failed);
void multi_db_close(struct multi_db *multi_db);
void multi_db_closep(struct multi_db **multi_db);

/* The files' own connections; borrowed. */
sqlite3 *const *multi_db_connections(const struct multi_db *multi_db, size_t *ret_n);

/*
 * name_distance - edits between two names: letters inserted, removed, replaced
 * or swapped with their neighbour; upper and lower case are the same.
 * Only the first 63 bytes count.
 */
unsigned name_distance(const char *a, const char *b);

/* Whether one name is a likely typing error for the other. */
bool name_is_near(const char *typed, const char *meant);

#endif
