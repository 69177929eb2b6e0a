/* line_table.c - from an instruction to its line, CPython 3.11 and later.
 *
 * The location table is a sequence of entries, each covering some code units.
 * An entry's first byte has bit 7 set, its code in bits 3-6 and its length
 * minus one in bits 0-2. Lines are deltas from the first line.
 *   0-9   short form, one more byte, same line
 *   10-12 one-line form, two more bytes, line + 0, 1, 2
 *   13    no columns: svarint line delta
 *   14    long form: svarint line delta, varint end line, varint columns
 *   15    no location
 * Varints have six bits a byte, bit 6 says that more follow.
 * Source: Objects/locations.md and codeobject.c, CPython 3.11.
 */
#include "unwind/cpython/reader.h"

enum { SHORT_LAST = 9, ONE_LINE_FIRST = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

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

/* Reads one entry after its first byte; returns the line delta. */
static int32_t read_entry(struct table *table, unsigned code)
{
	int32_t delta = 0;

	if (code <= SHORT_LAST) {
		next_byte(table);
	} else if (code <= ONE_LINE_LAST) {
		next_byte(table);
		next_byte(table);
		delta = (int32_t)code - ONE_LINE_FIRST;
	} else if (code == NO_COLUMNS) {
		delta = next_signed(table);
	} else if (code == LONG) {
		delta = next_signed(table);
		next_varint(table);
		next_varint(table);
		next_varint(table);
	}
	return delta;
}

int line_at(const uint8_t *bytes, size_t n_bytes, int first_line, uint32_t unit)
{
	struct table table = { .at = bytes, .end = bytes + n_bytes };
	int64_t line = first_line;
	uint64_t covered = 0;

	while (table.at < table.end) {
		uint32_t head = next_byte(&table);
		unsigned code = (head >> 3) & 15;

		if (!(head & 128))
			return 0;
		line += read_entry(&table, code);
		covered += (head & 7) + 1;
		if (table.damaged)
			return 0;
		if (unit < covered)
			return code == NONE || line < 0 || line > INT32_MAX ? 0 : (int)line;
	}
	return 0;
}

int py_code_line(const struct py_code *code, int32_t instruction)
{
	if (instruction == PY_INSTRUCTION_UNKNOWN)
		return 0;
	if (instruction < 0)
		return code->first_line;
	return line_at(code->line_table, code->line_table_bytes, code->first_line, (uint32_t)instruction / 2);
}

int32_t py_instruction_before(const struct py_runtime *runtime, int32_t next_instruction)
{
	(void)runtime;
	return next_instruction >= 2 ? next_instruction - 2 : 0;
}
