/* SPDX-License-Identifier: MIT */
/* store_private.h - declarations that the files of this folder share. */
#ifndef PROBING_STORE_PRIVATE_H
#define PROBING_STORE_PRIVATE_H

#include "base/place.h"
#include "src/store/store.h"

/* The statements of the writer; writer.c has their SQL. */
enum statement {
	PUT_RUN,
	PUT_PROCESS,
	PUT_THREAD,
	PUT_MODULE,
	PUT_FUNCTION,
	PUT_FRAME,
	PUT_STACK,
	PUT_TOTAL,
	PUT_COUNTER,
	NAME_FRAME,
	SET_FRAME_KIND,
	DROP_INLINED,
	REFRESH_FUNCTION,
	SET_RUN_PYTHON,
	END_RUN,
	N_STATEMENTS
};

struct series;

enum { STORE_MAX_METRIC_TABLES = 16 };

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[N_STATEMENTS];
	sqlite3_stmt *put_fields; /* of the tracepoint's table (event_table.c); NULL: there is none */
	sqlite3_stmt *
		put_metrics[STORE_MAX_METRIC_TABLES]; /* by the list store_metric_tables (usage.c); NULL: not used yet */
	size_t n_metrics[STORE_MAX_METRIC_TABLES];    /* rows put since some were moved into blocks (metric_pack.c) */
	double blocks_from;                           /* no block of metrics begins before: seconds; 0: not known */
	struct series *series;                        /* the newest samples (series_writer.c); NULL: none was put */
	/* Holds the recorder's lock. Closing any descriptor of a file releases the
	 * locks that SQLite holds on it in this process, so it is closed after db. */
	int lock_fd;
	struct place place; /* SQLite reaches its files through the folder's descriptor */
	bool has_checksum; /* it had one when it was opened: the first change removes it, and a clean end writes another */
	bool in_batch;
	int batch_error; /* why SQLite rolled back the whole batch; 0: it did not */
};

/* writer.c: get the statements ready; end them (half-prepared is fine). */
int writer_prepare(struct store *store);
void writer_finalize(struct store *store);

/* Run a statement with bound values; @code: of binding them. Clears the bindings. */
int writer_run(struct store *store, sqlite3_stmt *statement, int code);

/* notice.c: pass a notice to store_on_notice()'s receiver. */
void store_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* reader.c: distrust a foreign file's contents, and check that it is a recording. */
int reader_check(sqlite3 *db);

/* checksum.c: write the file's checksum; whether it has one; remove it, in a transaction. */
int checksum_make(struct store *store);
int checksum_is_there(struct store *store, bool *ret);
int checksum_break(struct store *store);

/* Mark the run clean. */
int writer_end_run(struct store *store, uint64_t ended_ns);

/*
 * error.c: store_errno() for questions that are right for every sound
 * recording. Where SQLite finds them wrong (no such column), the file is.
 */
int store_read_errno(sqlite3 *db, int sqlite_code);

/* error.c: run SQL without results; negative errno. */
int store_exec(sqlite3 *db, const char *sql);

#endif
