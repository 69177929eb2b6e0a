/* SPDX-License-Identifier: MIT */
/* abbrevs.h - how large the abbreviations of a unit are, which libdw keeps one by one. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_ABBREVS_H
#define PROBING_SYMBOLIZE_ABBREVS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/cursor.h"

/* The section of one file; zeroed at first. */
struct abbrevs_section {
	Dwarf *dwarf; /* in which it was found */
	bool is_found;
	struct cursor bytes;
};

/*
 * abbrevs_take - account for the abbreviations of a unit, before libdw reads them.
 * @root:  the unit's first entry.
 * @whole: all of them, for callers that read the unit's other entries; else those up to the first entry's own.
 * Errors: -E2BIG more than any compiler generates, or than the module's limit; -ETIME. If the section is not available
 * as bytes, nothing is accounted for.
 */
int abbrevs_take(struct abbrevs_section *section, Dwarf_Die *root, bool whole);

#endif
