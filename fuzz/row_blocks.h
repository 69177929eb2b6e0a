/* SPDX-License-Identifier: MIT */
/* row_blocks.h - what the fuzzers of compressed blocks share: metrics and rows end in the same values. */
#ifndef PROBING_FUZZ_ROW_BLOCKS_H
#define PROBING_FUZZ_ROW_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "src/store/row_block.h"

enum { BLOCK_CRC_AT = 1, BLOCK_BODY_AT = 5, BLOCK_MAX_BYTES = 1 << 16 };

static inline void must(bool condition)
{
	if (!condition)
		abort();
}

static inline void must_be_same(const struct row_value *one, const struct row_value *other)
{
	must(one->kind == other->kind);
	if (one->kind == ROW_TEXT)
		must(one->n_text == other->n_text &&
		     (one->n_text == 0 || memcmp(one->text, other->text, one->n_text) == 0));
	else if (one->kind != ROW_NULL)
		must(one->integer == other->integer); /* of a real: its bits */
}

/* A copy with the right checksum, so that the reader goes on. The caller frees it. NULL: the input is too short, or too long. */
static inline uint8_t *block_with_checksum(const uint8_t *data, size_t n_bytes)
{
	uint8_t *bytes;
	uint32_t crc;

	if (n_bytes < BLOCK_BODY_AT || n_bytes > BLOCK_MAX_BYTES)
		return NULL;
	bytes = malloc(n_bytes);
	must(bytes != NULL);
	memcpy(bytes, data, n_bytes);
	crc = (uint32_t)crc32(0, bytes + BLOCK_BODY_AT, (uInt)(n_bytes - BLOCK_BODY_AT));
	memcpy(bytes + BLOCK_CRC_AT, &crc, sizeof crc);
	return bytes;
}

#endif
