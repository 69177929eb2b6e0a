/* SPDX-License-Identifier: MIT */
/* lines.c - functions, files and lines of addresses, from debug information.
 *
 * The line table gives the file and line of the innermost function; for each
 * caller of an inlined function they are those of the call site. line_table.c reads
 * tables; libdw reads those that it does not support (split units, names in a common file), and
 * keeps all rows of a unit.
 *
 * Invariant: addresses in arguments and results are the module's own; those passed
 * to libdw are the module's plus shift.
 */
#include "symbolize/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/line_table.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"

enum {
	MAX_SCOPES = 256,
	MAX_SIBLINGS = 1 << 16,
	STEPS_OF_SCOPE = 32,        /* it may have many ranges */
	LIBDW_MAX_BYTES = 16 << 20, /* of line tables given to libdw, which allocates 40 bytes per byte and keeps them */
	LIBDW_ROW_BYTES = 40,
	HEADER_BYTES = 12,
};

struct debug_lines {
	struct debug_functions *functions;
	uint64_t shift; /* DWARF's addresses minus the module's */
	Dwarf *dwarf;
	bool has_sections;
	struct line_sections sections;
	struct id_map table_index;  /* offset of a line table, plus 1 -> index */
	struct line_table **tables; /* NULL: ask libdw */
	size_t n_tables, tables_allocated;
	uint64_t n_libdw_bytes;    /* of tables that libdw has read */
	struct id_map libdw_index; /* unit -> whether libdw may read its line table */
	struct id_map whole_index; /* address of a relative name of libdw -> its full path */
	char **wholes;
	size_t n_wholes, wholes_allocated;
};

int debug_lines_new(Dwarf *dwarf, uint64_t shift, const char *path, const struct debug_index *known,
		    struct debug_lines **ret)
{
	CLEANUP(debug_lines_freep) struct debug_lines *lines = NULL;
	int r;

	lines = calloc(1, sizeof *lines);
	if (!lines)
		return -ENOMEM;
	lines->shift = shift;
	lines->dwarf = dwarf;
	lines->has_sections = line_sections_of(dwarf, &lines->sections) >= 0;
	r = known ? debug_functions_restore(dwarf, known, &lines->functions)
		  : debug_functions_new(dwarf, path, &lines->functions);
	if (r < 0)
		return r;

	*ret = TAKE(lines);
	return 0;
}

int debug_lines_index(const struct debug_lines *lines, struct debug_index *ret)
{
	return debug_functions_index(lines->functions, ret);
}

void debug_lines_free(struct debug_lines *lines)
{
	if (!lines)
		return;
	debug_functions_free(lines->functions);
	id_map_done(&lines->table_index);
	id_map_done(&lines->libdw_index);
	for (size_t i = 0; i < lines->n_tables; i++)
		line_table_free(lines->tables[i]);
	free(lines->tables);
	id_map_done(&lines->whole_index);
	for (size_t i = 0; i < lines->n_wholes; i++)
		free(lines->wholes[i]);
	free(lines->wholes);
	free(lines);
}

void debug_lines_freep(struct debug_lines **lines)
{
	debug_lines_free(*lines);
}

/* Like dwarf_siblingof, but a sibling that precedes its predecessor ends the list. */
static int next_sibling(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	int more = dwarf_siblingof(die, die);

	return more == 0 && dwarf_dieoffset(die) <= before ? 1 : more;
}

/* Find the scope directly inside parent that contains an address: a block or an inlined function. */
static bool find_scope(Dwarf_Die *parent, Dwarf_Addr address, Dwarf_Die *ret)
{
	unsigned n_left = MAX_SIBLINGS;
	Dwarf_Die child;

	for (int more = dwarf_child(parent, &child); more == 0 && n_left-- > 0 && effort_go_on(STEPS_OF_SCOPE);
	     more = next_sibling(&child)) {
		switch (dwarf_tag(&child)) {
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if (dwarf_haspc(&child, address) > 0) {
				*ret = child;
				return true;
			}
			break;
		default:
			break;
		}
	}
	return false;
}

/* Find the function and the inlined functions at an address, outermost first. Returns their number. */
static size_t find_chain(Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die *chain, size_t max)
{
	Dwarf_Die scope = *function;
	size_t n = 0;

	chain[n++] = *function;
	for (unsigned depth = 0; depth < MAX_SCOPES && n < max; depth++) {
		Dwarf_Die inner;

		if (!find_scope(&scope, address, &inner))
			break;
		scope = inner;
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine)
			chain[n++] = scope;
	}
	return n;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		return dwarf_formstring(&attribute);
	return NULL;
}

/* The folder in which a unit was compiled; NULL: unknown. */
static const char *compiled_in(Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static bool unsigned_attribute(Dwarf_Die *die, unsigned name, Dwarf_Word *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, ret) == 0;
}

static int keep_table(struct debug_lines *lines, uint64_t offset, struct line_table *table)
{
	int r;

	r = effort_grow(&lines->tables, lines->n_tables, &lines->tables_allocated, sizeof(struct line_table *));
	if (r >= 0)
		r = id_map_add(&lines->table_index, offset + 1, (uint32_t)lines->n_tables);
	if (r < 0)
		return r;
	lines->tables[lines->n_tables++] = table;
	return 0;
}

/* A unit's line table, read once. *ret is NULL if libdw must be asked. -ENOMEM. */
static int table_of(struct debug_lines *lines, Dwarf_Die *unit, struct line_table **ret)
{
	CLEANUP(line_table_freep) struct line_table *table = NULL;
	const struct id_slot *slot;
	Dwarf_Word offset;
	int r;

	*ret = NULL;
	/* A split unit's .dwo file has its own file table. */
	if (!lines->has_sections || dwarf_cu_getdwarf(unit->cu) != lines->dwarf ||
	    !unsigned_attribute(unit, DW_AT_stmt_list, &offset) || offset >= lines->sections.lines.n_bytes)
		return 0;
	slot = id_map_find(&lines->table_index, offset + 1);
	if (slot) {
		*ret = lines->tables[slot->id];
		return 0;
	}
	r = line_table_new(&lines->sections, offset, compiled_in(unit), &table);
	if (r == -ENOMEM || r == -ETIME || r == -E2BIG)
		return r;
	r = keep_table(lines, offset, table);
	if (r < 0)
		return r;
	*ret = TAKE(table);
	return 0;
}

static bool is_too_long(const char *name)
{
	return strnlen(name, NAME_MAX_BYTES) == NAME_MAX_BYTES;
}

static const char *bounded(const char *name)
{
	return name && is_too_long(name) ? NULL : name;
}

/*
 * The full path of a file. libdw leaves paths relative if their folder in the line table is. Out of memory, too, the
 * path stays relative. Names live as long as libdw's, and each unit has its own.
 */
static const char *whole_name(struct debug_lines *lines, Dwarf_Die *unit, const char *file)
{
	const struct id_slot *slot;
	const char *folder;
	char *whole;

	if (!file || is_too_long(file))
		return NULL;
	if (file[0] == '/')
		return file;
	slot = id_map_find(&lines->whole_index, (uintptr_t)file);
	if (slot)
		return lines->wholes[slot->id];
	folder = compiled_in(unit);
	/* Some builds record a relative folder, which does not help. */
	if (!folder || folder[0] != '/' || is_too_long(folder) ||
	    effort_grow(&lines->wholes, lines->n_wholes, &lines->wholes_allocated, sizeof *lines->wholes) < 0 ||
	    asprintf(&whole, "%s/%s", folder, file) < 0)
		return file;
	lines->wholes[lines->n_wholes++] = whole;
	(void)id_map_add(&lines->whole_index, (uintptr_t)file, (uint32_t)(lines->n_wholes - 1));
	return whole;
}

/* Size of a unit's line table; 0: there is none, or its bytes are not accessible. */
static uint64_t table_bytes(Dwarf_Die *unit, Dwarf_Word offset)
{
	struct line_sections sections;
	uint64_t n_bytes = 0;
	uint32_t n;

	if (line_sections_of(dwarf_cu_getdwarf(unit->cu), &sections) < 0 || sections.lines.n_bytes < HEADER_BYTES ||
	    offset > sections.lines.n_bytes - HEADER_BYTES)
		return 0;
	memcpy(&n, sections.lines.bytes + offset, sizeof n);
	if (n == UINT32_MAX)
		memcpy(&n_bytes, sections.lines.bytes + offset + sizeof n, sizeof n_bytes);
	else
		n_bytes = n;
	return MIN(n_bytes, sections.lines.n_bytes - offset);
}

/* libdw keeps every row of a table, so limit the size of all tables it reads; count each unit once. */
static bool may_ask_libdw(struct debug_lines *lines, Dwarf_Die *unit)
{
	const struct id_slot *slot = id_map_find(&lines->libdw_index, (uintptr_t)unit->cu);
	Dwarf_Word offset;
	uint64_t n_bytes;
	bool may;

	if (slot)
		return slot->id;
	n_bytes = unsigned_attribute(unit, DW_AT_stmt_list, &offset) ? table_bytes(unit, offset) : 0;
	may = n_bytes <= LIBDW_MAX_BYTES - lines->n_libdw_bytes && effort_take(n_bytes * LIBDW_ROW_BYTES, true) == 0;
	if (id_map_add(&lines->libdw_index, (uintptr_t)unit->cu, may) < 0)
		return false;
	lines->n_libdw_bytes += may ? n_bytes : 0;
	return may;
}

static void ask_libdw(struct debug_lines *lines, Dwarf_Die *unit, Dwarf_Addr address, struct debug_frame *frame)
{
	Dwarf_Line *line = may_ask_libdw(lines, unit) ? dwarf_getsrc_die(unit, address) : NULL;

	if (!line)
		return;
	frame->file = whole_name(lines, unit, dwarf_linesrc(line, NULL, NULL));
	if (dwarf_lineno(line, &frame->line) != 0)
		frame->line = 0;
}

static int set_executing_line(struct debug_lines *lines, Dwarf_Die *unit, Dwarf_Addr address, struct debug_frame *frame)
{
	struct line_table *table;
	uint64_t file;
	int r;

	r = table_of(lines, unit, &table);
	if (r < 0)
		return r;
	if (!table) {
		ask_libdw(lines, unit, address, frame);
		return 0;
	}
	if (!line_table_find(table, address, &file, &frame->line))
		return 0;
	return line_table_file(table, file, &frame->file);
}

static int call_file(struct debug_lines *lines, Dwarf_Die *unit, uint64_t file, const char **ret)
{
	struct line_table *table;
	Dwarf_Files *files;
	size_t n_files;
	int r;

	r = table_of(lines, unit, &table);
	if (r < 0)
		return r;
	if (table)
		return line_table_file(table, file, ret);
	if (may_ask_libdw(lines, unit) && dwarf_getsrcfiles(unit, &files, &n_files) == 0 && file < n_files)
		*ret = whole_name(lines, unit, dwarf_filesrc(files, file, NULL, NULL));
	return 0;
}

/* Set file and line of the call that the inlined code replaced. */
static int set_call_line(struct debug_lines *lines, Dwarf_Die *inlined, struct debug_frame *caller)
{
	Dwarf_Die unit;
	Dwarf_Word value;

	if (unsigned_attribute(inlined, DW_AT_call_line, &value) && value <= INT32_MAX)
		caller->line = (int)value;
	if (!unsigned_attribute(inlined, DW_AT_call_file, &value) || !dwarf_diecu(inlined, &unit, NULL, NULL))
		return 0;
	return call_file(lines, &unit, value, &caller->file);
}

static uint64_t entry_of(const struct debug_lines *lines, Dwarf_Die *function)
{
	Dwarf_Addr entry;

	if (dwarf_entrypc(function, &entry) != 0)
		return 0;
	return entry - lines->shift;
}

int debug_lines_find(struct debug_lines *lines, uint64_t address, struct debug_frame *frames, size_t max)
{
	Dwarf_Die unit, function, chain[SYMBOL_MAX_INLINED];
	Dwarf_Addr at = address + lines->shift;
	bool has_function;
	size_t n;
	int r;

	r = debug_functions_find(lines->functions, at, &unit, &function);
	if (r <= 0)
		return r;
	frames[0] = (struct debug_frame){ 0 };
	has_function = r == 2;
	r = set_executing_line(lines, &unit, at, &frames[0]);
	if (r < 0 || !has_function)
		return r < 0 ? r : 1;
	n = find_chain(&function, at, chain, MIN(max, N_ELEMENTS(chain)));
	for (size_t i = 0; i < n; i++) {
		Dwarf_Die *die = &chain[n - 1 - i];

		frames[i].name = bounded(dwarf_diename(die));
		frames[i].linkage = bounded(linkage_name(die));
		frames[i].start = i + 1 == n ? entry_of(lines, die) : 0;
		if (i + 1 < n) {
			frames[i + 1] = (struct debug_frame){ 0 };
			r = set_call_line(lines, die, &frames[i + 1]);
			if (r < 0)
				return r;
		}
	}
	return (int)n;
}
