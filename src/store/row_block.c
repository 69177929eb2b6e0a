/* SPDX-License-Identifier: MIT */
/*
 * row_block.c - rows that a program wrote, packed and unpacked; row_block.h has the format.
 *
 * The bytes of a file are foreign: each length is checked before it is used, and a row has a value for each column or
 * the block is damaged.
 */
#include "src/store/row_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/util.h"
#include "src/store/bytes.h"

enum { ZSTD_LEVEL = 3, CRC_AT = 1, BODY_AT = 5, MAX_COLUMNS = 1024 };

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* ---- Pack ---- */

static int put_value(struct bytes *to, const struct row_value *value)
{
	uint64_t bits;
	uint8_t real[8];
	int r;

	r = put_byte(to, (uint8_t)value->kind);
	if (r < 0)
		return r;
	switch (value->kind) {
	case ROW_NULL:
		break;
	case ROW_INTEGER:
		return put_number(to, zigzag(value->integer));
	case ROW_REAL:
		memcpy(&bits, &value->real, sizeof bits);
		for (int i = 0; i < 8; i++)
			real[i] = (uint8_t)(bits >> 8 * i);
		return put_bytes(to, real, sizeof real);
	case ROW_TEXT:
		r = put_number(to, value->n_text);
		return r < 0 ? r : put_bytes(to, value->text, value->n_text);
	}
	return 0;
}

int row_put(struct row_bytes *to, uint64_t time_ns, const struct row_value *values, size_t n_columns)
{
	struct bytes bytes = { to->at, to->n_bytes, to->room };
	int r;

	r = put_number(&bytes, zigzag((int64_t)(time_ns - to->time_ns)));
	for (size_t i = 0; i < n_columns && r == 0; i++)
		r = put_value(&bytes, &values[i]);
	to->at = bytes.at;
	to->room = bytes.room;
	if (r < 0)
		return r;
	to->n_bytes = bytes.n;
	to->first_ns = to->n_rows == 0 ? time_ns : MIN(to->first_ns, time_ns);
	to->last_ns = to->n_rows == 0 ? time_ns : MAX(to->last_ns, time_ns);
	to->time_ns = time_ns;
	to->n_columns = n_columns;
	to->n_rows++;
	return 0;
}

static int pack_rows(const struct row_bytes *rows, struct bytes *to)
{
	size_t room = ZSTD_compressBound(rows->n_bytes), n;
	CLEANUP(freep) uint8_t *packed = malloc(room);

	if (!packed)
		return -ENOMEM;
	n = ZSTD_compress(packed, room, rows->at, rows->n_bytes, ZSTD_LEVEL);
	return ZSTD_isError(n) ? -ENOMEM : put_bytes(to, packed, n);
}

int row_block_pack(const struct row_bytes *rows, uint8_t **ret, size_t *ret_bytes)
{
	static const uint8_t head[BODY_AT] = { ROW_BLOCK_VERSION };
	struct bytes to = { 0 };
	uint32_t crc;
	int r;

	if (rows->n_rows == 0 || rows->n_rows > ROW_BLOCK_MAX_ROWS || rows->n_bytes > ROW_BLOCK_MAX_BYTES ||
	    rows->n_columns > MAX_COLUMNS)
		return -EINVAL;
	r = put_bytes(&to, head, sizeof head);
	if (r == 0)
		r = put_number(&to, rows->n_rows);
	if (r == 0)
		r = put_number(&to, rows->n_columns);
	if (r == 0)
		r = put_number(&to, rows->n_bytes);
	if (r == 0)
		r = pack_rows(rows, &to);
	if (r < 0) {
		free(to.at);
		return r;
	}
	crc = (uint32_t)crc32(0, to.at + BODY_AT, (uInt)(to.n - BODY_AT));
	for (int i = 0; i < 4; i++)
		to.at[CRC_AT + i] = (uint8_t)(crc >> 8 * i);
	*ret = to.at;
	*ret_bytes = to.n;
	return 0;
}

/* ---- Unpack ---- */

static int make_room(struct row_block *block, size_t n_bytes, size_t n_columns)
{
	if (block->room < n_bytes) {
		uint8_t *bytes = realloc(block->bytes, n_bytes);

		if (!bytes)
			return -ENOMEM;
		block->bytes = bytes;
		block->room = n_bytes;
	}
	if (block->values_room < n_columns) {
		struct row_value *values = realloc(block->values, n_columns * sizeof *values);

		if (!values)
			return -ENOMEM;
		block->values = values;
		block->values_room = n_columns;
	}
	return 0;
}

static int check_crc(struct cursor *from)
{
	uint64_t crc = cursor_fixed(from, BODY_AT - CRC_AT);

	return !from->failed && crc == (uint32_t)crc32(0, from->at, (uInt)cursor_left(from)) ? 0 : -EBADMSG;
}

static int unpack(struct row_block *block, struct cursor *from)
{
	uint64_t n_rows = cursor_leb128(from), n_columns = cursor_leb128(from), n_bytes = cursor_leb128(from);
	int r;

	/* A row has a byte for its time, and one for each column. */
	if (from->failed || n_rows > ROW_BLOCK_MAX_ROWS || n_columns > MAX_COLUMNS || n_bytes > ROW_BLOCK_MAX_BYTES ||
	    n_rows * (n_columns + 1) > n_bytes)
		return -EBADMSG;
	r = make_room(block, n_bytes + 1, n_columns + 1);
	if (r < 0)
		return r;
	if (ZSTD_decompress(block->bytes, n_bytes, from->at, cursor_left(from)) != n_bytes)
		return -EBADMSG;
	block->n_bytes = n_bytes;
	block->n_rows = n_rows;
	block->n_columns = n_columns;
	block->cursor = (struct cursor){ .at = block->bytes, .end = block->bytes + n_bytes };
	return 0;
}

void row_block_close(struct row_block *block)
{
	block->n_rows = block->n_columns = block->row = 0;
	block->time_ns = 0;
}

int row_block_open(struct row_block *block, const void *bytes, size_t n_bytes)
{
	struct cursor from = { .at = bytes, .end = (const uint8_t *)bytes + n_bytes };
	uint64_t version;
	int r;

	row_block_close(block);
	version = cursor_fixed(&from, 1);
	if (!from.failed && version > ROW_BLOCK_VERSION)
		return -EPROTONOSUPPORT;
	if (from.failed || version == 0)
		return -EBADMSG;
	r = check_crc(&from);
	return r < 0 ? r : unpack(block, &from);
}

static void read_value(struct cursor *from, struct row_value *ret)
{
	uint64_t kind = cursor_fixed(from, 1), bits;

	*ret = (struct row_value){ .kind = ROW_NULL };
	switch (kind) {
	case ROW_NULL:
		break;
	case ROW_INTEGER:
		ret->integer = unzigzag(cursor_leb128(from));
		break;
	case ROW_REAL:
		bits = cursor_fixed(from, 8);
		memcpy(&ret->real, &bits, sizeof bits);
		break;
	case ROW_TEXT:
		ret->n_text = cursor_leb128(from);
		if (ret->n_text > cursor_left(from))
			from->failed = true;
		if (from->failed)
			return;
		ret->text = (const char *)from->at;
		from->at += ret->n_text;
		break;
	default:
		from->failed = true;
	}
	if (!from->failed)
		ret->kind = (enum row_kind)kind;
}

int row_block_next(struct row_block *block)
{
	struct cursor *from = &block->cursor;

	if (block->row == block->n_rows)
		return 0;
	block->time_ns += (uint64_t)unzigzag(cursor_leb128(from));
	for (size_t i = 0; i < block->n_columns && !from->failed; i++)
		read_value(from, &block->values[i]);
	block->row++;
	if (from->failed || (block->row == block->n_rows && cursor_left(from) > 0)) {
		block->row = block->n_rows;
		return -EBADMSG;
	}
	return 1;
}

void row_block_done(struct row_block *block)
{
	free(block->bytes);
	free(block->values);
	*block = (struct row_block){ 0 };
}
