/* SPDX-License-Identifier: MIT */
/* rows.h - the rows of a table while they are read; and declarations that tables share. Private.
 *
 * Values are put column by column, row by row. Running out of memory is
 * recorded in the rows: callers need not check.
 */
#ifndef PROBING_LIVE_ROWS_H
#define PROBING_LIVE_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/live/live.h"

struct live_rows {
	struct live_value {
		enum { LIVE_NULL, LIVE_INTEGER, LIVE_REAL, LIVE_TEXT } type;
		union {
			int64_t integer;
			double real;
			size_t text; /* where it begins in bytes */
		};
		size_t n_bytes; /* of a text */
	} * values;
	size_t n_values, values_allocated;
	char *bytes;
	size_t n_bytes, bytes_allocated;
	int error; /* -ENOMEM: something is missing */
};

void live_null(struct live_rows *rows);
void live_integer(struct live_rows *rows, int64_t value);
void live_real(struct live_rows *rows, double value);
void live_bytes(struct live_rows *rows, const char *bytes, size_t n);
void live_text(struct live_rows *rows, const char *text); /* NULL: is NULL */

/* live_put_metric - a row of metrics; for struct metric_sink, whose data are the rows. */
struct metric_value;
int live_put_metric(void *data, const char *table, const struct metric_value *values, size_t n);

/* Drop all rows after so many values: those of a process that ended while it was read. */
void live_cut(struct live_rows *rows, size_t n_values);

void live_rows_done(struct live_rows *rows);

/* A value as the result of a virtual table's column; borrowed from the rows. */
void live_result(sqlite3_context *context, const struct live_rows *rows, size_t n);

/* ---- Sources of tables ---- */

struct backtrace_session;
struct gpu_reader;

struct ring_files;
struct live_ring;

/* Tables that the program of the process writes: rings.h. */
struct live_rings {
	struct ring_files *files; /* NULL: none */
	size_t n_files;
	struct live_ring *tables;
	size_t n_tables;
};

struct live_place {
	struct live *live;
	const struct live_table *table;
	const struct live_ring *ring; /* instead of table; NULL */
	struct live_rows *rows;       /* NULL: not read for this statement */
};

struct live {
	struct live_rings rings;
	bool has_ended;
	struct live_options options;
	sqlite3 *db;
	unsigned n_cursors; /* open ones; while there are any, rows stay in memory */
	int error;
	char why[LIVE_WHY_BYTES];          /* of error, a sentence; "": by its number */
	struct backtrace_session *session; /* NULL: not needed yet */
	struct gpu_reader *gpu;            /* NULL: not needed yet */
	struct live_place *places;         /* one per table */
	size_t n_places;
};

/*
 * live_read_file - a file of /proc/PID, "status", as a whole.
 * Errors: -ESRCH if the process has ended; what read(2) reports.
 */
int live_read_file(pid_t pid, const char *name, size_t max_bytes, char **ret, size_t *ret_bytes);

/* Report that a table is incomplete. */
void live_note(struct live *live, const char *sentence);

/* Ticks of the kernel's clock for accounting, in seconds. */
double live_seconds(uint64_t ticks);

/* When the machine was started, in seconds since 1970; 0: not known. */
double live_boot_time(void);

#endif
