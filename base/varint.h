/* SPDX-License-Identifier: MIT */
/* varint.h - numbers in base 128, low digits first. Sources: Protocol Buffers, "Encoding"; ClickHouse, src/IO/VarInt.h. */
#ifndef PROBING_BASE_VARINT_H
#define PROBING_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

enum { VARINT_MAX_BYTES = 10 };

/* Returns how many bytes it takes. */
static inline size_t varint_encode(uint64_t value, uint8_t to[VARINT_MAX_BYTES])
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

#endif
