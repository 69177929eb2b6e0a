/* SPDX-License-Identifier: MIT */
/* unpack_limits.h - rejects files that would exhaust memory in libdw. */
#ifndef PROBING_SYMBOLIZE_UNPACK_LIMITS_H
#define PROBING_SYMBOLIZE_UNPACK_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

/* Limits of one file: its uncompressed size, and the size below which any ratio of compression is accepted. */
#define FENCE_MAX_BYTES (UINT64_C(2) << 30)
#define FENCE_SMALL_BYTES (UINT64_C(256) << 20)

/*
 * unpack_limits_passes - whether a file has an acceptable uncompressed size, each section and all of them together.
 * Reads the headers of compressed sections (SHF_COMPRESSED, .zdebug_*) and of
 * .gnu_debugdata; uncompresses nothing.
 */
bool unpack_limits_passes(struct elf_file *elf);

/*
 * unpack_limits_unpacked_bytes - the uncompressed size of a file in libdw.
 * @ret_all: all sections together. @ret_symbols: .gnu_debugdata alone. Errors: -E2BIG it does not pass.
 */
int unpack_limits_unpacked_bytes(struct elf_file *elf, uint64_t *ret_all, uint64_t *ret_symbols);

/* unpack_limits_is_sane - whether n_unpacked bytes, of all sections of a file together, are as much as n_packed may
 * become. */
bool unpack_limits_is_sane(uint64_t n_unpacked, uint64_t n_packed);

/*
 * unpack_limits_xz_bytes - the uncompressed size of an .xz file, from the headers of its chunks.
 * @ret: bytes; the decoder cannot produce more, since it follows the same headers.
 * Errors: -EBADMSG not an .xz file of LZMA2 blocks, or cut.
 */
int unpack_limits_xz_bytes(const uint8_t *bytes, size_t n_bytes, uint64_t *ret);

/* Whether code is in the file, as against a debug file, where only its place is described. */
bool unpack_limits_has_code(struct elf_file *elf);

#endif
