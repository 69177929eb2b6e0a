/* SPDX-License-Identifier: MIT */
/* series_table.h - declarations for planning and reading the table `sample`. Private. */
#ifndef PROBING_STORE_SERIES_TABLE_H
#define PROBING_STORE_SERIES_TABLE_H

#include "src/store/activity.h"
#include "src/store/processes.h"
#include "src/store/series_private.h"

/* In the order of src/catalogue/tables/sample.sql. */
enum sample_column {
	SAMPLE_TIMESTAMP,
	SAMPLE_PID,
	SAMPLE_TID,
	SAMPLE_CPU,
	SAMPLE_WEIGHT,
	SAMPLE_VERDICT,
	SAMPLE_END,
	SAMPLE_STACK,
	SAMPLE_GIL,
	SAMPLE_GC,
	SAMPLE_STATE,
	SAMPLE_EVENT,
	SAMPLE_IDLE,
	SAMPLE_STEP,
	SAMPLE_SPAN,
	SAMPLE_PHASE,
	SAMPLE_TORCH_MODULE,
	SAMPLE_TORCH_STAGE,
	SAMPLE_HOST,
	SAMPLE_RANK,
	SAMPLE_LOCAL_RANK,
	SAMPLE_N_COLUMNS /* a tracepoint's follow, and run of a merged recording */
};

/* Constraints of a query, a letter for each value that the cursor receives. */
#define WANT_NUMBER 'n'
#define WANT_FIRST '>'
#define WANT_LAST '<'
#define WANT_ABOVE '+'
#define WANT_BELOW '-'
#define WANT_AT '='
#define WANT_SINCE 's'
#define WANT_AFTER 'a'
#define WANT_UNTIL 'u'
#define WANT_BEFORE 'b'
#define WANT_PID 'p'
#define WANT_TID 't'
#define WANT_STACK 'k'
#define WANT_VERDICT 'v'
#define WANT_END 'e'
#define WANT_STATE 'w'
#define WANT_GIL 'g'
#define WANT_GC 'c'
#define WANT_IDLE 'i'
#define WANT_EVENT 'E'
#define WANT_NUMBERS "<>+-"
#define WANT_SINCES "sa"
#define WANT_UNTILS "ub"
#define WANT_EXACT "=saubpt"   /* those that the cursor checks itself, so that SQLite need not check again */
#define WANT_WORDS "ptkvewgci" /* those that take rows out of blocks */

struct series_table {
	sqlite3_vtab base; /* first: SQLite's pointers are to it */
	sqlite3 *db;
	struct series_fields fields;
	bool has_run; /* the last column is the run: a merged recording */
	/* For step, span and phase; NULL: not read yet. */
	struct activity *activity;
	int64_t activity_version;
	/* For torch_module and torch_stage, likewise. */
	struct activity *passes;
	int64_t passes_version;
};

/* How many samples there are, roughly; at least 1. */
int64_t series_count(sqlite3 *db);

/* ---- series_words.c: constraints on columns of words ---- */

/* NULL and -1: any. */
struct series_words {
	char *verdict, *end, *state; /* ended with sqlite3_free() */
	int64_t gil, gc, idle;
};

void series_words_init(struct series_words *words);
void series_words_done(struct series_words *words);
bool series_words_are_any(const struct series_words *words);
/* Whether a row with these flags matches. */
bool series_words_match(const struct series_words *words, uint64_t flags);

/* The value of a column that flags alone decide, of these flags. */
void series_result_flags(sqlite3_context *context, enum sample_column column, uint64_t flags);

/* ---- series_cursor.c ---- */

int series_cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret);
int series_cursor_close(sqlite3_vtab_cursor *base);
int series_cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *wants, int n_values, sqlite3_value **values);
int series_cursor_next(sqlite3_vtab_cursor *base);
int series_cursor_eof(sqlite3_vtab_cursor *base);
int series_cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column);
int series_cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret);

/* ---- series_check.c: block_error() ---- */

int series_register_check(sqlite3 *db);

#endif
