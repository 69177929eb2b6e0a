/* SPDX-License-Identifier: MIT */
/* unpack.h - compressed debug information, without the parts that names and lines do not use. Private to this folder.
 * */
#ifndef PROBING_SYMBOLIZE_UNPACK_H
#define PROBING_SYMBOLIZE_UNPACK_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

struct unpacked;

/*
 * unpacked_start - begin to uncompress the sections for names and lines of a file that has passed the limits.
 * @file:   borrowed until unpacked_finish() or unpacked_free().
 * @folder: for the result, in a file that has no name, so that its pages can be evicted; NULL: in memory. Also
 *          in memory if that folder is a memory file system, has little room, or does not support such files.
 *          Borrowed like the file.
 * @is_brief: it is freed soon: finding its unused parts does not pay, and a helper thread may work meanwhile.
 * @ret:    ended with unpacked_free(); only unpacked_finish() and unpacked_free() may follow.
 * Errors: -ENOTSUP use libdw: nothing is compressed, or the compression or links to other files are
 *         not supported here; -EBADMSG damaged; -E2BIG its sections, which may share bytes, exceed the size
 *         that the file may have; -ENOMEM; those of effort.h.
 */
int unpacked_start(struct elf_file *file, const char *folder, bool is_brief, struct unpacked **ret);

/*
 * unpacked_finish - uncompress the rest, once, in the thread and under the limits of unpacked_start().
 * Errors: -EBADMSG; those of effort.h. Only unpacked_free() may follow an error.
 */
int unpacked_finish(struct unpacked *unpacked);

/* unpacked_new - both at once; the file is borrowed during the call only. */
int unpacked_new(struct elf_file *file, const char *folder, bool is_brief, struct unpacked **ret);

/*
 * unpacked_restore - the image of unpacked_image(), from a cache: it may contain anything.
 * @image: borrowed, as long as the result; a mapping of a file, page-aligned.
 * Errors: -EBADMSG no ELF file, or one with compressed sections or links to other files; -ENOMEM.
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

/* Free the memory of the file; later reads load it again. */
void unpacked_trim(struct unpacked *unpacked);

#endif
