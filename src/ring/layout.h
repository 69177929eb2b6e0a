/* SPDX-License-Identifier: MIT */
/* layout.h - the file of a ring: a table of fixed size in shared memory. Private; docs/rings.md shows the whole.
 *
 *   0                    struct ring_header
 *   RING_HEADER_BYTES    uint64_t sequence[n_rows]
 *                        uint64_t time_ns[n_rows]      CLOCK_MONOTONIC
 *                        uint64_t nulls[n_rows]        bit c: column c is NULL
 *                        uint64_t reals[n_rows]        bit c: a RING_NUMBER is a double
 *                        column 0: n_rows cells of cell_bytes
 *                        column 1 ...
 *
 * n_rows is a multiple of RING_ROWS_UNIT, so every array starts on a cache line. All words have the machine's byte order.
 *
 * Rows are numbered from 0 by the counter head. Row i is in slot i % n_rows. The slot's sequence says what is in it:
 *
 *   0         no row yet
 *   2i + 1    a writer is writing row i, or was killed while it did
 *   2i + 2    row i
 *
 * A writer claims a slot by compare-and-swap from an even, older value to 2i + 1. No other writer touches the slot
 * until it stores 2i + 2. So a row is never mixed from two. A reader that sees the same even value before and after it
 * has read the cells has read one row.
 */
#ifndef PROBING_RING_LAYOUT_H
#define PROBING_RING_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "src/ring/ring.h"

#define RING_MAGIC UINT64_C(0x676e6972626f7270) /* "probring" */

enum {
	RING_VERSION = 1,
	RING_HEADER_BYTES = 8192,
	RING_N_FIXED = 4, /* arrays of words before the columns */
	RING_WORD = 8,
};

/* Its texts end with a NUL, and have zeros behind it. */
struct ring_header_column {
	char name[RING_COLUMN_BYTES];
	uint32_t type;       /* enum ring_type */
	uint32_t cell_bytes; /* a multiple of RING_WORD; 8 of a number; of a text at most so much, zeros behind it */
};

struct ring_header {
	/* Never changed after the file has its name. */
	uint64_t magic;
	uint32_t version;
	uint32_t n_columns;
	uint64_t file_bytes;
	uint64_t n_rows;
	int32_t pid; /* of the writer, in its PID namespace */
	uint32_t unused;
	uint64_t start_time;        /* of the writer: clock ticks since boot, proc_pid_stat(5) */
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, when the file was created */
	char name[RING_NAME_BYTES];
	uint64_t unused_words[1];
	/* Counters, which writers add to; head has a cache line of its own. */
	uint64_t head; /* rows begun */
	uint64_t head_line[7];
	uint64_t skipped; /* numbers that no row has, as their slots were not free */
	uint64_t dropped; /* rows that no free slot was found for */
	uint64_t unfit;   /* values that their column has no type for, stored as NULL */
	uint64_t counter_line[5];
	struct ring_header_column columns[RING_MAX_COLUMNS];
};

_Static_assert(sizeof(struct ring_header_column) == 64, "one line a column");
_Static_assert(offsetof(struct ring_header, magic) == 0, "layout");
_Static_assert(offsetof(struct ring_header, version) == 8, "layout");
_Static_assert(offsetof(struct ring_header, n_columns) == 12, "layout");
_Static_assert(offsetof(struct ring_header, file_bytes) == 16, "layout");
_Static_assert(offsetof(struct ring_header, n_rows) == 24, "layout");
_Static_assert(offsetof(struct ring_header, pid) == 32, "layout");
_Static_assert(offsetof(struct ring_header, start_time) == 40, "layout");
_Static_assert(offsetof(struct ring_header, realtime_offset_ns) == 48, "layout");
_Static_assert(offsetof(struct ring_header, name) == 56, "layout");
_Static_assert(offsetof(struct ring_header, head) == 128, "layout");
_Static_assert(offsetof(struct ring_header, skipped) == 192, "layout");
_Static_assert(offsetof(struct ring_header, dropped) == 200, "layout");
_Static_assert(offsetof(struct ring_header, unfit) == 208, "layout");
_Static_assert(offsetof(struct ring_header, columns) == 256, "layout");
_Static_assert(sizeof(struct ring_header) <= RING_HEADER_BYTES, "layout");
_Static_assert(RING_MAX_COLUMNS <= 64, "a bit for each column in nulls and reals");
_Static_assert(RING_HEADER_BYTES % 4096 == 0, "whole pages");

/* Bytes of a row in all arrays. */
static inline uint64_t ring_row_bytes(const struct ring_header_column *columns, size_t n_columns)
{
	uint64_t bytes = RING_N_FIXED * RING_WORD;

	for (size_t i = 0; i < n_columns; i++)
		bytes += columns[i].cell_bytes;
	return bytes;
}

#endif
