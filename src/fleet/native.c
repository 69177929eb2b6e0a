/* SPDX-License-Identifier: MIT */
/* native.c - see native.h. */
#include "src/fleet/native.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/varint.h"

enum {
	FRAME_CHECKSUM = 16,
	FRAME_HEAD = 9, /* method, and two lengths */
	FRAME_ZSTD = 0x90,
	ZSTD_LEVEL = 1, /* 5.3 B a sample; a higher one takes more CPU than its bytes are worth */
};

static int reserve(struct fleet_bytes *bytes, size_t n)
{
	size_t room = bytes->room ? bytes->room : 1024;
	uint8_t *at;

	if (bytes->n + n <= bytes->room)
		return 0;
	while (room < bytes->n + n)
		room *= 2;
	at = realloc(bytes->at, room);
	if (!at)
		return -ENOMEM;
	bytes->at = at;
	bytes->room = room;
	return 0;
}

int fleet_append(struct fleet_bytes *bytes, const void *more, size_t n)
{
	int r = reserve(bytes, n);

	if (r == 0 && n > 0) {
		memcpy(bytes->at + bytes->n, more, n);
		bytes->n += n;
	}
	return r;
}

static int append_text(struct fleet_bytes *bytes, const char *text)
{
	uint8_t length[VARINT_MAX_BYTES];
	size_t n = strlen(text);
	int r = fleet_append(bytes, length, varint_encode(n, length));

	return r == 0 ? fleet_append(bytes, text, n) : r;
}

/* ---- Values ---- */

static void set_shape(struct native_column *column, const char *type)
{
	static const struct {
		const char *prefix;
		enum native_shape shape;
		unsigned width;
	} shapes[] = {
		{ "UInt8", NATIVE_NUMBER, 1 },        { "Int8", NATIVE_NUMBER, 1 },
		{ "UInt16", NATIVE_NUMBER, 2 },       { "UInt32", NATIVE_NUMBER, 4 },
		{ "Int32", NATIVE_NUMBER, 4 },        { "UInt64", NATIVE_NUMBER, 8 },
		{ "DateTime64", NATIVE_NUMBER, 8 },   { "DateTime", NATIVE_NUMBER, 4 },
		{ "Date", NATIVE_NUMBER, 2 },         { "Float64", NATIVE_REAL, 8 },
		{ "String", NATIVE_TEXT, 0 },         { "FixedString(16)", NATIVE_HASH, 0 },
		{ "Array(UInt64)", NATIVE_ARRAY, 0 },
	};

	column->shape = NATIVE_NONE;
	for (size_t i = 0; type && i < N_ELEMENTS(shapes); i++) {
		if (strncmp(type, shapes[i].prefix, strlen(shapes[i].prefix)) != 0)
			continue;
		column->shape = shapes[i].shape;
		column->width = shapes[i].width;
		return;
	}
}

void native_begin(struct native *native, enum fleet_table_id id, enum fleet_dialect dialect)
{
	const struct fleet_table *table = &fleet_tables[id];

	native->table = table;
	native->dialect = dialect;
	native->n_rows = native->at = 0;
	native->error = 0;
	for (size_t i = 0; i < table->n_columns && i < NATIVE_MAX_COLUMNS; i++) {
		struct native_column *column = &native->columns[i];

		column->values.n = column->elements.n = 0;
		column->n_elements = 0;
		set_shape(column, fleet_wire_type(&table->columns[i], dialect));
	}
}

void native_reserve(struct native *native, size_t n_rows)
{
	for (size_t i = 0; i < native->table->n_columns && i < NATIVE_MAX_COLUMNS; i++) {
		struct native_column *column = &native->columns[i];

		if (column->shape == NATIVE_NUMBER && native->error == 0)
			native->error = reserve(&column->values, (n_rows + 1) * column->width + sizeof(uint64_t));
	}
}

/* The column of the next value; NULL: the dialect lacks it, or a value before failed. */
static struct native_column *next(struct native *native, enum native_shape shape)
{
	struct native_column *column = &native->columns[native->at];

	if (native->at >= native->table->n_columns)
		native->error = -EINVAL;
	else
		native->at++;
	if (native->error < 0 || column->shape == NATIVE_NONE)
		return NULL;
	if (column->shape != shape)
		native->error = -EINVAL;
	return native->error < 0 ? NULL : column;
}

static void note(struct native *native, int r)
{
	if (r < 0 && native->error == 0)
		native->error = r;
}

/* Numbers are little-endian in the format. Eight bytes are written whatever the width: the next number covers the rest. */
static void put_number(struct native *native, uint64_t value)
{
	struct native_column *column = next(native, NATIVE_NUMBER);
	uint64_t little = htole64(value);

	if (!column)
		return;
	note(native, reserve(&column->values, sizeof little));
	if (native->error < 0)
		return;
	memcpy(column->values.at + column->values.n, &little, sizeof little);
	column->values.n += column->width;
}

void native_number(struct native *native, uint64_t value)
{
	put_number(native, value);
}

void native_numbers(struct native *native, const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_number(native, values[i]);
}

void native_real(struct native *native, double value)
{
	struct native_column *column = next(native, NATIVE_REAL);

	if (column)
		note(native, fleet_append(&column->values, &value, sizeof value));
}

void native_text(struct native *native, const char *text)
{
	struct native_column *column = next(native, NATIVE_TEXT);

	if (column)
		note(native, append_text(&column->values, text ? text : ""));
}

void native_hash(struct native *native, const struct fleet_hash *hash)
{
	struct native_column *column = next(native, NATIVE_HASH);

	if (column)
		note(native, fleet_append(&column->values, hash->bytes, sizeof hash->bytes));
}

void native_array(struct native *native, const uint64_t *values, size_t n)
{
	struct native_column *column = next(native, NATIVE_ARRAY);

	if (!column)
		return;
	column->n_elements += n;
	note(native, fleet_append(&column->values, &column->n_elements, sizeof column->n_elements));
	note(native, fleet_append(&column->elements, values, n * sizeof *values));
}

/* A column that is never sent, as an alias, takes no value. */
void native_end_row(struct native *native)
{
	const struct fleet_table *table = native->table;

	while (native->at < table->n_columns && table->columns[native->at].wire && !table->columns[native->at].wire[0])
		native->at++;
	if (native->at != table->n_columns)
		note(native, -EINVAL);
	native->at = 0;
	native->n_rows++;
}

/* ---- The block ---- */

int native_columns(const struct native *native, char *to, size_t n_bytes)
{
	const char *before = "(";
	size_t at = 0;

	for (size_t i = 0; i < native->table->n_columns; i++) {
		if (native->columns[i].shape == NATIVE_NONE)
			continue;
		at += (size_t)snprintf(to + at, n_bytes - at, "%s%s", before, native->table->columns[i].name);
		if (at + 1 >= n_bytes)
			return -ENAMETOOLONG;
		before = ", ";
	}
	memcpy(to + at, ")", 2);
	return 0;
}

/* Takes a block piece by piece: first it is measured, then compressed. */
struct sink {
	ZSTD_CCtx *zstd; /* NULL: only count */
	ZSTD_outBuffer to;
	size_t n_bytes; /* of the block so far */
	bool has_failed;
};

static void sink_put(struct sink *sink, const void *bytes, size_t n)
{
	ZSTD_inBuffer from = { bytes, n, 0 };

	sink->n_bytes += n;
	while (sink->zstd && from.pos < from.size && !sink->has_failed)
		sink->has_failed = ZSTD_isError(ZSTD_compressStream2(sink->zstd, &sink->to, &from, ZSTD_e_continue)) ||
				   sink->to.pos == sink->to.size;
}

static void sink_varint(struct sink *sink, uint64_t value)
{
	uint8_t coded[VARINT_MAX_BYTES];

	sink_put(sink, coded, varint_encode(value, coded));
}

static void sink_text(struct sink *sink, const char *text)
{
	size_t n = strlen(text);

	sink_varint(sink, n);
	sink_put(sink, text, n);
}

static void sink_block(struct sink *sink, const struct native *native)
{
	uint64_t n_columns = 0;

	for (size_t i = 0; i < native->table->n_columns; i++)
		n_columns += native->columns[i].shape != NATIVE_NONE;
	sink_varint(sink, n_columns);
	sink_varint(sink, native->n_rows);
	for (size_t i = 0; i < native->table->n_columns; i++) {
		const struct native_column *column = &native->columns[i];

		if (column->shape == NATIVE_NONE)
			continue;
		sink_text(sink, native->table->columns[i].name);
		sink_text(sink, fleet_wire_type(&native->table->columns[i], native->dialect));
		sink_put(sink, column->values.at, column->values.n);
		sink_put(sink, column->elements.at, column->elements.n);
	}
}

static void put_length(uint8_t *to, size_t value)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

/* A frame of a block of n bytes. There is no copy of them: they are compressed where the columns have them. */
static int put_frame(ZSTD_CCtx *zstd, const struct native *native, size_t n, struct fleet_bytes *ret)
{
	size_t room = FRAME_CHECKSUM + FRAME_HEAD + ZSTD_compressBound(n);
	struct sink sink = { .zstd = zstd };
	ZSTD_inBuffer nothing = { 0 };
	uint8_t *at;
	int r = reserve(ret, room);

	if (r < 0)
		return r;
	at = ret->at + ret->n;
	sink.to = (ZSTD_outBuffer){ at + FRAME_CHECKSUM + FRAME_HEAD, room - FRAME_CHECKSUM - FRAME_HEAD, 0 };
	ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only); /* a frame may have failed before its end */
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setPledgedSrcSize(zstd, n);
	sink_block(&sink, native);
	if (sink.has_failed || ZSTD_compressStream2(zstd, &sink.to, &nothing, ZSTD_e_end) != 0 ||
	    sink.to.pos > UINT32_MAX - FRAME_HEAD || n > UINT32_MAX)
		return -ENOMEM;
	memset(at, 0, FRAME_CHECKSUM);
	at[FRAME_CHECKSUM] = FRAME_ZSTD;
	put_length(at + FRAME_CHECKSUM + 1, sink.to.pos + FRAME_HEAD);
	put_length(at + FRAME_CHECKSUM + 5, n);
	ret->n += FRAME_CHECKSUM + FRAME_HEAD + sink.to.pos;
	return 0;
}

int native_finish(const struct native *native, ZSTD_CCtx *zstd, struct fleet_bytes *ret)
{
	struct sink counter = { 0 };

	if (native->error < 0)
		return native->error;
	sink_block(&counter, native);
	return put_frame(zstd, native, counter.n_bytes, ret);
}

void native_done(struct native *native)
{
	for (size_t i = 0; i < NATIVE_MAX_COLUMNS; i++) {
		free(native->columns[i].values.at);
		free(native->columns[i].elements.at);
	}
	*native = (struct native){ 0 };
}
