/* SPDX-License-Identifier: MIT */
/* flat.c - see flat.h. */
#include "src/sql/flat.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { OFFSET_BYTES = 4, VTABLE_HEAD = 2 * sizeof(uint16_t) };

void flat_done(struct flat *flat)
{
	free(flat->bytes);
	*flat = (struct flat){ 0 };
}

/* Zeros, so that the byte at @n + @ahead lies at a multiple of @align. Returns the position of the first byte behind the padding. */
static size_t append(struct flat *flat, size_t ahead, size_t align, size_t n)
{
	size_t at = (flat->n + ahead + align - 1) / align * align - ahead, end = at + n;

	if (flat->is_short || grow(&flat->bytes, end, &flat->allocated, 1) < 0) {
		flat->is_short = true;
		return 0;
	}
	memset(flat->bytes + flat->n, 0, end - flat->n);
	flat->n = end;
	return at;
}

size_t flat_begin(struct flat *flat)
{
	flat->n = 0;
	return append(flat, 0, OFFSET_BYTES, OFFSET_BYTES);
}

void flat_put(struct flat *flat, size_t at, uint64_t value, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes && !flat->is_short; i++)
		flat->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

void flat_refer(struct flat *flat, size_t at, size_t to)
{
	flat_put(flat, at, to - at, OFFSET_BYTES);
}

size_t flat_table(struct flat *flat, const uint8_t *sizes, size_t n, size_t *ret_at)
{
	size_t vtable_bytes = VTABLE_HEAD + n * sizeof(uint16_t), vtable = append(flat, 0, 2, vtable_bytes);
	size_t table = append(flat, 0, OFFSET_BYTES, OFFSET_BYTES);

	flat_put(flat, table, table - vtable, OFFSET_BYTES);
	for (size_t i = 0; i < n; i++) {
		ret_at[i] = sizes[i] ? append(flat, 0, sizes[i], sizes[i]) : 0;
		flat_put(flat, vtable + VTABLE_HEAD + i * sizeof(uint16_t), sizes[i] ? ret_at[i] - table : 0,
			 sizeof(uint16_t));
	}
	flat_put(flat, vtable, vtable_bytes, sizeof(uint16_t));
	flat_put(flat, vtable + sizeof(uint16_t), flat->n - table, sizeof(uint16_t));
	return table;
}

size_t flat_vector(struct flat *flat, size_t n, size_t size, size_t align)
{
	size_t at = append(flat, OFFSET_BYTES, MAX(align, (size_t)OFFSET_BYTES), OFFSET_BYTES + n * size);

	flat_put(flat, at, n, OFFSET_BYTES);
	return at;
}

/* With a NUL behind it, which does not count. */
size_t flat_string(struct flat *flat, const char *bytes, size_t n)
{
	size_t at = flat_vector(flat, n + 1, 1, 1);

	flat_put(flat, at, n, OFFSET_BYTES);
	if (!flat->is_short && n > 0)
		memcpy(flat->bytes + at + OFFSET_BYTES, bytes, n);
	return at;
}
