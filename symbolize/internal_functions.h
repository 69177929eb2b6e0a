/* SPDX-License-Identifier: MIT */
/* internal_functions.h - which nameless functions of a stripped interpreter are internal. */
#ifndef PROBING_SYMBOLIZE_INTERNAL_FUNCTIONS_H
#define PROBING_SYMBOLIZE_INTERNAL_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image.h"
#include "symbolize/method_tables.h"
#include "symbolize/symtab.h"

struct internal_functions;

/*
 * internal_functions_new - find references between functions in all code of an interpreter.
 * @image: only used during the call. Takes some 30 ms for an interpreter.
 * Errors: -ENOMEM.
 */
int internal_functions_new(const struct image *image, const struct symtab *symtab, const struct method_tables *methods,
			   struct internal_functions **ret);

/*
 * internal_functions_restore - the same from a cache: @starts need not be valid.
 * Errors: -EBADMSG out of order; -ENOMEM; those of effort.h.
 */
int internal_functions_restore(const uint64_t *starts, size_t n, struct internal_functions **ret);

/* internal_functions_starts - the functions that are internal, in order. @ret: the caller's. -ENOMEM. */
int internal_functions_starts(const struct internal_functions *internal, uint64_t **ret, size_t *ret_n);
void internal_functions_free(struct internal_functions *internal);
void internal_functions_freep(struct internal_functions **internal);

/* Whether the nameless function that starts at an address is internal. */
bool internal_functions_holds(const struct internal_functions *internal, uint64_t start);

#endif
