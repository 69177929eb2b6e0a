/* SPDX-License-Identifier: MIT */
/* prune.c - debug information without the types and variables of C; see prune.h.
 *
 * Two thirds of C's debug information describe types, because each unit has all types of its included headers. A
 * look-up goes from a unit to its functions, into these, and from an inlined one to its origin, another function: it
 * never visits a type, and skips those beside functions. Types come in long rows. So the first entry of
 * a row with a sibling reference gets a reference to the end of the row, and the pages in between are freed.
 *
 * Invariants: the only written bytes are the values of DW_AT_sibling, and pages are freed only between that entry's end
 * and the row's. The file may be damaged: all steps stay in the unit and go forward.
 */
#include "symbolize/prune.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/util.h"
#include "symbolize/effort.h"

/* Limits per unit and per abbreviation, which is read again for each entry. */
enum { MAX_ABBREVIATIONS = 1 << 16, MAX_ATTRIBUTE_BYTES = 1 << 12 };

struct abbreviation {
	uint64_t tag;
	const uint8_t *attributes; /* pairs of name and form, terminated by two zeros */
	bool has_children;
};

/* Abbreviations of one unit; compilers number them from 1 without gaps. */
struct abbreviations {
	struct abbreviation *items;
	size_t n, allocated;
	const uint8_t *end; /* end of the section */
};

struct unit {
	uint8_t *start; /* unit header; references are relative to it */
	struct cursor cursor;
	unsigned version, address_bytes;
	uint64_t abbrevs_offset;
};

/* What skipping an entry reads of it. */
struct entry {
	const struct abbreviation *abbreviation; /* NULL: the end of a list of siblings */
	const uint8_t *start;
	const uint8_t *sibling; /* position of its 4-byte DW_AT_sibling; NULL: it has none */
	uint64_t language;
};

static int read_abbreviations(struct cursor cursor, struct abbreviations *abbreviations)
{
	uint64_t code, name, form;
	int r;

	abbreviations->n = 0;
	abbreviations->end = cursor.end;
	while ((code = cursor_leb128(&cursor)) != 0) {
		struct abbreviation *abbreviation;

		if (code != abbreviations->n + 1 || abbreviations->n == MAX_ABBREVIATIONS)
			return -ENOTSUP;
		if (!effort_go_on(4))
			return -ETIME;
		r = effort_grow(&abbreviations->items, abbreviations->n, &abbreviations->allocated,
				sizeof *abbreviations->items);
		if (r < 0)
			return r;
		abbreviation = &abbreviations->items[abbreviations->n++];
		abbreviation->tag = cursor_leb128(&cursor);
		abbreviation->has_children = cursor_fixed(&cursor, 1) != 0;
		abbreviation->attributes = cursor.at;
		do {
			name = cursor_leb128(&cursor);
			form = cursor_leb128(&cursor);
			if (form == DW_FORM_implicit_const)
				(void)cursor_signed_leb128(&cursor);
		} while ((name != 0 || form != 0) && !cursor.failed);
		if (cursor.failed || (size_t)(cursor.at - abbreviation->attributes) > MAX_ATTRIBUTE_BYTES)
			return -ENOTSUP;
	}
	return cursor.failed ? -EBADMSG : 0;
}

static inline uint64_t read_number(struct cursor *cursor)
{
	if (cursor->at != cursor->end && *cursor->at < 0x80)
		return *cursor->at++;
	return cursor_leb128(cursor);
}

static void skip(struct cursor *cursor, uint64_t n_bytes)
{
	if (cursor->failed || n_bytes > cursor_left(cursor))
		cursor->failed = true;
	else
		cursor->at += n_bytes;
}

static void skip_string(struct cursor *cursor)
{
	const uint8_t *end = memchr(cursor->at, '\0', cursor_left(cursor));

	if (!end)
		cursor->failed = true;
	else
		cursor->at = end + 1;
}

/* Size of a value if its form determines it; -1: it does not. */
static int fixed_bytes(const struct unit *unit, uint64_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
		return 2;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_ref_addr:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return (int)unit->address_bytes;
	default:
		return -1;
	}
}

/* False: unknown form. */
static bool skip_value(struct unit *unit, uint64_t form)
{
	struct cursor *cursor = &unit->cursor;
	int n = fixed_bytes(unit, form);

	if (n >= 0) {
		skip(cursor, (uint64_t)n);
		return true;
	}
	switch (form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_sdata: /* skipped like ULEB128 */
		(void)read_number(cursor);
		return true;
	case DW_FORM_string:
		skip_string(cursor);
		return true;
	case DW_FORM_exprloc:
	case DW_FORM_block:
		skip(cursor, read_number(cursor));
		return true;
	case DW_FORM_block1:
		skip(cursor, cursor_fixed(cursor, 1));
		return true;
	case DW_FORM_block2:
		skip(cursor, cursor_fixed(cursor, 2));
		return true;
	case DW_FORM_block4:
		skip(cursor, cursor_fixed(cursor, 4));
		return true;
	default:
		return false;
	}
}

static uint64_t number_at(const uint8_t *at, uint64_t form)
{
	struct cursor cursor = { at, at + 2, false };

	return form == DW_FORM_data1 ? cursor_fixed(&cursor, 1) : form == DW_FORM_data2 ? cursor_fixed(&cursor, 2) : 0;
}

/* Skip an entry without its children. False: malformed or unknown. */
static bool read_entry(struct unit *unit, const struct abbreviations *abbreviations, struct entry *ret)
{
	struct cursor *cursor = &unit->cursor;
	struct cursor attributes;
	uint64_t code, name, form;

	*ret = (struct entry){ .start = cursor->at };
	code = read_number(cursor);
	if (cursor->failed || code > abbreviations->n || !effort_go_on(2))
		return false;
	if (code == 0)
		return true;
	ret->abbreviation = &abbreviations->items[code - 1];
	attributes = (struct cursor){ ret->abbreviation->attributes, abbreviations->end, false };
	for (;;) {
		const uint8_t *value = cursor->at;

		name = read_number(&attributes);
		form = read_number(&attributes);
		if (name == 0 && form == 0)
			return !cursor->failed;
		if (!skip_value(unit, form) || cursor->failed)
			return false;
		if (name == DW_AT_language)
			ret->language = form == DW_FORM_implicit_const ? read_number(&attributes)
								       : number_at(value, form);
		else if (form == DW_FORM_implicit_const)
			(void)cursor_signed_leb128(&attributes);
		if (name == DW_AT_sibling && form == DW_FORM_ref4)
			ret->sibling = value;
	}
}

/* Go from an entry to its sibling. False: malformed or unknown. */
static bool skip_children(struct unit *unit, const struct abbreviations *abbreviations, const struct entry *entry)
{
	struct cursor *cursor = &unit->cursor;
	unsigned depth = 1;

	if (!entry->abbreviation->has_children)
		return true;
	if (entry->sibling) {
		uint32_t offset;

		memcpy(&offset, entry->sibling, sizeof offset);
		if (offset > (size_t)(cursor->end - unit->start) || unit->start + offset < cursor->at)
			return false;
		cursor->at = unit->start + offset;
		return true;
	}
	while (depth > 0) {
		struct entry child;

		if (!read_entry(unit, abbreviations, &child))
			return false;
		if (!child.abbreviation)
			depth--;
		else if (child.abbreviation->has_children)
			depth++;
	}
	return true;
}

static bool is_c(uint64_t language)
{
	return language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 || language == DW_LANG_C11;
}

/* Tags that contain no function in C and do not lead to one. */
static bool is_left_out(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_array_type:
	case DW_TAG_base_type:
	case DW_TAG_const_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_pointer_type:
	case DW_TAG_restrict_type:
	case DW_TAG_structure_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_typedef:
	case DW_TAG_union_type:
	case DW_TAG_variable:
	case DW_TAG_volatile_type:
		return true;
	default:
		return false;
	}
}

/* Consecutive entries that a DW_AT_sibling will skip. */
struct run {
	uint8_t *sibling;   /* DW_AT_sibling of the first entry that has one; NULL: none so far */
	const uint8_t *end; /* end of that entry without its children */
};

static void give_back(const uint8_t *start, const uint8_t *end)
{
	uintptr_t page = (uintptr_t)getpagesize();
	uintptr_t first = ((uintptr_t)start + page - 1) / page * page, last = (uintptr_t)end / page * page;

	/* If this fails, the memory just stays in use. */
	if (first < last)
		(void)madvise((void *)first, last - first, MADV_DONTNEED);
}

static void end_run(const struct unit *unit, struct run *run, const uint8_t *end)
{
	uint32_t offset = (uint32_t)(end - unit->start);

	if (run->sibling) {
		memcpy(run->sibling, &offset, sizeof offset);
		give_back(run->end, end);
	}
	*run = (struct run){ 0 };
}

static void prune_unit(struct unit *unit, const struct abbreviations *abbreviations)
{
	struct run run = { 0 };
	struct entry entry;

	if (!read_entry(unit, abbreviations, &entry) || !entry.abbreviation ||
	    entry.abbreviation->tag != DW_TAG_compile_unit || !entry.abbreviation->has_children ||
	    !is_c(entry.language))
		return;
	while (read_entry(unit, abbreviations, &entry)) {
		if (!entry.abbreviation || !is_left_out(entry.abbreviation->tag))
			end_run(unit, &run, entry.start);
		else if (!run.sibling && entry.sibling && entry.abbreviation->has_children)
			run = (struct run){ unit->start + (entry.sibling - unit->start), unit->cursor.at };
		if (!entry.abbreviation || !skip_children(unit, abbreviations, &entry))
			return;
	}
}

/* Returns 1 if the unit may be pruned, 0 if not, -EBADMSG if the next unit cannot be found. */
static int read_unit(struct cursor *section, uint8_t *start, struct unit *ret)
{
	struct cursor *cursor = &ret->cursor;
	uint64_t n_bytes = cursor_fixed(section, 4);
	unsigned type = DW_UT_compile;

	/* Skip 64-bit DWARF; compilers emit it only on request. */
	if (section->failed || n_bytes > cursor_left(section))
		return -EBADMSG;
	*ret = (struct unit){ .start = start, .cursor = { section->at, section->at + n_bytes, false } };
	section->at += n_bytes;
	ret->version = (unsigned)cursor_fixed(cursor, 2);
	if (ret->version >= 5) {
		type = (unsigned)cursor_fixed(cursor, 1);
		ret->address_bytes = (unsigned)cursor_fixed(cursor, 1);
		ret->abbrevs_offset = cursor_fixed(cursor, 4);
	} else {
		ret->abbrevs_offset = cursor_fixed(cursor, 4);
		ret->address_bytes = (unsigned)cursor_fixed(cursor, 1);
	}
	return !cursor->failed && ret->version >= 3 && ret->version <= 5 && type == DW_UT_compile;
}

int prune_types(uint8_t *info, size_t n_info, const uint8_t *abbrevs, size_t n_abbrevs)
{
	struct cursor section = { info, info + n_info, false };
	struct abbreviations abbreviations = { 0 };
	uint64_t read_offset = UINT64_MAX;
	int r = 0, read_result = 0;

	while (r != -ENOMEM && r != -ETIME && r != -E2BIG && cursor_left(&section) > 0) {
		struct unit unit;

		r = read_unit(&section, info + (section.at - info), &unit);
		if (r < 0)
			break;
		if (r == 0 || unit.abbrevs_offset > n_abbrevs)
			continue;
		/* Units may share abbreviations. */
		if (unit.abbrevs_offset != read_offset)
			read_result = read_abbreviations(
				(struct cursor){ abbrevs + unit.abbrevs_offset, abbrevs + n_abbrevs, false },
				&abbreviations);
		read_offset = unit.abbrevs_offset;
		r = read_result;
		if (r >= 0)
			prune_unit(&unit, &abbreviations);
	}
	free(abbreviations.items);
	return r == -ENOMEM || r == -ETIME || r == -E2BIG ? r : 0;
}
