/* SPDX-License-Identifier: MIT */
/* block.h - a few thousand samples as compressed columns: the bytes in sample_block.data. Private.
 *
 *   1 byte    version of this format, 2; 1 is read, too
 *   4 bytes   CRC-32 (as of zlib) of all following bytes, little-endian
 *   numbers   n_rows, then the lengths in bytes of the columns, in the order of enum block_column
 *   columns   each its dictionary, if it has one, and its values
 *
 * A number is an unsigned LEB128. Values are planes: a byte with their number, then the lowest bytes of all
 * values, the second lowest ..., each plane one of:
 *   0, byte             the same byte for all
 *   1, bytes            uncompressed
 *   2, number, bytes    a Zstandard frame of so many bytes
 *
 *   time    number: the first time; number: the base of a time (enum time_base below); number: the usual
 *           step; values: difference from the base's time plus the step, zigzag; all in steps of 2^-22 s (times.h),
 *           of version 1 in nanoseconds
 *   thread  number: how many; values: their pids; values: their tids; values: index into these, of each row
 *   cpu     values
 *   weight  number: the smallest; values: the excess
 *   stack   number: how many, 0: no dictionary, the ids themselves follow as values; values: differences of the
 *           ascending ids (0: unreadable); values: index into these
 *   flags   number: how many; values: the combinations (see block_flags()); values: index into these
 */
#ifndef PROBING_STORE_BLOCK_H
#define PROBING_STORE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "src/store/store.h"

enum {
	BLOCK_VERSION = 2,
	BLOCK_OLDEST = 1,       /* that is read */
	BLOCK_ROWS = 8192,      /* of a full one; bench/NOTEBOOK.md has the choice */
	BLOCK_MAX_ROWS = 65536, /* more are not read */
	BLOCK_MAX_BYTES = 8 << 20,
	BLOCK_MAX_CPUS = 8192, /* number of CPUs with a base time */
};

enum block_column { BLOCK_TIME, BLOCK_THREAD, BLOCK_CPU, BLOCK_WEIGHT, BLOCK_STACK, BLOCK_FLAGS, BLOCK_N_COLUMNS };

#define BLOCK_HAS(column) (1u << (column))
#define BLOCK_ALL (BLOCK_HAS(BLOCK_N_COLUMNS) - 1)

/* Base of a row's time: the time of the row before, of the last row on its CPU, of its thread. If there
 * is none, the first time. */
enum time_base { BASE_ROW, BASE_CPU, BASE_THREAD, BASE_N };

/* ---- block_flags.c: the small answers about a sample as one number ---- */

/* -EINVAL: no such verdict, end, answer or state. */
int block_flags(const struct sample_row *row, unsigned *ret);
/* Sets verdict, end, gil, gc, state. -EBADMSG: no combination. */
int block_unflags(uint64_t flags, struct sample_row *ret);

/* Whether it is a sample: its words are there, its time is set, no number is negative. -EINVAL. */
int block_check_row(const struct sample_row *row);

/* ---- block_encode.c ---- */

struct block_encoder;

/* -ENOMEM. */
int block_encoder_new(struct block_encoder **ret);
void block_encoder_free(struct block_encoder *encoder);

/*
 * block_encode - rows as bytes.
 * Times are rounded as store_time() does.
 * @n:   1 .. BLOCK_ROWS.
 * @ret: borrowed until the next call.
 * Errors: -EINVAL bad n, or impossible values (block_check_row()); -ENOMEM.
 */
int block_encode(struct block_encoder *encoder, const struct sample_row *rows, size_t n, const uint8_t **ret,
		 size_t *ret_bytes);

/* ---- block_decode.c ---- */

/* A block that is read, a column at a time. Zeroed it is empty. Its memory is used again for the next one. */
struct block {
	uint8_t *bytes;
	size_t n_bytes, bytes_room;
	size_t n_rows;
	bool counts_ns; /* times are of version 1 */
	struct {
		const uint8_t *at;
		size_t n_bytes;
	} parts[BLOCK_N_COLUMNS];
	unsigned loaded;                   /* columns present in values */
	uint64_t *values[BLOCK_N_COLUMNS]; /* of thread, stack and flags an index into these: */
	uint64_t *pids, *tids, *stacks, *flags;
	size_t n_threads, n_stacks, n_flags;
	size_t room; /* rows that the arrays have room for */
	void *zstd;
};

/*
 * block_open - parse the bytes of a block, replacing the previous one.
 * Errors: -EBADMSG damaged, or no block; -EPROTONOSUPPORT of a newer version; -ENOMEM. The block is then empty.
 */
int block_open(struct block *block, const void *bytes, size_t n_bytes);

/* Decode columns, a set of BLOCK_HAS(), unless they are. -EBADMSG, -ENOMEM. */
int block_load(struct block *block, unsigned columns);

/* Row i; all columns are loaded. */
void block_row(const struct block *block, size_t i, struct sample_row *ret);

void block_done(struct block *block);

#endif
