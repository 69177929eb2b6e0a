/* SPDX-License-Identifier: MIT */
/* fuzz_elf_file.c - an ELF image from anywhere, asked everything.
 *
 * Answers may be anything, but bytes that were said to be there are there,
 * and a function holds the address it was found by.
 *
 * The corpus is made of one file with two small functions and a variable:
 *   relocatable.o   gcc -O2 -c
 *   shared_page.so  gcc -fPIC -O2 -nostdlib -shared -s -Wl,-z,noseparate-code
 *   lld.so          clang -fPIC -O2 -nostdlib -shared -fuse-ld=lld -Wl,--build-id
 *   no_sections     shared_page.so, e_shoff, e_shnum and e_shstrndx being 0
 *   cut             the first half of shared_page.so
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"

enum { MAX_ADDRESSES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void touch(const uint8_t *bytes, size_t n_bytes)
{
	volatile uint8_t sum = 0;

	for (size_t i = 0; i < n_bytes; i++)
		sum = (uint8_t)(sum + bytes[i]);
}

static void ask_address(struct elf_file *file, uint64_t address)
{
	const void *bytes;
	uint64_t start, end;

	if (elf_file_function(file, address, &start, &end) == 0 && (address < start || address >= end))
		abort();
	for (size_t n = 1; elf_file_data(file, address, n, &bytes) == 0; n *= 2)
		touch(bytes, n);
}

static void ask_segments(struct elf_file *file)
{
	struct elf_segment segment;

	for (size_t i = 0; elf_file_segment(file, i, &segment); i++) {
		uint64_t step = segment.n_file_bytes / MAX_ADDRESSES + 1;

		for (uint64_t n = 0; n <= MAX_ADDRESSES; n++)
			ask_address(file, segment.address + n * step);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	CLEANUP(freep) uint8_t *image = malloc(MAX(n_bytes, (size_t)1));
	char text[2 * BUILD_ID_MAX + 1];
	uint64_t a, b;

	/* An exact copy, so that the sanitizer detects a read past its end. */
	if (!image)
		return 0;
	memcpy(image, data, n_bytes);
	if (elf_file_open_memory(image, n_bytes, &file) < 0)
		return 0;
	build_id_format(elf_file_build_id(file), text);
	ask_segments(file);
	elf_file_symbol(file, "__vdso_getcpu", &a, &b);
	elf_file_section(file, ".text", &a, &b);
	return 0;
}
