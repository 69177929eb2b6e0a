/* SPDX-License-Identifier: MIT */
/* cython_names.h - functions of a Cython module, by the names that they have in tracebacks. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_CYTHON_NAMES_H
#define PROBING_SYMBOLIZE_CYTHON_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image.h"

struct cython_function {
	uint64_t start;
	const char *name; /* "pandas._libs.lib.infer_dtype"; borrowed from the file */
	const char *file; /* "pandas/_libs/lib.pyx"; NULL: unknown */
};

struct cython_names {
	struct cython_function *functions; /* sorted by start */
	size_t n_functions, allocated;
};

/* cython_is_maker - whether Cython has made a module. Reads its constants once. */
bool cython_is_maker(struct elf_file *elf);

/*
 * cython_names_new - search a module's code for calls that add a line to a traceback. x86-64 only.
 * @image: needed during the call only. Strings in the result live as long as its file.
 * @ret: ended with cython_names_free(); without functions if there are no such calls.
 * Errors: -ENOMEM; those of effort.h.
 */
int cython_names_new(const struct image *image, struct cython_names **ret);
void cython_names_free(struct cython_names *names);
void cython_names_freep(struct cython_names **names);

/* cython_names_find - by the function's start; NULL: unknown. Borrowed. */
const struct cython_function *cython_names_find(const struct cython_names *names, uint64_t start);

#endif
