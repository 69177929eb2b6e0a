/* SPDX-License-Identifier: MIT */
/* unzip.h - decompresses gzip. */
#ifndef PROBING_IMPORT_UNZIP_H
#define PROBING_IMPORT_UNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/import/sink.h"

static inline bool is_gzip(const uint8_t *bytes, size_t n_bytes)
{
	return n_bytes > 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/*
 * unzip_most - the accepted size of n_bytes, uncompressed: profiles compress 3 to 10 times, zeros a thousand times. Up
 * to 256 MiB any ratio is accepted, above that 32, up to 2 GiB.
 */
static inline size_t unzip_most(size_t n_bytes)
{
	const size_t small = (size_t)256 << 20, large = (size_t)2 << 30, ratio = 32;

	if (n_bytes > large / ratio)
		return large;
	return n_bytes * ratio > small ? n_bytes * ratio : small;
}

/*
 * unzip - all that was packed, never more than @most. @ret: the caller's.
 * Errors: -EBADMSG; -E2BIG it is more; -ENOMEM.
 */
int unzip(const uint8_t *bytes, size_t n_bytes, size_t most, uint8_t **ret, size_t *ret_bytes);

/* unzip_head - as unzip(), but of more than @most bytes the first ones; so it is where the file ends too early. */
int unzip_head(const uint8_t *bytes, size_t n_bytes, size_t most, uint8_t **ret, size_t *ret_bytes);

/*
 * unzip_input - the contents of a file that may be compressed.
 * @owned: the caller's to free; NULL where it was not compressed. @ret: borrows from @owned or @input.
 * Errors: -EBADMSG with the reason in the sink; -ENOMEM.
 */
int unzip_input(const struct import_input *input, struct sink *sink, uint8_t **owned, struct piece *ret);

#endif
