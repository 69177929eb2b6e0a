/* SPDX-License-Identifier: MIT */
/* copy_private.h - declarations that the files of this folder share for making one recording of others. */
#ifndef PROBING_COPY_PRIVATE_H
#define PROBING_COPY_PRIVATE_H

#include "base/id_map.h"
#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/archive/archive.h"
#include "src/store/store.h"

/* Map from numbers in a source to numbers in the new file. */
struct numbers {
	struct id_map places; /* number -> index into new */
	int64_t *new;
	size_t n, allocated;
};
int numbers_add(struct numbers *numbers, int64_t old, int64_t new);
/* 0 becomes 0; false: it is not there. */
bool numbers_find(const struct numbers *numbers, int64_t old, int64_t *ret);
void numbers_done(struct numbers *numbers);

/* Kinds of numbered rows. */
enum kind { KIND_MODULE, KIND_FUNCTION, KIND_FRAME, KIND_STACK, KIND_PROCESS, N_KINDS, KIND_NONE = N_KINDS };

/* One copying. */
struct copy {
	struct store *to;
	sqlite3 *db; /* its connection */
	const struct copy_options *options;
	struct copy_result *result;
	const char *fields; /* the table of a tracepoint; NULL: none; owned */
	struct copy_progress progress;
};

/* One of the sources. */
struct source {
	sqlite3 *db;
	size_t index;
	struct numbers numbers[N_KINDS];
	int64_t first_run; /* in the new file */
	struct copy_clock clock;
};

/* A time of the source on the common clock. Values of other types, as NULL, stay. */
int copy_bind_time(const struct source *source, sqlite3_stmt *row, int column, sqlite3_stmt *to, int parameter);

/* copy.c: report progress, from time to time. -ECANCELED. */
int copy_step(struct copy *copy, const char *what, uint64_t n_all);
int copy_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret);
/* store_errno() of a write to the copy, which has the source's rows: one that the tables reject means that the source is damaged. */
int copy_write_errno(sqlite3 *db, int sqlite_code);
/* A statement whose values are bound, that gives no rows. */
int copy_run(sqlite3 *db, sqlite3_stmt *statement);
/* One number out of a database; 0 where there is no row. */
int copy_number(sqlite3 *db, const char *sql, int64_t *ret);
/* @ret: to be freed with sqlite3_free(): the columns that both have, "\"a\", \"b\"". */
int copy_columns(sqlite3 *from, sqlite3 *to, const char *table, char **ret);

/* A table that is copied row by row. */
struct copied_table {
	const char *name;
	const char *what; /* are copied, for progress */
	bool is_numbered; /* in the order of the first column; else in any */
	bool keeps_first; /* a row whose key is in the new file already is left out */
	int64_t n_before; /* for bind */
	/* Bind a row's column to the parameter of its number + 1. SQLite's code, or COPY_LEFT_OUT: without that row. */
	int (*bind)(const struct copied_table *table, const struct source *source, sqlite3_stmt *row, int column,
		    sqlite3_stmt *to);
};
enum { COPY_LEFT_OUT = -1 };
/* copy_each_row - the columns that the source and the new file both have. */
int copy_each_row(struct copy *copy, struct source *source, const struct copied_table *table);
/* A process of the source by its number in the new file; COPY_LEFT_OUT: the source's table "process" has none such. */
int copy_bind_pid(const struct source *source, sqlite3_stmt *row, int column, sqlite3_stmt *to);

bool copy_has(sqlite3 *db, const char *table);
/* -EBADMSG, with a description. */
int copy_damaged(struct copy *copy, const struct source *source, const char *what);

/* copy_tree.c: modules, functions, frames and stacks; equal ones become one. */
int copy_tree(struct copy *copy, struct source *source);

/* copy_samples.c: of all sources, in order of time, and their totals. */
int copy_samples(struct copy *copy, struct source *sources, size_t n_sources);
int copy_totals(struct copy *copy, struct source *source);

/* copy_gpu.c: tables of GPUs, where it has them; after its processes have numbers. */
int copy_gpu(struct copy *copy, struct source *source);
/* The same of dumps of a Flight Recorder. */
int copy_flight(struct copy *copy, struct source *source);

/* copy_metrics.c: rows of metrics; after its processes have numbers. */
int copy_metrics(struct copy *copy, struct source *source);
/* copy_rows.c: rows that programs wrote; after its processes have numbers. */
int copy_program_rows(struct copy *copy, struct source *source);

/* pids.c: choose the numbers of its processes; before anything else of the source is copied. */
int merge_numbers(struct copy *copy, struct source *source);
/* merge.c: runs, processes, threads, pauses and counts; whether the sources can be merged. */
int merge_rest(struct copy *copy, struct source *source);
int merge_check(struct copy *copy, const struct source *sources, size_t n_sources);

#endif
