/* SPDX-License-Identifier: MIT */
/* elf_eh_frame.h - private to elf_file.c and elf_eh_frame.c. */
#ifndef PROBING_BASE_ELF_EH_FRAME_H
#define PROBING_BASE_ELF_EH_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

/* All bytes of the file from where an address is loaded to the end of its segment. -ENOENT. */
int elf_file_tail(const struct elf_file *file, uint64_t address, const uint8_t **ret, size_t *ret_bytes);

/*
 * eh_frame_find - the FDE that covers @address.
 * @hdr, @n_hdr_bytes: where PT_GNU_EH_FRAME says that .eh_frame_hdr is loaded.
 * @ret: its programs point into the file.
 * Errors: -ENOENT no function is there; -ENODATA there is no table, or one in an encoding
 *         that linkers do not emit.
 * Source: Linux Standard Base Core 5.0, 10.6 "Exception Frames".
 */
int eh_frame_find(const struct elf_file *file, uint64_t hdr, uint64_t n_hdr_bytes, uint64_t address,
		  struct elf_cfi *ret);

#endif
