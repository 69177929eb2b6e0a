/* SPDX-License-Identifier: MIT */
/* abbrevs.c - see abbrevs.h.
 *
 * An entry of debug information refers to an abbreviation by number, and libdw reads the unit's table up to that
 * number, keeping each. Many units may share a table, but libdw keeps a copy for each: 3 bytes of a file can
 * become 64 of memory a thousand times over.
 *
 * Source: DWARF 5, 7.5.3 "Abbreviations Tables"; libdw's Dwarf_Abbrev and its hash table.
 */
#include "symbolize/abbrevs.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"

/* The largest known unit, from whole-program optimisation, has some ten thousand in 200 KB. */
enum {
	MAX_ABBREVS = 1 << 16,
	MAX_TABLE_BYTES = 1 << 20,
	ABBREV_BYTES = 64,
	MAX_SECTIONS = 1 << 16,
	MAX_CODE_BYTES = 10
};

static bool find_section(Elf *elf, struct cursor *ret)
{
	Elf_Scn *section = NULL;
	size_t names, n = 0;

	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL && ++n < MAX_SECTIONS) {
		const char *name;
		const Elf_Data *data;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
		    (header.sh_flags & SHF_COMPRESSED))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, ".debug_abbrev", strlen(".debug_abbrev")) != 0) /* also .debug_abbrev.dwo */
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf)
			return false;
		*ret = (struct cursor){ data->d_buf, (const uint8_t *)data->d_buf + data->d_size, false };
		return true;
	}
	return false;
}

/* Find the start of a unit's abbreviations, and the latest end of its first entry. False: unknown. */
static bool find_table(struct abbrevs_section *section, Dwarf_Die *root, struct cursor *ret, struct cursor *ret_entry)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(root->cu);
	Dwarf_Off at = dwarf_dieoffset(root), next, offset;
	size_t n_header;

	if (section->dwarf != dwarf) {
		section->dwarf = dwarf;
		section->is_found = find_section(dwarf_getelf(dwarf), &section->bytes);
	}
	if (!section->is_found ||
	    dwarf_next_unit(dwarf, at - dwarf_cuoffset(root), &next, &n_header, NULL, &offset, NULL, NULL, NULL,
			    NULL) != 0 ||
	    next <= at || offset > cursor_left(&section->bytes))
		return false;
	*ret = section->bytes;
	ret->at += offset;
	*ret_entry = (struct cursor){ root->addr,
				      (const uint8_t *)root->addr + MIN(next - at, (Dwarf_Off)MAX_CODE_BYTES), false };
	return true;
}

/* Skip one abbreviation. Returns its number, 0 at the end. */
static uint64_t next_abbrev(struct cursor *cursor)
{
	uint64_t code = cursor_leb128(cursor), name, form;

	if (code == 0)
		return 0;
	(void)cursor_leb128(cursor); /* tag */
	(void)cursor_fixed(cursor, 1);
	do {
		name = cursor_leb128(cursor);
		form = cursor_leb128(cursor);
		if (form == DW_FORM_implicit_const)
			(void)cursor_signed_leb128(cursor);
	} while ((name != 0 || form != 0) && !cursor->failed);
	return code;
}

int abbrevs_take(struct abbrevs_section *section, Dwarf_Die *root, bool whole)
{
	struct cursor table, entry;
	uint64_t wanted, code;
	bool is_long;
	unsigned n = 0;

	if (!find_table(section, root, &table, &entry))
		return 0;
	is_long = cursor_left(&table) > MAX_TABLE_BYTES;
	table.end = is_long ? table.at + MAX_TABLE_BYTES : table.end;
	wanted = cursor_leb128(&entry);
	while ((code = next_abbrev(&table)) != 0 && !table.failed && (whole || code != wanted))
		if (++n > MAX_ABBREVS || !effort_go_on(2))
			return n > MAX_ABBREVS ? -E2BIG : -ETIME;
	if (table.failed && is_long)
		return -E2BIG;
	return effort_take((uint64_t)n * ABBREV_BYTES, true);
}
