/* SPDX-License-Identifier: MIT */
/* functions.h - the functions that debug information describes, by address. */
#ifndef PROBING_SYMBOLIZE_FUNCTIONS_H
#define PROBING_SYMBOLIZE_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/cache_entry.h"

struct debug_functions;

/* Which unit describes which addresses. */
struct debug_index {
	const uint64_t *units;
	const struct cache_range *ranges;
	size_t n_units, n_ranges;
};

/*
 * debug_functions_new - index the units of a file by address.
 * Reads one entry per unit; the functions of a unit are read on the first look-up
 * in it.
 * @path: the file that contains it; units of a split one may be in the same folder.
 * Errors: -ENOMEM; those of effort.h.
 */
int debug_functions_new(Dwarf *dwarf, const char *path, struct debug_functions **ret);

/*
 * debug_functions_restore - the same from a cache: reads a unit only on the first look-up in it.
 * @units: offsets of their first entries in .debug_info. Neither these nor ranges need be valid.
 * Errors: -EBADMSG; -ENOMEM; those of effort.h.
 */
int debug_functions_restore(Dwarf *dwarf, const struct debug_index *index, struct debug_functions **ret);

/*
 * debug_functions_index - the input for that. @ret: ended with debug_index_done().
 * Errors: -ENOTSUP some units are split into two files; -ENOMEM.
 */
int debug_functions_index(const struct debug_functions *functions, struct debug_index *ret);
void debug_index_done(struct debug_index *index);
void debug_functions_free(struct debug_functions *functions);
void debug_functions_freep(struct debug_functions **functions);

/*
 * debug_functions_find - unit and function at an address, as DWARF counts it.
 * @ret_lines:    the unit's entry that owns the line table.
 * @ret_function: its DW_TAG_subprogram.
 * Returns 2 if both are known, 1 for the unit only, 0 for neither; -ENOMEM, those of effort.h.
 */
int debug_functions_find(struct debug_functions *functions, uint64_t address, Dwarf_Die *ret_lines,
			 Dwarf_Die *ret_function);

#endif
