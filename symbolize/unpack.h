/* SPDX-License-Identifier: MIT */
/* unpack.h - debug information that is packed, without the parts that nobody asks for. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_UNPACK_H
#define PROBING_SYMBOLIZE_UNPACK_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

struct unpacked;

/*
 * unpacked_new - unpack what names and lines take out of a file that has passed the fence.
 * @file:   borrowed, needed no more afterwards.
 * @folder: where it may lie, in a file that has no name, so that its pages can be given back; NULL: in memory. In
 *          memory, too, where that folder is in memory itself, has little room, or has no such files.
 * @is_brief: it goes soon: that a part of it is never asked for is not worth the time to find that part.
 * @ret:    ended with unpacked_free().
 * Errors: -ENOTSUP it is libdw's: nothing is packed, or in a way, or with links to other files, that is
 *         not known here; -EBADMSG damaged; -E2BIG its sections, which may be the same bytes, come to more than
 *         the file may become; -ENOMEM; those of effort.h.
 */
int unpacked_new(struct elf_file *file, const char *folder, bool is_brief, struct unpacked **ret);

/*
 * unpacked_restore - what unpacked_image() gave, out of a cache: it may have become anything.
 * @image: borrowed, as long as the result; a mapping of a file, page-aligned.
 * Errors: -EBADMSG no ELF file, or one with what is packed or leads elsewhere; -ENOMEM.
 */
int unpacked_restore(const void *image, size_t n, struct unpacked **ret);

/* The ELF file that was made; borrowed. */
const void *unpacked_image(const struct unpacked *unpacked, size_t *ret_n);
void unpacked_free(struct unpacked *unpacked);
void unpacked_freep(struct unpacked **unpacked);

/* Borrowed; addresses are the file's own. */
Dwarf *unpacked_dwarf(struct unpacked *unpacked);

/* Bytes of memory, and of disk, that it takes. */
void unpacked_bytes(const struct unpacked *unpacked, uint64_t *ret_memory, uint64_t *ret_disk);

/* Give back the memory that is the file's; later looks fetch it again. */
void unpacked_trim(struct unpacked *unpacked);

#endif
