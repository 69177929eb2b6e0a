/* plumbing.h - which nameless functions of a stripped interpreter are its plumbing. */
#ifndef PROBING_SYMBOLIZE_PLUMBING_H
#define PROBING_SYMBOLIZE_PLUMBING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image.h"
#include "symbolize/method_tables.h"
#include "symbolize/symtab.h"

struct plumbing;

/*
 * plumbing_new - read all code of an interpreter for who refers to whom.
 * @image: only used during the call. Takes some 30 ms on an interpreter.
 * Errors: -ENOMEM.
 */
int plumbing_new(const struct image *image, const struct symtab *symtab,
		 const struct method_tables *methods, struct plumbing **ret);

/* plumbing_restore - the same out of a cache: @starts need not be sound. Errors: -EBADMSG out of order; -ENOMEM; those of effort.h. */
int plumbing_restore(const uint64_t *starts, size_t n, struct plumbing **ret);

/* plumbing_starts - the functions that are plumbing, in order. @ret: the caller's. -ENOMEM. */
int plumbing_starts(const struct plumbing *plumbing, uint64_t **ret, size_t *ret_n);
void plumbing_free(struct plumbing *plumbing);
void plumbing_freep(struct plumbing **plumbing);

/* Whether the nameless function that starts at an address is plumbing. */
bool plumbing_holds(const struct plumbing *plumbing, uint64_t start);

#endif
