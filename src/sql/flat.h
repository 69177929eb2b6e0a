/* SPDX-License-Identifier: MIT */
/*
 * flat.h - a FlatBuffer, written from its front: what refers comes before what it refers to.
 *
 * Source: flatbuffers.dev/internals, "Encoding": offsets are relative and 32 bits wide; a table begins with the
 * distance back to its vtable; all numbers are little-endian and aligned to their size.
 */
#ifndef PROBING_SQL_FLAT_H
#define PROBING_SQL_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLAT_MAX_FIELDS = 8 };

/* All zeros is an empty one; positions are bytes from its start. After a failed allocation nothing is written any more. */
struct flat {
	uint8_t *bytes;
	size_t n, allocated;
	bool is_short; /* of memory */
};

void flat_done(struct flat *flat);

/* Room for the offset to the root table, with which a buffer begins. Returns its position. */
size_t flat_begin(struct flat *flat);

/*
 * flat_table - append a table with all its fields, which are 0 until flat_put() or flat_refer().
 * @sizes:   of the fields in bytes (1, 2, 4 or 8), by number; 0: absent. An offset takes 4.
 * @n:       at most FLAT_MAX_FIELDS.
 * @ret_at:  receives their positions, n of them.
 * Returns its position.
 */
size_t flat_table(struct flat *flat, const uint8_t *sizes, size_t n, size_t *ret_at);

/* Append a vector of n elements, which are 0. @size, @align: of an element, in bytes. Returns its position; elements follow 4 bytes later. */
size_t flat_vector(struct flat *flat, size_t n, size_t size, size_t align);
size_t flat_string(struct flat *flat, const char *bytes, size_t n);

/* A number of so many bytes. */
void flat_put(struct flat *flat, size_t at, uint64_t value, size_t n_bytes);
/* The offset at a position: to what was appended later. */
void flat_refer(struct flat *flat, size_t at, size_t to);

#endif
