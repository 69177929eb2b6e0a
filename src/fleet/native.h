/* SPDX-License-Identifier: MIT */
/* native.h - rows as one block of ClickHouse's Native format, compressed in its frame. Private.
 *
 *   varint columns, varint rows, then of each column: its name, its type, and its values one behind the other.
 *   A text is a varint of its bytes and these. An array's column is the ends of all arrays as UInt64, then all elements.
 *
 * The frame: 16 bytes for a checksum; 0x90 (zstd); the bytes of the frame from that byte on and those of the block,
 * each as 4 bytes; the zstd frame. The checksum is CityHash, which zstd's own makes superfluous: the request says so
 * (http_native_compression_disable_checksumming_on_decompress), and a damaged frame is refused by zstd.
 *
 * One block is a request: 18.16 answers 200 to a body that was cut between two blocks, and keeps the first.
 * Source: ClickHouse docs, Formats, "Native"; ClickHouse 18.16 and 26.7 themselves (tests/e2e/test_ship.py).
 */
#ifndef PROBING_FLEET_NATIVE_H
#define PROBING_FLEET_NATIVE_H

#include <zstd.h>

#include "base/util.h"
#include "src/fleet/hash.h"
#include "src/fleet/tables.h"

struct fleet_bytes {
	uint8_t *at;
	size_t n, room;
};

enum { NATIVE_MAX_COLUMNS = 24 };

struct native {
	const struct fleet_table *table;
	enum fleet_dialect dialect;
	size_t n_rows;
	unsigned at; /* column of the next value */
	int error;   /* the first one; all later puts do nothing */
	struct native_column {
		enum native_shape {
			NATIVE_NONE,
			NATIVE_NUMBER,
			NATIVE_REAL,
			NATIVE_TEXT,
			NATIVE_HASH,
			NATIVE_ARRAY
		} shape;
		unsigned width; /* bytes of a number */
		uint64_t n_elements;
		struct fleet_bytes values, elements;
	} columns[NATIVE_MAX_COLUMNS];
};

/* native_begin - an empty block for a table. Memory of the one before is used again. */
void native_begin(struct native *native, enum fleet_table_id table, enum fleet_dialect dialect);

/* native_reserve - have room for the numbers of so many rows at once, so that growing columns are not copied. */
void native_reserve(struct native *native, size_t n_rows);

/*
 * The values of a row, in the table's order, one call for each of its columns but those that are never sent. A column
 * that the dialect lacks takes its value, too, and drops it. Numbers are cut to their width.
 */
void native_number(struct native *native, uint64_t value);
void native_numbers(struct native *native, const uint64_t *values, size_t n); /* of n columns */
void native_real(struct native *native, double value);
void native_text(struct native *native, const char *text); /* NULL: "" */
void native_hash(struct native *native, const struct fleet_hash *hash);
void native_array(struct native *native, const uint64_t *values, size_t n);
void native_end_row(struct native *native);

/* native_columns - the names of the sent columns, "(a, b, c)", for INSERT. -ENAMETOOLONG. */
int native_columns(const struct native *native, char *to, size_t n_bytes);

/*
 * native_finish - the block as the body of a request.
 * @zstd: compresses it. It has a megabyte of its own, so keep it for the next block.
 * @ret: appended to what it holds.
 * Errors: -ENOMEM; -EINVAL a row was incomplete.
 */
int native_finish(const struct native *native, ZSTD_CCtx *zstd, struct fleet_bytes *ret);
void native_done(struct native *native);

int fleet_append(struct fleet_bytes *bytes, const void *more, size_t n);

#endif
