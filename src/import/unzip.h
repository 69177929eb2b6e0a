/* unzip.h - what gzip packed. */
#ifndef PROBING_IMPORT_UNZIP_H
#define PROBING_IMPORT_UNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool is_gzip(const uint8_t *bytes, size_t n_bytes)
{
	return n_bytes > 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/*
 * unzip - all that was packed. @most: more is -E2BIG. @ret: the caller's.
 * Errors: -EBADMSG; -E2BIG; -ENOMEM.
 */
int unzip(const uint8_t *bytes, size_t n_bytes, size_t most, uint8_t **ret, size_t *ret_bytes);

#endif
