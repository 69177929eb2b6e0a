/* SPDX-License-Identifier: MIT */
/* row_cursor.c - see row_cursor.h. */
#include "src/fleet/row_cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARINT_BITS = 63, MAX_NUMBER_BYTES = 8 };

struct row_cursor row_cursor_of(const void *bytes, size_t n)
{
	return (struct row_cursor){ .at = bytes, .end = (const uint8_t *)bytes + n };
}

bool row_cursor_more(const struct row_cursor *cursor)
{
	return !cursor->is_damaged && cursor->at < cursor->end;
}

/* NULL: fewer bytes are left. */
static const uint8_t *take(struct row_cursor *cursor, size_t n)
{
	const uint8_t *at = cursor->at;

	if (cursor->is_damaged || (size_t)(cursor->end - at) < n) {
		cursor->is_damaged = true;
		return NULL;
	}
	cursor->at += n;
	return at;
}

uint64_t row_cursor_number(struct row_cursor *cursor, unsigned n_bytes)
{
	const uint8_t *at = n_bytes <= MAX_NUMBER_BYTES ? take(cursor, n_bytes) : NULL;
	uint64_t value = 0;

	for (unsigned i = 0; at && i < n_bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

int32_t row_cursor_int32(struct row_cursor *cursor)
{
	return (int32_t)(uint32_t)row_cursor_number(cursor, sizeof(int32_t));
}

double row_cursor_real(struct row_cursor *cursor)
{
	uint64_t bits = row_cursor_number(cursor, sizeof bits);
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* LEB128. */
static uint64_t take_varint(struct row_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < MAX_VARINT_BITS; shift += 7) {
		const uint8_t *at = take(cursor, 1);

		if (!at)
			return 0;
		value |= (uint64_t)(*at & 0x7f) << shift;
		if (!(*at & 0x80))
			return value;
	}
	cursor->is_damaged = true;
	return 0;
}

size_t row_cursor_count(struct row_cursor *cursor)
{
	uint64_t n = take_varint(cursor);

	if (n > (uint64_t)(cursor->end - cursor->at))
		cursor->is_damaged = true;
	return cursor->is_damaged ? 0 : (size_t)n;
}

int row_cursor_text(struct row_cursor *cursor, char **ret)
{
	size_t n = row_cursor_count(cursor);
	const uint8_t *at = take(cursor, n);
	char *text = malloc(n + 1);

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		text[i] = at && at[i] ? (char)at[i] : '?';
	text[at ? n : 0] = '\0';
	*ret = text;
	return 0;
}
