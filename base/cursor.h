/* SPDX-License-Identifier: MIT */
/* cursor.h - reading foreign bytes from front to back.
 *
 * A cursor never moves past its end: a read beyond it fails the cursor, which then
 * yields zeros and does not move. Check failed before you use a value.
 */
#ifndef PROBING_BASE_CURSOR_H
#define PROBING_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *at, *end; /* borrowed */
	bool failed;
};

static inline size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* A little-endian number of at most 8 bytes. */
static inline uint64_t cursor_fixed(struct cursor *cursor, size_t n_bytes)
{
	uint64_t value = 0;

	if (cursor->failed || cursor_left(cursor) < n_bytes) {
		cursor->failed = true;
		return 0;
	}
	memcpy(&value, cursor->at, n_bytes);
	cursor->at += n_bytes;
	return value;
}

/* The same, its sign extended. */
static inline int64_t cursor_signed(struct cursor *cursor, size_t n_bytes)
{
	unsigned unused_bits = 64 - 8 * (unsigned)n_bytes;

	return (int64_t)(cursor_fixed(cursor, n_bytes) << unused_bits) >> unused_bits;
}

/* Bits beyond the 64th are dropped. Source: DWARF 5, 7.6 "Variable Length Data". */
static inline uint64_t cursor_leb128_bits(struct cursor *cursor, unsigned *ret_n_bits, uint8_t *ret_last)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cursor_fixed(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*ret_n_bits = shift;
	*ret_last = byte;
	return value;
}

static inline uint64_t cursor_leb128(struct cursor *cursor)
{
	unsigned n_bits;
	uint8_t last;

	return cursor_leb128_bits(cursor, &n_bits, &last);
}

static inline int64_t cursor_signed_leb128(struct cursor *cursor)
{
	unsigned n_bits;
	uint8_t last;
	uint64_t value = cursor_leb128_bits(cursor, &n_bits, &last);

	if (n_bits < 64 && (last & 0x40))
		value |= UINT64_MAX << n_bits;
	return (int64_t)value;
}

#endif
