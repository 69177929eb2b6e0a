/* SPDX-License-Identifier: MIT */
/* elf_address.h - the address at which a byte of an ELF file is loaded, by its segments. For tests. */
#ifndef PROBING_TESTS_ELF_ADDRESS_H
#define PROBING_TESTS_ELF_ADDRESS_H

#include <errno.h>
#include <stdint.h>

#include "base/elf_file.h"

/* -ENOENT: no loadable segment contains that file offset. */
static inline int elf_address(const struct elf_file *file, uint64_t file_offset, uint64_t *ret)
{
	struct elf_segment segment;

	for (size_t i = 0; elf_file_segment(file, i, &segment); i++) {
		uint64_t into = file_offset - segment.file_offset;

		if (file_offset >= segment.file_offset && into < segment.n_file_bytes) {
			*ret = segment.address + into;
			return 0;
		}
	}
	return -ENOENT;
}

#endif
