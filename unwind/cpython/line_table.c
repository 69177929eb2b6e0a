/* SPDX-License-Identifier: MIT */
/* line_table.c - from an instruction to its line.
 *
 * up to 3.9  pairs of bytes: increments of the bytecode and of the line; both unsigned up
 *            to 3.5, the line signed from 3.6. Source: Objects/lnotab_notes.txt.
 * 3.10       pairs again, but each covers the bytecode of its increment; a line delta
 *            of -128 means no line. Source: Objects/lnotab_notes.txt, 3.10.
 * 3.11 on    the location table, a sequence of entries, each covering some code units.
 *            An entry's first byte has bit 7 set, its code in bits 3-6 and its length
 *            minus one in bits 0-2. Lines are deltas from the first line.
 *              0-9   short form, one more byte, same line
 *              10-12 one-line form, two more bytes, line + 0, 1, 2
 *              13    no columns: svarint line delta
 *              14    long form: svarint line delta, varint end line, varint columns
 *              15    no location
 *            Varints have six bits a byte, bit 6 means that more follow.
 *            Source: Objects/locations.md and codeobject.c, 3.11.
 */
#include "unwind/cpython/reader.h"

enum { SHORT_LAST = 9, ONE_LINE_FIRST = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
enum { NO_LINE = -128, UNIT_BYTES = 2 };

struct table {
	const uint8_t *at, *end;
	bool damaged;
};

static uint32_t next_byte(struct table *table)
{
	if (table->at == table->end) {
		table->damaged = true;
		return 0;
	}
	return *table->at++;
}

static uint32_t next_varint(struct table *table)
{
	uint32_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = next_byte(table);
		if (shift < 32)
			value |= (byte & 63) << shift;
		shift += 6;
	} while ((byte & 64) && !table->damaged);
	return value;
}

static int32_t next_signed(struct table *table)
{
	uint32_t value = next_varint(table);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static int checked(int64_t line)
{
	return line < 0 || line > INT32_MAX ? 0 : (int)line;
}

/* Read an entry after its first byte. Returns the line delta; the lines of *ret are relative to it. */
static int32_t read_entry(struct table *table, unsigned code, struct py_position *ret)
{
	int32_t delta = 0;
	uint32_t byte;

	*ret = (struct py_position){ .column = -1, .end_column = -1 };
	if (code <= SHORT_LAST) {
		byte = next_byte(table);
		ret->column = (int)(code << 3 | byte >> 4);
		ret->end_column = ret->column + (int)(byte & 15);
	} else if (code <= ONE_LINE_LAST) {
		ret->column = (int)next_byte(table);
		ret->end_column = (int)next_byte(table);
		delta = (int32_t)code - ONE_LINE_FIRST;
	} else if (code == NO_COLUMNS) {
		delta = next_signed(table);
	} else if (code == LONG) {
		delta = next_signed(table);
		ret->end_line = (int)(next_varint(table) & INT32_MAX);
		ret->column = (int)(next_varint(table) & INT32_MAX) - 1;
		ret->end_column = (int)(next_varint(table) & INT32_MAX) - 1;
	}
	return delta;
}

static void position_of_locations(struct table table, int first_line, uint32_t offset, struct py_position *ret)
{
	uint32_t unit = offset / UNIT_BYTES;
	int64_t line = first_line;
	uint64_t covered = 0;

	while (table.at < table.end) {
		uint32_t head = next_byte(&table);
		unsigned code = (head >> 3) & 15;
		struct py_position position;

		if (!(head & 128))
			return;
		line += read_entry(&table, code, &position);
		covered += (head & 7) + 1;
		if (table.damaged)
			return;
		if (unit >= covered)
			continue;
		if (code == NONE)
			return;
		position.end_line = checked(line + position.end_line);
		position.line = checked(line);
		*ret = position;
		return;
	}
}

static int line_of_ranges(struct table table, int first_line, uint32_t offset)
{
	int64_t line = first_line;
	uint64_t covered = 0;

	while (table.at < table.end) {
		uint32_t delta = next_byte(&table);
		int32_t line_delta = (int8_t)next_byte(&table);

		if (table.damaged)
			return 0;
		if (line_delta != NO_LINE)
			line += line_delta;
		covered += delta;
		if (offset < covered)
			return line_delta == NO_LINE ? 0 : checked(line);
	}
	return 0;
}

static int line_of_deltas(struct table table, int first_line, uint32_t offset, bool is_signed)
{
	int64_t line = first_line;
	uint64_t at = 0;

	while (table.at < table.end) {
		uint32_t delta = next_byte(&table), line_delta = next_byte(&table);

		if (table.damaged)
			return 0;
		at += delta;
		if (at > offset)
			break;
		line += is_signed ? (int8_t)line_delta : (int32_t)line_delta;
	}
	return checked(line);
}

void position_at(unsigned kind, const uint8_t *bytes, size_t n_bytes, int first_line, uint32_t offset,
		 struct py_position *ret)
{
	struct table table = { .at = bytes, .end = bytes + n_bytes };

	*ret = (struct py_position){ .column = -1, .end_column = -1 };
	switch (kind) {
	case LINES_UNSIGNED_DELTAS:
		ret->line = line_of_deltas(table, first_line, offset, false);
		break;
	case LINES_SIGNED_DELTAS:
		ret->line = line_of_deltas(table, first_line, offset, true);
		break;
	case LINES_RANGES:
		ret->line = line_of_ranges(table, first_line, offset);
		break;
	default:
		position_of_locations(table, first_line, offset, ret);
		return;
	}
	ret->end_line = ret->line;
}

int line_at(unsigned kind, const uint8_t *bytes, size_t n_bytes, int first_line, uint32_t offset)
{
	struct py_position position;

	position_at(kind, bytes, n_bytes, first_line, offset, &position);
	return position.line;
}

void py_code_position(const struct py_code *code, int32_t instruction, struct py_position *ret)
{
	if (instruction >= 0)
		position_at(code->line_kind, code->line_table, code->line_table_bytes, code->first_line,
			    (uint32_t)instruction, ret);
	else
		*ret = (struct py_position){
			.line = instruction == PY_INSTRUCTION_UNKNOWN ? 0 : code->first_line,
			.end_line = instruction == PY_INSTRUCTION_UNKNOWN ? 0 : code->first_line,
			.column = -1,
			.end_column = -1,
		};
}

int py_code_line(const struct py_code *code, int32_t instruction)
{
	struct py_position position;

	py_code_position(code, instruction, &position);
	return position.line;
}

int32_t py_instruction_bytes(const struct py_runtime *runtime)
{
	return runtime->layout.field[INSTRUCTION_BYTES];
}

int32_t py_instruction_before(const struct py_runtime *runtime, int32_t next_instruction)
{
	int32_t bytes = py_instruction_bytes(runtime);

	return next_instruction >= bytes ? next_instruction - bytes : 0;
}
