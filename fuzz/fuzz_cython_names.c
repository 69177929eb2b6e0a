/* SPDX-License-Identifier: MIT */
/* fuzz_cython_names.c - names out of the code of a module that somebody else wrote, which may be one of Cython's.
 *
 * Corpus: made by make_cython_names_corpus.py.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/cython_names.h"
#include "symbolize/effort.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct cython_names *names)
{
	for (size_t i = 0; i < names->n_functions; i++) {
		const struct cython_function *function = &names->functions[i];

		if (cython_names_find(names, function->start) != function || !strchr(function->name, '.') ||
		    (function->file && function->file[0] == '\0'))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(cython_names_freep) struct cython_names *names = NULL;
	CLEANUP(freep) uint8_t *copy = malloc(MAX(n_bytes, (size_t)1));
	struct effort effort = { 0 };
	struct image image;

	if (!copy)
		return 0;
	memcpy(copy, data, n_bytes);
	if (elf_file_open_memory(copy, n_bytes, &elf) < 0)
		return 0;
	effort_begin(&effort);
	(void)cython_is_maker(elf);
	if (image_init(&image, elf) >= 0 && cython_names_new(&image, &names) >= 0)
		check(names);
	image_done(&image);
	effort_end(&effort);
	return 0;
}
