/* functions.h - the functions that debug information describes, by address. */
#ifndef PROBING_SYMBOLIZE_FUNCTIONS_H
#define PROBING_SYMBOLIZE_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

struct debug_functions;

/*
 * debug_functions_new - index the units of a file by address.
 * Reads one entry per unit; the functions of a unit are read when an address
 * in it is asked for.
 * @path: the file it is in, beside which the units of a split one may lie.
 * Errors: -ENOMEM; those of effort.h.
 */
int debug_functions_new(Dwarf *dwarf, const char *path, struct debug_functions **ret);
void debug_functions_free(struct debug_functions *functions);
void debug_functions_freep(struct debug_functions **functions);

/*
 * debug_functions_find - unit and function at an address, as DWARF counts it.
 * @ret_lines:    the unit's entry that owns the line table.
 * @ret_function: its DW_TAG_subprogram.
 * Returns 2 where both are known, 1 for the unit only, 0 for neither; -ENOMEM, those of effort.h.
 */
int debug_functions_find(struct debug_functions *functions, uint64_t address, Dwarf_Die *ret_lines,
			 Dwarf_Die *ret_function);

#endif
