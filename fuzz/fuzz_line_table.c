/* SPDX-License-Identifier: MIT */
/* fuzz_line_table.c - line tables of all kinds, against a second reading of the formats.
 *
 * Input: u32 first line, then the table, which is taken for each kind in turn. The
 * reader answers for one instruction at a time; here the whole table is read once,
 * into a position for every unit: a byte of bytecode up to 3.10, two from 3.11.
 *
 * The corpus are co_linetable, or co_lnotab up to 3.9, of functions in the library.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { MAX_UNITS = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct decoder {
	const uint8_t *at, *end;
	int64_t line;
};

static bool skip_bytes(struct decoder *decoder, size_t n)
{
	if ((size_t)(decoder->end - decoder->at) < n)
		return false;
	decoder->at += n;
	return true;
}

/* Six bits per byte, lowest first, in 32-bit arithmetic. */
static bool take_varint(struct decoder *decoder, uint32_t *ret)
{
	const uint8_t *from = decoder->at;
	uint32_t value = 0;

	do {
		if (!skip_bytes(decoder, 1))
			return false;
	} while (decoder->at[-1] & 0x40);
	for (size_t i = 0; from + i < decoder->at && i < 6; i++)
		value |= (uint32_t)((uint64_t)(from[i] & 0x3f) << (6 * i));
	*ret = value;
	return true;
}

static bool take_line_delta(struct decoder *decoder)
{
	uint32_t value;

	if (!take_varint(decoder, &value))
		return false;
	decoder->line += value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
	return true;
}

static int valid_line(int64_t line)
{
	return line >= 0 && line <= INT32_MAX ? (int)line : 0;
}

static struct py_position line_alone(int64_t line)
{
	return (struct py_position){ valid_line(line), valid_line(line), -1, -1 };
}

/* A long entry in 31-bit numbers; columns are stored plus one, so that 0 means none. */
static bool take_long(struct decoder *decoder, struct py_position *ret)
{
	uint32_t n_lines, column, end_column;

	if (!take_line_delta(decoder) || !take_varint(decoder, &n_lines) || !take_varint(decoder, &column) ||
	    !take_varint(decoder, &end_column))
		return false;
	ret->line = valid_line(decoder->line);
	ret->end_line = valid_line(decoder->line + (n_lines & 0x7fffffff));
	ret->column = (int)((int64_t)(column & 0x7fffffff) - 1);
	ret->end_column = (int)((int64_t)(end_column & 0x7fffffff) - 1);
	return true;
}

/* Decode an entry. False: the table ends inside it. */
static bool take_entry(struct decoder *decoder, unsigned kind, struct py_position *ret)
{
	const uint8_t *bytes = decoder->at;

	if (kind == 14)
		return take_long(decoder, ret);
	if (kind == 13) {
		if (!take_line_delta(decoder))
			return false;
		*ret = line_alone(decoder->line);
		return true;
	}
	*ret = line_alone(0);
	if (kind == 15)
		return true;
	if (!skip_bytes(decoder, kind < 10 ? 1 : 2))
		return false;
	decoder->line += kind < 10 ? 0 : kind - 10;
	*ret = line_alone(decoder->line);
	/* In a damaged table the high bit may be set; combine with OR like the interpreter. */
	ret->column = kind < 10 ? (int)(8 * kind) | bytes[0] / 16 : bytes[0];
	ret->end_column = kind < 10 ? ret->column + bytes[0] % 16 : bytes[1];
	return true;
}

struct lines {
	struct py_position of_unit[MAX_UNITS];
	size_t n;
	struct py_position after; /* position of all units after these */
};

static void put_units(struct lines *lines, size_t n_units, struct py_position position)
{
	for (size_t i = 0; i < n_units && lines->n < MAX_UNITS; i++)
		lines->of_unit[lines->n++] = position;
}

static void decode_locations(const uint8_t *table, size_t n_bytes, int first_line, struct lines *lines)
{
	struct decoder decoder = { table, table + n_bytes, first_line };

	lines->after = line_alone(0);
	while (decoder.at < decoder.end) {
		uint8_t head = *decoder.at++;
		struct py_position position;

		if (head < 0x80 || !take_entry(&decoder, head >> 3 & 15, &position))
			break;
		put_units(lines, (head & 7u) + 1, position);
	}
}

/* A pair gives the bytecode size of the line before it; the last line has no end. */
static void decode_deltas(const uint8_t *table, size_t n_bytes, int first_line, bool is_signed, struct lines *lines)
{
	int64_t line = first_line;

	for (size_t i = 0; i + 1 < n_bytes; i += 2) {
		put_units(lines, table[i], line_alone(line));
		line += table[i + 1];
		if (is_signed && table[i + 1] > 127)
			line -= 256;
	}
	lines->after = line_alone(n_bytes % 2 ? 0 : line);
}

static void decode_unsigned_deltas(const uint8_t *table, size_t n_bytes, int first_line, struct lines *lines)
{
	decode_deltas(table, n_bytes, first_line, false, lines);
}

static void decode_signed_deltas(const uint8_t *table, size_t n_bytes, int first_line, struct lines *lines)
{
	decode_deltas(table, n_bytes, first_line, true, lines);
}

/* A pair gives the bytecode size of the line to which it leads. */
static void decode_ranges(const uint8_t *table, size_t n_bytes, int first_line, struct lines *lines)
{
	int64_t line = first_line;

	lines->after = line_alone(0);
	for (size_t i = 0; i + 1 < n_bytes; i += 2) {
		bool has_line = table[i + 1] != 0x80;

		if (has_line)
			line += table[i + 1] > 127 ? table[i + 1] - 256 : table[i + 1];
		put_units(lines, table[i], line_alone(has_line ? line : 0));
	}
}

static const struct kind {
	unsigned kind, unit_bytes;
	void (*decode)(const uint8_t *table, size_t n_bytes, int first_line, struct lines *lines);
} kinds[] = {
	{ LINES_UNSIGNED_DELTAS, 1, decode_unsigned_deltas },
	{ LINES_SIGNED_DELTAS, 1, decode_signed_deltas },
	{ LINES_RANGES, 1, decode_ranges },
	{ LINES_LOCATIONS, 2, decode_locations },
};

static bool is_same(const struct py_position *a, const struct py_position *b)
{
	return a->line == b->line && a->end_line == b->end_line && a->column == b->column &&
	       a->end_column == b->end_column;
}

/* Query the ends of each position and some units between: the reader starts from the front each time. */
static bool is_asked(const struct lines *lines, size_t unit)
{
	enum { STEP = 61 };
	const struct py_position *position = &lines->of_unit[unit];

	return unit % STEP == 0 || !is_same(position, position - 1) ||
	       (unit + 1 < lines->n && !is_same(position, position + 1));
}

static void expect(const struct kind *kind, const uint8_t *table, size_t n_bytes, int first_line, uint32_t offset,
		   const struct py_position *expected)
{
	struct py_position seen;

	position_at(kind->kind, table, n_bytes, first_line, offset, &seen);
	if (!is_same(&seen, expected) || line_at(kind->kind, table, n_bytes, first_line, offset) != expected->line)
		abort();
}

static void check(const struct kind *kind, const uint8_t *table, size_t n_bytes, int first_line)
{
	static struct lines lines;

	lines.n = 0;
	kind->decode(table, n_bytes, first_line, &lines);
	for (size_t unit = 0; unit < lines.n; unit++)
		if (is_asked(&lines, unit))
			expect(kind, table, n_bytes, first_line, kind->unit_bytes * (uint32_t)unit,
			       &lines.of_unit[unit]);
	if (lines.n == MAX_UNITS)
		return;
	expect(kind, table, n_bytes, first_line, kind->unit_bytes * (uint32_t)lines.n, &lines.after);
	expect(kind, table, n_bytes, first_line, UINT32_MAX, &lines.after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	int first_line;
	uint8_t *table;

	if (n_bytes < sizeof first_line)
		return 0;
	memcpy(&first_line, data, sizeof first_line);
	n_bytes -= sizeof first_line;
	table = malloc(n_bytes + 1); /* an exact copy, so that the sanitizer detects a read past its end */
	if (!table)
		return 0;
	memcpy(table, data + sizeof first_line, n_bytes);
	for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
		check(&kinds[i], table, n_bytes, first_line);
	free(table);
	return 0;
}
