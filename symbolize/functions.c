/* functions.c - the functions that debug information describes, by address.
 *
 * .debug_aranges is no help: clang leaves it out. The address ranges stand in
 * the units' top entries, which are quick to read; the functions inside a unit
 * are collected at the first look-up there.
 *
 * Invariants: ranges are sorted by start, never empty; items are indices into
 * the array beside them. Ranges may overlap (a function inlined into the same
 * comdat, nested functions): the one that starts last and holds the address wins.
 * Depths and counts are bounded, since the file may be damaged.
 */
#include "symbolize/functions.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/abbrevs.h"
#include "symbolize/effort.h"
#include "symbolize/search.h"

enum { MAX_DEPTH = 48, MAX_NESTING = 64, MAX_RANGES = 1 << 24 };

/* What libdw takes and keeps of each, roughly: of a unit a table for its abbreviations, too. */
enum { STEPS_OF_ENTRY = 64, BYTES_OF_UNIT = 1280 };

struct range {
	uint64_t start, end;
	size_t item;
};

struct ranges {
	struct range *items;
	size_t n_items, allocated;
};

struct debug_unit {
	Dwarf_Die lines; /* the unit in the file itself: has the line table */
	Dwarf_Die root;  /* the same, or its other half in a .dwo file */
	bool collected;
	uint64_t n_left; /* entries that may still be met, while collecting */
	Dwarf_Die *functions;
	size_t n_functions, functions_allocated;
	struct ranges ranges; /* items index functions */
};

struct debug_functions {
	struct abbrevs_section abbrevs;
	struct debug_unit *units;
	size_t n_units, units_allocated;
	struct ranges ranges; /* items index units */
};

/* Add all ranges of an entry. Returns how many; -ENOMEM and those of effort.h. */
static int ranges_add(struct ranges *ranges, Dwarf_Die *die, size_t item)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	int n = 0;

	while (ranges->n_items < MAX_RANGES) {
		int r;

		offset = dwarf_ranges(die, offset, &base, &start, &end);
		if (offset <= 0)
			break;
		if (!effort_go_on(4))
			return -ETIME;
		/* Linkers leave 0 or -1 where they dropped a function. */
		if (start == 0 || end <= start)
			continue;
		r = effort_grow(&ranges->items, ranges->n_items, &ranges->allocated,
			 sizeof *ranges->items);
		if (r < 0)
			return r;
		ranges->items[ranges->n_items++] =
			(struct range){ .start = start, .end = end, .item = item };
		n++;
	}
	return n;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end; /* inner ones later */
}

static void ranges_sort(struct ranges *ranges)
{
	if (ranges->n_items > 0)
		qsort(ranges->items, ranges->n_items, sizeof *ranges->items, compare_ranges);
}

static const struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->n_items;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < MIN(low, (size_t)MAX_NESTING); back++) {
		const struct range *range = &ranges->items[low - 1 - back];

		if (address < range->end)
			return range;
	}
	return NULL;
}

/* Tags whose children may be functions with code of their own. */
static bool holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

static int add_function(struct debug_unit *unit, Dwarf_Die *die)
{
	int r;

	r = ranges_add(&unit->ranges, die, unit->n_functions);
	if (r <= 0)
		return r;
	r = effort_grow(&unit->functions, unit->n_functions, &unit->functions_allocated,
		 sizeof *unit->functions);
	if (r < 0)
		return r;
	unit->functions[unit->n_functions++] = *die;
	return 0;
}

/*
 * A sound unit's entries are met once each. In a damaged one siblings may lie
 * before their brothers, or among their children, and be met again and again.
 */
static bool goes_on(struct debug_unit *unit, Dwarf_Die *child, Dwarf_Off *last)
{
	Dwarf_Off offset = dwarf_dieoffset(child);
	bool is_forward = offset > *last;

	*last = offset;
	if (!is_forward || unit->n_left == 0)
		return false;
	unit->n_left--;
	return true;
}

/* An entry takes a byte at least, so a sound unit has no more of them than bytes. */
static uint64_t count_bytes(Dwarf_Die *root)
{
	Dwarf_Off start = dwarf_dieoffset(root) - dwarf_cuoffset(root), next;
	size_t n_header;

	if (dwarf_next_unit(dwarf_cu_getdwarf(root->cu), start, &next, &n_header, NULL, NULL, NULL, NULL, NULL,
			    NULL) != 0 ||
	    next <= start)
		return 0;
	return next - start;
}

static int collect(struct debug_unit *unit, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Off last = 0;
	Dwarf_Die child;
	int more, r;

	if (depth > MAX_DEPTH)
		return 0;
	for (more = dwarf_child(parent, &child); more == 0 && goes_on(unit, &child, &last);
	     more = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);

		if (!effort_go_on(STEPS_OF_ENTRY))
			return -ETIME;
		if (tag == DW_TAG_subprogram) {
			r = add_function(unit, &child);
			if (r < 0)
				return r;
		}
		if (!holds_functions(tag))
			continue;
		r = collect(unit, &child, depth + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Begun anew where it was not finished, which is where all is given up. */
static int collect_unit(struct debug_functions *functions, struct debug_unit *unit)
{
	int r;

	r = abbrevs_take(&functions->abbrevs, &unit->root, true);
	if (r < 0)
		return r;
	unit->n_left = count_bytes(&unit->root);
	unit->n_functions = unit->ranges.n_items = 0;
	r = collect(unit, &unit->root, 0);
	if (r < 0)
		return r;
	ranges_sort(&unit->ranges);
	unit->collected = true;
	return 0;
}

static int add_unit(struct debug_functions *functions, Dwarf_Die *lines, Dwarf_Die *split)
{
	struct debug_unit *unit;
	int r;

	r = effort_grow(&functions->units, functions->n_units, &functions->units_allocated,
		 sizeof *functions->units);
	if (r < 0)
		return r;
	unit = &functions->units[functions->n_units];
	*unit = (struct debug_unit){ .lines = *lines, .root = split->cu ? *split : *lines };
	r = ranges_add(&functions->ranges, lines, functions->n_units);
	if (r < 0)
		return r;
	functions->n_units++;
	return 0;
}

static const char *text_attribute(Dwarf_Die *die, unsigned name, unsigned other_name)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, other_name, &attribute))
		return NULL;
	return dwarf_formstring(&attribute);
}

/* The other half of a skeleton unit is in a file whose name libdw opens without looking. */
static bool may_follow(Dwarf_Die *skeleton, const char *path)
{
	const char *name = text_attribute(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	const char *folder = text_attribute(skeleton, DW_AT_comp_dir, DW_AT_comp_dir);
	CLEANUP(freep) char *in_folder = NULL;

	if (!name || search_may_harm(path, name))
		return false;
	if (!folder || name[0] == '/')
		return true;
	if (asprintf(&in_folder, "%s/%s", folder, name) < 0)
		return false;
	return !search_may_harm(path, in_folder);
}

int debug_functions_new(Dwarf *dwarf, const char *path, struct debug_functions **ret)
{
	CLEANUP(debug_functions_freep) struct debug_functions *functions = NULL;
	Dwarf_CU *unit = NULL;
	uint8_t type;

	functions = calloc(1, sizeof *functions);
	if (!functions)
		return -ENOMEM;
	for (;;) {
		Dwarf_Die die = { 0 }, split = { 0 };
		int r;

		if (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL) != 0)
			break;
		if (!effort_go_on(STEPS_OF_ENTRY))
			return -ETIME;
		r = effort_take(BYTES_OF_UNIT, true);
		if (r < 0)
			return r;
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		r = abbrevs_take(&functions->abbrevs, &die, false);
		if (r < 0)
			return r;
		if (type == DW_UT_skeleton && may_follow(&die, path))
			(void)dwarf_cu_info(unit, NULL, NULL, NULL, &split, NULL, NULL, NULL);
		r = add_unit(functions, &die, &split);
		if (r < 0)
			return r;
	}
	ranges_sort(&functions->ranges);

	*ret = TAKE(functions);
	return 0;
}

void debug_functions_free(struct debug_functions *functions)
{
	if (!functions)
		return;
	for (size_t i = 0; i < functions->n_units; i++) {
		free(functions->units[i].functions);
		free(functions->units[i].ranges.items);
	}
	free(functions->units);
	free(functions->ranges.items);
	free(functions);
}

void debug_functions_freep(struct debug_functions **functions)
{
	debug_functions_free(*functions);
}

int debug_functions_find(struct debug_functions *functions, uint64_t address, Dwarf_Die *ret_lines,
			 Dwarf_Die *ret_function)
{
	const struct range *range;
	struct debug_unit *unit;
	int r;

	range = ranges_find(&functions->ranges, address);
	if (!range)
		return 0;
	unit = &functions->units[range->item];
	if (!unit->collected) {
		r = collect_unit(functions, unit);
		if (r < 0)
			return r;
	}
	*ret_lines = unit->lines;
	range = ranges_find(&unit->ranges, address);
	if (!range)
		return 1;
	*ret_function = unit->functions[range->item];
	return 2;
}
