/* fuzz_line_table.c - location tables, against a second reading of the format.
 *
 * Input: u32 first line, then the table. The reader answers for one unit at a
 * time; here the whole table is read once, into a line for every unit.
 */
#include <stdlib.h>
#include <string.h>

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

/* Six bits a byte, lowest first; as 32-bit arithmetic has it. */
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

/* One entry; *ret_has_line: whether its units have any. False: the table ends within it. */
static bool take_entry(struct decoder *decoder, unsigned kind, bool *ret_has_line)
{
	uint32_t unused;

	*ret_has_line = kind != 15;
	switch (kind) {
	case 15:
		return true;
	case 14:
		return take_line_delta(decoder) && take_varint(decoder, &unused) &&
		       take_varint(decoder, &unused) && take_varint(decoder, &unused);
	case 13:
		return take_line_delta(decoder);
	case 12:
	case 11:
	case 10:
		decoder->line += kind - 10;
		return skip_bytes(decoder, 2);
	default:
		return skip_bytes(decoder, 1);
	}
}

/* How many units the sound part of the table has. */
static size_t decode(const uint8_t *table, size_t n_bytes, int first_line, int *lines)
{
	struct decoder decoder = { table, table + n_bytes, first_line };
	size_t n = 0;

	while (decoder.at < decoder.end) {
		uint8_t head = *decoder.at++;
		bool has_line;

		if (head < 0x80 || !take_entry(&decoder, head >> 3 & 15, &has_line))
			break;
		has_line &= decoder.line >= 0 && decoder.line <= INT32_MAX;
		for (unsigned i = 0; i <= (head & 7u) && n < MAX_UNITS; i++)
			lines[n++] = has_line ? (int)decoder.line : 0;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static int lines[MAX_UNITS];
	int first_line;
	uint8_t *table;
	size_t n;

	if (n_bytes < sizeof first_line)
		return 0;
	memcpy(&first_line, data, sizeof first_line);
	n_bytes -= sizeof first_line;
	table = malloc(n_bytes + 1); /* a copy of its own, so that a read past its end is noticed */
	if (!table)
		return 0;
	memcpy(table, data + sizeof first_line, n_bytes);
	n = decode(table, n_bytes, first_line, lines);
	for (size_t unit = 0; unit < n; unit++)
		if (line_at(LINES_LOCATIONS, table, n_bytes, first_line, 2 * (uint32_t)unit) != lines[unit])
			abort();
	if (n < MAX_UNITS && line_at(LINES_LOCATIONS, table, n_bytes, first_line, 2 * (uint32_t)n) != 0)
		abort();
	if (line_at(LINES_LOCATIONS, table, n_bytes, first_line, UINT32_MAX) != 0)
		abort();
	free(table);
	return 0;
}
