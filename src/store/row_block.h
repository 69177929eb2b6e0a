/* SPDX-License-Identifier: MIT */
/* row_block.h - rows that a program wrote, as bytes: row_block.data. Private.
 *
 *   1 byte    version of this format, 1
 *   4 bytes   CRC-32 (as of zlib) of all following bytes, little-endian
 *   numbers   rows, columns, bytes of the rows
 *   rest      the rows as a Zstandard frame
 *
 * A number is an unsigned LEB128; a signed one is zigzag. A row is the signed difference of its time (ns) from that of
 * the row before, and for each column a byte and a value:
 *   0   NULL
 *   1   integer: a signed number
 *   2   real: 8 bytes, little-endian
 *   3   text: a number of bytes, and the bytes
 */
#ifndef PROBING_STORE_ROW_BLOCK_H
#define PROBING_STORE_ROW_BLOCK_H

#include "base/cursor.h"
#include "src/store/store.h"

enum {
	ROW_BLOCK_VERSION = 1,
	ROW_BLOCK_MAX_ROWS = 1 << 20,
	ROW_BLOCK_MAX_BYTES = 16 << 20, /* of the rows */
};

/*
 * row_block_pack - rows of row_put() as a block.
 * @ret: freed by the caller. Errors: -EINVAL too many; -ENOMEM.
 */
int row_block_pack(const struct row_bytes *rows, uint8_t **ret, size_t *ret_bytes);

/* A block that is read. Zeroed it is empty; its memory is used again for the next one. */
struct row_block {
	uint8_t *bytes;
	size_t n_bytes, room;
	size_t n_rows, n_columns; /* of the whole block */
	struct cursor cursor;
	size_t row; /* rows read so far */
	uint64_t time_ns;
	struct row_value
		*values; /* of the last row; texts borrow from the block. Bytes that are no UTF-8 stay as they are */
	size_t values_room;
};

/* row_block_open - replaces the block before. Errors: -EBADMSG damaged; -EPROTONOSUPPORT a newer version; -ENOMEM. */
int row_block_open(struct row_block *block, const void *bytes, size_t n_bytes);
/* row_block_next - 1: block->time_ns and block->values are the next row; 0: there is none; -EBADMSG. */
int row_block_next(struct row_block *block);
/* row_block_close - there is no block any more; its memory waits for the next one. */
void row_block_close(struct row_block *block);
void row_block_done(struct row_block *block);

#endif
