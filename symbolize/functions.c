/* SPDX-License-Identifier: MIT */
/* functions.c - the functions that debug information describes, by address.
 *
 * The address ranges of a unit are in .debug_aranges, by gcc, and in the unit's top entry, which takes longer to read:
 * clang omits the former. The functions inside a unit are collected at the first look-up there.
 *
 * Invariants: ranges are sorted by start, never empty; items are indices into
 * the array beside them. Ranges may overlap (a function inlined into the same
 * comdat, nested functions): the one that starts last and holds the address wins.
 * Depths and counts are bounded, since the file may be damaged.
 */
#include "symbolize/functions.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "symbolize/abbrevs.h"
#include "symbolize/effort.h"
#include "symbolize/search.h"

enum { MAX_DEPTH = 48, MAX_NESTING = 64, MAX_RANGES = 1 << 24 };

/* Rough cost in libdw's time and memory; a unit also has an abbreviation table. */
enum { STEPS_OF_ENTRY = 64, STEPS_OF_RANGE = 4, BYTES_OF_UNIT = 1280 };

struct range {
	uint64_t start, end;
	size_t item;
};

struct ranges {
	struct range *items;
	size_t n_items, allocated;
};

struct debug_unit {
	Dwarf_Die lines;         /* unit in the main file, which has the line table */
	Dwarf_Die root;          /* the same, or the unit in its .dwo file */
	bool is_read, collected; /* !is_read: only the offset is known */
	uint64_t offset;
	uint64_t n_left; /* limit of entries still to visit while collecting */
	Dwarf_Die *functions;
	size_t n_functions, functions_allocated;
	struct ranges ranges; /* items are indices of functions */
};

struct debug_functions {
	Dwarf *dwarf;
	bool is_split;
	struct abbrevs_section abbrevs;
	struct debug_unit *units;
	size_t n_units, units_allocated;
	struct ranges ranges; /* items are indices of units */
};

/* Add all ranges of an entry. Returns their number; -ENOMEM and errors of effort.h. */
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
		/* Linkers write 0 or -1 for a dropped function. */
		if (start == 0 || end <= start)
			continue;
		r = effort_grow(&ranges->items, ranges->n_items, &ranges->allocated, sizeof *ranges->items);
		if (r < 0)
			return r;
		ranges->items[ranges->n_items++] = (struct range){ .start = start, .end = end, .item = item };
		n++;
	}
	return n;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end; /* inner ranges come later */
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

/* Tags whose children may be functions with code. */
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
	r = effort_grow(&unit->functions, unit->n_functions, &unit->functions_allocated, sizeof *unit->functions);
	if (r < 0)
		return r;
	unit->functions[unit->n_functions++] = *die;
	return 0;
}

/*
 * A valid unit's entries are visited once each. In a damaged one, a sibling may precede its predecessor or lie among
 * its children, and would be visited again and again.
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

/* An entry takes at least one byte, so a valid unit has at most as many entries as bytes. */
static uint64_t count_bytes(Dwarf_Die *root)
{
	Dwarf_Off start = dwarf_dieoffset(root) - dwarf_cuoffset(root), next;
	size_t n_header;

	if (dwarf_next_unit(dwarf_cu_getdwarf(root->cu), start, &next, &n_header, NULL, NULL, NULL, NULL, NULL, NULL) !=
		    0 ||
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

/* Collect again from the start if an earlier attempt did not finish. */
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

	r = effort_grow(&functions->units, functions->n_units, &functions->units_allocated, sizeof *functions->units);
	if (r < 0)
		return r;
	unit = &functions->units[functions->n_units];
	*unit = (struct debug_unit){
		.lines = *lines,
		.root = split->cu ? *split : *lines,
		.is_read = true,
		.offset = dwarf_dieoffset(lines),
	};
	r = ranges_add(&functions->ranges, lines, functions->n_units);
	if (r < 0)
		return r;
	functions->n_units++;
	return 0;
}

/* ---- Units listed in .debug_aranges ---- */

struct listed {
	Dwarf_Aranges *aranges; /* owned by libdw; NULL: none */
	size_t n;
	struct id_map units; /* offset of the first entry -> index into functions->units; NOT_MET: not visited yet */
};

enum { NOT_MET = UINT32_MAX };

/*
 * libdw temporarily uses 70 bytes for an entry of 16. Returns 0 also if libdw must not read the section (*ret_is_sane).
 */
static int take_listed(Dwarf *dwarf, bool *ret_is_sane)
{
	enum { MAX_BYTES = 8 << 20, MEMORY_OF_BYTE = 5, MAX_SECTIONS = 1 << 16 };
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;
	size_t names, n = 0;

	*ret_is_sane = false;
	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	while ((section = elf_nextscn(elf, section)) != NULL && ++n < MAX_SECTIONS) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			return 0;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, ".debug_aranges") != 0)
			continue;
		if ((header.sh_flags & SHF_COMPRESSED) || header.sh_size > MAX_BYTES)
			return 0;
		*ret_is_sane = true;
		return effort_take(header.sh_size * MEMORY_OF_BYTE, true);
	}
	return 0;
}

static bool listed_nth(const struct listed *listed, size_t i, Dwarf_Addr *ret_start, Dwarf_Word *ret_length,
		       Dwarf_Off *ret_unit)
{
	Dwarf_Arange *arange = dwarf_onearange(listed->aranges, i);

	return arange && dwarf_getarangeinfo(arange, ret_start, ret_length, ret_unit) == 0;
}

static int listed_find(Dwarf *dwarf, struct listed *listed)
{
	Dwarf_Word length;
	Dwarf_Addr start;
	Dwarf_Off unit;

	bool is_sane;
	int r;

	*listed = (struct listed){ 0 };
	r = take_listed(dwarf, &is_sane);
	if (r < 0 || !is_sane)
		return r;
	if (dwarf_getaranges(dwarf, &listed->aranges, &listed->n) != 0)
		listed->n = 0;
	for (size_t i = 0; i < listed->n; i++) {
		if (!effort_go_on(STEPS_OF_RANGE))
			return -ETIME;
		if (!listed_nth(listed, i, &start, &length, &unit) || unit == 0 || id_map_find(&listed->units, unit))
			continue;
		if (id_map_add(&listed->units, unit, NOT_MET) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A unit with listed ranges need not be read yet. Returns 1 if it is listed, 0 if not. */
static int add_listed(struct debug_functions *functions, struct listed *listed, Dwarf_Die *die)
{
	struct id_slot *entry = id_map_find(&listed->units, dwarf_dieoffset(die));
	int r;

	if (!entry || functions->n_units >= NOT_MET)
		return 0;
	r = effort_grow(&functions->units, functions->n_units, &functions->units_allocated, sizeof *functions->units);
	if (r < 0)
		return r;
	entry->id = (uint32_t)functions->n_units;
	functions->units[functions->n_units++] = (struct debug_unit){ .offset = dwarf_dieoffset(die) };
	return 1;
}

static int add_listed_ranges(struct debug_functions *functions, const struct listed *listed)
{
	struct ranges *ranges = &functions->ranges;

	for (size_t i = 0; i < listed->n && ranges->n_items < MAX_RANGES; i++) {
		const struct id_slot *entry;
		Dwarf_Word length;
		Dwarf_Addr start;
		Dwarf_Off unit;
		int r;

		if (!effort_go_on(STEPS_OF_RANGE))
			return -ETIME;
		if (!listed_nth(listed, i, &start, &length, &unit) || unit == 0 || start == 0 || length == 0 ||
		    length > UINT64_MAX - start)
			continue;
		entry = id_map_find(&listed->units, unit);
		if (!entry || entry->id == NOT_MET)
			continue;
		r = effort_grow(&ranges->items, ranges->n_items, &ranges->allocated, sizeof *ranges->items);
		if (r < 0)
			return r;
		ranges->items[ranges->n_items++] = (struct range){ start, start + length, entry->id };
	}
	return 0;
}

static void listed_done(struct listed *listed)
{
	id_map_done(&listed->units);
}

static const char *text_attribute(Dwarf_Die *die, unsigned name, unsigned other_name)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, other_name, &attribute))
		return NULL;
	return dwarf_formstring(&attribute);
}

/* libdw opens the .dwo file of a skeleton unit without any check, so check its name first. */
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
	CLEANUP(listed_done) struct listed listed = { 0 };
	Dwarf_CU *unit = NULL;
	uint8_t type;
	int r;

	functions = calloc(1, sizeof *functions);
	if (!functions)
		return -ENOMEM;
	functions->dwarf = dwarf;
	r = listed_find(dwarf, &listed);
	if (r < 0)
		return r;
	for (;;) {
		Dwarf_Die die = { 0 }, split = { 0 };

		if (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL) != 0)
			break;
		if (!effort_go_on(STEPS_OF_ENTRY))
			return -ETIME;
		r = effort_take(BYTES_OF_UNIT, true);
		if (r < 0)
			return r;
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		r = type == DW_UT_compile ? add_listed(functions, &listed, &die) : 0;
		if (r == 0)
			r = abbrevs_take(&functions->abbrevs, &die, false);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		functions->is_split |= type == DW_UT_skeleton;
		if (type == DW_UT_skeleton && may_follow(&die, path))
			(void)dwarf_cu_info(unit, NULL, NULL, NULL, &split, NULL, NULL, NULL);
		r = add_unit(functions, &die, &split);
		if (r < 0)
			return r;
	}
	r = add_listed_ranges(functions, &listed);
	if (r < 0)
		return r;
	ranges_sort(&functions->ranges);

	*ret = TAKE(functions);
	return 0;
}

static int restore_units(struct debug_functions *functions, const struct debug_index *index)
{
	int r;

	r = effort_take(index->n_units * (sizeof *functions->units + BYTES_OF_UNIT), true);
	if (r < 0)
		return r;
	functions->units = calloc(index->n_units + 1, sizeof *functions->units);
	if (!functions->units)
		return -ENOMEM;
	functions->n_units = index->n_units;
	for (size_t i = 0; i < index->n_units; i++)
		functions->units[i].offset = index->units[i];
	return 0;
}

static int restore_ranges(struct debug_functions *functions, const struct debug_index *index)
{
	struct ranges *ranges = &functions->ranges;
	int r;

	r = effort_take(index->n_ranges * sizeof *ranges->items, true);
	if (r < 0)
		return r;
	ranges->items = calloc(index->n_ranges + 1, sizeof *ranges->items);
	if (!ranges->items)
		return -ENOMEM;
	for (size_t i = 0; i < index->n_ranges; i++) {
		const struct cache_range *from = &index->ranges[i];

		if (from->start >= from->end || from->unit >= index->n_units || (i > 0 && from->start < from[-1].start))
			return -EBADMSG;
		ranges->items[i] = (struct range){ from->start, from->end, from->unit };
	}
	ranges->n_items = index->n_ranges;
	return 0;
}

int debug_functions_restore(Dwarf *dwarf, const struct debug_index *index, struct debug_functions **ret)
{
	CLEANUP(debug_functions_freep) struct debug_functions *functions = calloc(1, sizeof *functions);
	int r;

	if (!functions)
		return -ENOMEM;
	functions->dwarf = dwarf;
	r = restore_units(functions, index);
	if (r >= 0)
		r = restore_ranges(functions, index);
	if (r < 0)
		return r;
	*ret = TAKE(functions);
	return 0;
}

int debug_functions_index(const struct debug_functions *functions, struct debug_index *ret)
{
	CLEANUP(freep) uint64_t *units = calloc(functions->n_units + 1, sizeof *units);
	CLEANUP(freep) struct cache_range *ranges = calloc(functions->ranges.n_items + 1, sizeof *ranges);

	if (functions->is_split)
		return -ENOTSUP;
	if (!units || !ranges)
		return -ENOMEM;
	for (size_t i = 0; i < functions->n_units; i++)
		units[i] = functions->units[i].offset;
	for (size_t i = 0; i < functions->ranges.n_items; i++) {
		const struct range *from = &functions->ranges.items[i];

		ranges[i] = (struct cache_range){ from->start, from->end, from->item };
	}
	*ret = (struct debug_index){ TAKE(units), TAKE(ranges), functions->n_units, functions->ranges.n_items };
	return 0;
}

void debug_index_done(struct debug_index *index)
{
	free((void *)index->units);
	free((void *)index->ranges);
}

/* A wrong cache entry may name an offset without a unit's first entry. */
static int read_unit(struct debug_functions *functions, struct debug_unit *unit)
{
	enum { MAX_HEADER_BYTES = 64 };

	if (!dwarf_offdie(functions->dwarf, unit->offset, &unit->lines) ||
	    dwarf_cuoffset(&unit->lines) > MAX_HEADER_BYTES || dwarf_tag(&unit->lines) != DW_TAG_compile_unit)
		return -ENOENT;
	unit->root = unit->lines;
	unit->is_read = true;
	return abbrevs_take(&functions->abbrevs, &unit->lines, false);
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
	if (!unit->is_read) {
		r = read_unit(functions, unit);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
	}
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
