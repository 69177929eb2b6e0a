/* SPDX-License-Identifier: MIT */
/* series_private.h - declarations for the tables over sample_block, and for their writer. Private. */
#ifndef PROBING_STORE_SERIES_PRIVATE_H
#define PROBING_STORE_SERIES_PRIVATE_H

#include "src/store/block.h"
#include "src/store/series.h"
#include "src/store/store_private.h"

/* ---- series_writer.c: rows into blocks ---- */

/*
 * The newest samples, which do not fill a block yet. In the file they are small blocks, pieces, of which
 * only the last one is rewritten; once there are enough rows, one full block replaces them.
 */
struct series {
	sqlite3_stmt *put, *drop;
	struct block_encoder *encoder;
	struct sample_row rows[BLOCK_ROWS];
	size_t n;
	size_t piece;   /* rows before it are in final pieces */
	size_t written; /* rows in the file */
	int64_t first;  /* number of rows[0]; 0: has to be read from the file */
};

void series_free(struct series *series);

/* Append a sample. Outside of a batch it is in the file at once. Errors: those of putting rows. */
int series_put(struct store *store, const struct sample_row *row);
/* The number of the last sample; 0: none. */
int64_t series_last(const struct store *store);
/* All samples into the file, in the transaction at work. */
int series_flush(struct store *store);
/* The same at the end, and the last pieces become one block. */
int series_end(struct store *store);
/* The transaction was rolled back: the state of the file is unknown. */
void series_forget(struct store *store);
/* Remove the samples up to a number. In a transaction. */
int series_drop(struct store *store, int64_t last);
/* Finalize prepared statements; they are prepared again on the next use. */
void series_finalize(struct store *store);

/* ---- series_scan.c: blocks out of a file ---- */

/* A range of samples; a scan may return others if it does not decode a block. */
struct series_range {
	int64_t first, last;         /* numbers */
	uint64_t since_ns, until_ns; /* both included */
	int64_t pid, tid;            /* -1: any */
};

#define SERIES_ALL                                                                                                     \
	((struct series_range){ .first = 1, .last = INT64_MAX, .until_ns = UINT64_MAX, .pid = -1, .tid = -1 })

struct series_scan {
	sqlite3 *db;
	sqlite3_stmt *blocks;
	bool is_backward; /* that statement's order */
	struct series_range range;
	struct block block;
	int64_t first; /* number of the block's first row */
	int64_t edge;  /* where the block before ended; backward: where it began */
};

/*
 * series_scan_begin - read the blocks that may contain the range, in order of their numbers.
 * @scan: zeroed, or used for another range before.
 * @is_backward: the newest first.
 * @ret_error: why they are unreadable, ended with sqlite3_free(); may be NULL, as below.
 * Returns SQLite's code.
 */
int series_scan_begin(struct series_scan *scan, sqlite3 *db, const struct series_range *range, bool is_backward,
		      char **ret_error);
/*
 * series_scan_next - the next block into scan->block, with these columns loaded.
 * @columns: a set of BLOCK_HAS().
 * @ret_error: the unreadable block, and the remedy.
 * Returns SQLITE_ROW, SQLITE_DONE or an error code.
 */
int series_scan_next(struct series_scan *scan, unsigned columns, char **ret_error);
/* End the scan; keeps the memory. */
void series_scan_end(struct series_scan *scan);
void series_scan_done(struct series_scan *scan);

/* The first time (ns) that is at or after seconds since 1970 as SQL has them, or only after them; UINT64_MAX: none is.
 * */
uint64_t series_first_time(double seconds, bool is_after);

/* ---- series_fields.c: fields of a tracepoint, as further columns ---- */

struct catalogue_table;

struct series_fields {
	char *table;  /* of the tracepoint; NULL: there is none */
	char **names; /* of columns, as `sample` shows them */
	int n;
};

/* Returns SQLite's code. A file that is no recording has none. */
int series_fields_read(sqlite3 *db, const struct catalogue_table *described, struct series_fields *ret);
/* The sampled event of the run, ended with sqlite3_free(); NULL: unknown, or no memory. */
char *series_event(sqlite3 *db);
void series_fields_done(struct series_fields *fields);
/* A statement for the tracepoint's row of sample ?1; fields->table is there. Returns SQLite's code. */
int series_fields_prepare(sqlite3 *db, const struct series_fields *fields, sqlite3_stmt **ret);

/* ---- The modules ---- */

extern const sqlite3_module series_table_module, series_total_module;

#endif
