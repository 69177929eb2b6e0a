/* SPDX-License-Identifier: MIT */
/* bytes.h - bytes that are written one after the other. Private. */
#ifndef PROBING_STORE_BYTES_H
#define PROBING_STORE_BYTES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed it is empty; `at` is freed by its owner. */
struct bytes {
	uint8_t *at;
	size_t n, room;
};

/* All: 0 or -ENOMEM. */
static inline int put_bytes(struct bytes *to, const void *bytes, size_t n)
{
	if (to->room - to->n < n) {
		size_t room = 2 * (to->n + n);
		uint8_t *moved = realloc(to->at, room);

		if (!moved)
			return -ENOMEM;
		to->at = moved;
		to->room = room;
	}
	if (n > 0)
		memcpy(to->at + to->n, bytes, n);
	to->n += n;
	return 0;
}

static inline int put_byte(struct bytes *to, uint8_t byte)
{
	return put_bytes(to, &byte, 1);
}

/* As unsigned LEB128. */
static inline int put_number(struct bytes *to, uint64_t number)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (uint8_t)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
		number >>= 7;
	} while (number != 0);
	return put_bytes(to, bytes, n);
}

#endif
