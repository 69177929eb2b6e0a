/* SPDX-License-Identifier: MIT */
/* lines.h - functions, files and lines of addresses, from debug information. */
#ifndef PROBING_SYMBOLIZE_LINES_H
#define PROBING_SYMBOLIZE_LINES_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/functions.h"

/* One function at an address; strings are borrowed until debug_lines_free(). */
struct debug_frame {
	const char *name;    /* DW_AT_name; NULL unknown */
	const char *linkage; /* DW_AT_linkage_name; NULL none */
	const char *file;    /* of the executing line; relative if its unit's folder is unknown; NULL unknown */
	int line;            /* 0 unknown */
	uint64_t start;      /* the function's entry; 0 for an inlined one */
};

struct debug_lines;

/*
 * debug_lines_new - prepare look-ups.
 * @dwarf: borrowed. @shift: its addresses minus the module's own.
 * @path:  the file that contains it; files it refers to may be in the same folder.
 * @known: the index of units by address, from a cache; NULL: none.
 * Errors: -ENOMEM; -EBADMSG the index is invalid; those of effort.h.
 */
int debug_lines_new(Dwarf *dwarf, uint64_t shift, const char *path, const struct debug_index *known,
		    struct debug_lines **ret);

/* The index of the units; see functions.h. */
int debug_lines_index(const struct debug_lines *lines, struct debug_index *ret);
void debug_lines_free(struct debug_lines *lines);
void debug_lines_freep(struct debug_lines **lines);

/*
 * debug_lines_find - the functions at an address (the module's own), innermost first.
 * @frames: room for max, at least 1; the last one filled is the function
 *          itself, the others were inlined. If only the line is known
 *          there is one frame without names.
 * Returns how many; 0 if nothing is known; -ENOMEM, those of effort.h.
 */
int debug_lines_find(struct debug_lines *lines, uint64_t address, struct debug_frame *frames, size_t max);

#endif
