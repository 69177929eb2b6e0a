/* SPDX-License-Identifier: MIT */
/* abbrevs.h - how large the abbreviations of a unit are, which libdw keeps one by one. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_ABBREVS_H
#define PROBING_SYMBOLIZE_ABBREVS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/cursor.h"

/* Where those of a file are; zeroed at first. */
struct abbrevs_section {
	Dwarf *dwarf; /* of which it was found */
	bool is_found;
	struct cursor bytes;
};

/*
 * abbrevs_take - account for those that libdw reads of a unit's, before it does.
 * @root:  the unit's first entry.
 * @whole: all of them, as whoever reads the unit's other entries needs; else those up to the first entry's own.
 * Errors: -E2BIG more than any compiler makes, or than this module may take; -ETIME. Where the section cannot be found
 * as bytes, nothing is accounted for.
 */
int abbrevs_take(struct abbrevs_section *section, Dwarf_Die *root, bool whole);

#endif
