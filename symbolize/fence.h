/* fence.h - what must not be handed to libdw: files that would exhaust memory. */
#ifndef PROBING_SYMBOLIZE_FENCE_H
#define PROBING_SYMBOLIZE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

/*
 * fence_passes - whether a file unpacks to something of a sane size.
 * Looks at the compressed sections (SHF_COMPRESSED, .zdebug_*) and at
 * .gnu_debugdata; nothing is unpacked for it.
 */
bool fence_passes(struct elf_file *elf);

/*
 * fence_xz_bytes - what an .xz file unpacks to, from the headers of its chunks.
 * @ret: bytes; the decoder cannot put out more, since it follows the same headers.
 * Errors: -EBADMSG not an .xz file of LZMA2 blocks, or cut.
 */
int fence_xz_bytes(const uint8_t *bytes, size_t n_bytes, uint64_t *ret);

/* Whether code is in the file, as against a debug file, where only its place is described. */
bool fence_has_code(struct elf_file *elf);

#endif
