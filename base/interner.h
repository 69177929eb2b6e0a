/* SPDX-License-Identifier: MIT */
/* interner.h - a set of byte strings, numbered from 0 in the order of insertion.
 *
 * A 64-bit hash finds a string, and its bytes decide: two different strings never share a number.
 */
#ifndef PROBING_BASE_INTERNER_H
#define PROBING_BASE_INTERNER_H

#include <stdbool.h>

#include "base/id_map.h"

/* Zeroed: empty. */
struct interner {
	uint8_t *bytes; /* of all strings, a NUL behind each */
	size_t n_bytes, bytes_allocated;
	struct interned {
		size_t offset; /* into bytes */
		uint32_t n_bytes;
	} * items;
	size_t n, allocated;
	struct id_map by_hash; /* -> index into items */
};

/*
 * interner_add - the number of a string; copies a new one.
 * @bytes: NULL if n_bytes is 0.
 * @ret:   its number.
 * Returns 1 if it is new, 0 if it is known; -ENOMEM, -EOVERFLOW more than 4 GiB in one or 2^32 strings: nothing has
 * changed.
 */
int interner_add(struct interner *interner, const void *bytes, size_t n_bytes, uint32_t *ret);

/* interner_find - the number of a string, if it is known. */
bool interner_find(const struct interner *interner, const void *bytes, size_t n_bytes, uint32_t *ret);

/* A string by its number, with a NUL behind it; borrowed until one is added. */
static inline const void *interner_get(const struct interner *interner, uint32_t id, uint32_t *ret_bytes)
{
	*ret_bytes = interner->items[id].n_bytes;
	return interner->bytes + interner->items[id].offset;
}

void interner_done(struct interner *interner);

#endif
