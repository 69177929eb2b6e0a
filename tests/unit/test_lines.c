/* SPDX-License-Identifier: MIT */
/* test_lines.c - line tables give the same answers as libdw, in little memory, damaged ones included. */
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "symbolize/line_table.h"
#include "symbolize/symbolize.h"
#include "tests/unit/shell.h"

static const char header[] = "static inline __attribute__((always_inline)) int inner(int x)\n"
			     "{\n"
			     "	for (int i = 0; i < x; i++)\n"
			     "		__asm__ volatile(\"nop\");\n"
			     "	return x * 3;\n"
			     "}\n";

static const char program[] = "#include \"in/inner.h\"\n"
			      "__attribute__((cold, noinline)) int cold(int x);\n"
			      "int cold(int x)\n"
			      "{\n"
			      "	return inner(x) - 7;\n"
			      "}\n"
			      "int main(int argc, char **argv)\n"
			      "{\n"
			      "	switch (argc) {\n"
			      "	case 1: return inner(argc) + 1;\n"
			      "	case 2: return cold(argc) + (int)(argv - (char **)0);\n"
			      "	default: return inner(inner(argc));\n"
			      "	}\n"
			      "}\n";

/* Six hundred thousand rows. */
static const char many[] = "int main(void)\n"
			   "{\n"
			   "	__asm__ volatile(\".rept 300000; .loc 1 3; nop; .loc 1 4; nop; .endr\");\n"
			   "	return 0;\n"
			   "}\n";

static char folder[] = "/tmp/test_lines.XXXXXX";

static int run(const char *command)
{
	return shell_in(folder, command);
}

static int make_files(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || run("mkdir in") != 0 || write_in(folder, "in/inner.h", header) < 0 ||
	    write_in(folder, "a.c", program) < 0 || write_in(folder, "many.c", many) < 0)
		return -1;
	return run("for v in 2 3 4 5 ; do cc -O2 -gdwarf-$v a.c -o v$v && "
		   "cc -O1 -ffunction-sections -gdwarf-$v a.c -o sections$v || exit 1 ; done ; "
		   "cc -gdwarf-4 many.c -o many4 && cc -gdwarf-5 many.c -o many5");
}

static int remove_files(void **state)
{
	(void)state;
	return run("rm -rf \"$PWD\"") == 0 ? 0 : -1;
}

static Dwarf *open_dwarf(const char *name)
{
	char path[64];
	Dwarf *dwarf;
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	dwarf = dwarf_begin(fd, DWARF_C_READ);
	assert_non_null(dwarf);
	return dwarf; /* the descriptor stays open until the end of the test */
}

static int open_table(const struct line_sections *sections, Dwarf_Die *unit, struct line_table **ret)
{
	const char *compiled_in = NULL;
	Dwarf_Attribute attribute;
	Dwarf_Word offset;

	if (dwarf_attr(unit, DW_AT_comp_dir, &attribute))
		compiled_in = dwarf_formstring(&attribute);
	assert_non_null(dwarf_attr(unit, DW_AT_stmt_list, &attribute));
	assert_int_equal(dwarf_formudata(&attribute, &offset), 0);
	return line_table_new(sections, offset, compiled_in, ret);
}

/* Ours is whole where libdw's is relative. */
static void compare_files(const char *theirs, const char *ours)
{
	size_t n_theirs = strlen(theirs), n_ours;

	assert_non_null(ours);
	n_ours = strlen(ours);
	if (n_ours < n_theirs || strcmp(ours + n_ours - n_theirs, theirs) != 0 ||
	    (theirs[0] == '/' && n_ours != n_theirs))
		fail_msg("%s, not %s", ours, theirs);
}

/* Returns how many lines are known between two addresses. */
static unsigned compare_rows(Dwarf_Die *unit, struct line_table *table, Dwarf_Addr start, Dwarf_Addr end)
{
	unsigned n = 0;

	for (Dwarf_Addr at = start; at < end; at++) {
		Dwarf_Line *line = dwarf_getsrc_die(unit, at);
		const char *name;
		uint64_t file;
		int ours, theirs;

		assert_int_equal(line_table_find(table, at, &file, &ours), line != NULL);
		if (!line)
			continue;
		assert_int_equal(dwarf_lineno(line, &theirs), 0);
		assert_int_equal(ours, theirs);
		assert_int_equal(line_table_file(table, file, &name), 0);
		compare_files(dwarf_linesrc(line, NULL, NULL), name);
		n++;
	}
	return n;
}

static unsigned compare_unit(const struct line_sections *sections, Dwarf_Die *unit)
{
	CLEANUP(line_table_freep) struct line_table *table = NULL;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	unsigned n = 0;
	uint64_t file;
	int line;

	assert_int_equal(open_table(sections, unit, &table), 0);
	assert_false(line_table_find(table, 1, &file, &line));
	assert_false(line_table_find(table, UINT64_MAX, &file, &line));
	while ((offset = dwarf_ranges(unit, offset, &base, &start, &end)) > 0)
		n += compare_rows(unit, table, start, MIN(end, start + 50000));
	return n;
}

static void compare_file(const char *name)
{
	Dwarf *dwarf = open_dwarf(name);
	struct line_sections sections;
	Dwarf_CU *unit = NULL;
	unsigned n = 0;
	Dwarf_Die die;

	assert_int_equal(line_sections_of(dwarf, &sections), 0);
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
		n += compare_unit(&sections, &die);
	if (n < 50)
		fail_msg("%s: only %u lines", name, n);
	dwarf_end(dwarf);
}

static void all_versions_are_read(void **state)
{
	static const char *const names[] = {
		"v2", "v3", "v4", "v5", "sections2", "sections3", "sections4", "sections5"
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		compare_file(names[i]);
}

static void long_ones_are_read(void **state)
{
	(void)state;
	compare_file("many4");
	compare_file("many5");
}

static size_t memory_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* All rows of a unit, as libdw keeps them, are 24 MB here. */
static void long_ones_take_little_memory(void **state)
{
	enum { ENOUGH_BYTES = 4 << 20 };
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbols[SYMBOL_MAX_INLINED];
	char path[64];
	Dwarf_Addr base, start, end;
	Dwarf *dwarf = open_dwarf("many5");
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	size_t before;

	(void)state;
	assert_int_equal(dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL), 0);
	assert_true(dwarf_ranges(&die, 0, &base, &start, &end) > 0);
	before = memory_in_use();
	snprintf(path, sizeof path, "%s/many5", folder);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_true(symbol_lookup(module, start + (end - start) / 2, symbols, N_ELEMENTS(symbols)) >= 1);
	assert_non_null(symbols[0].file);
	assert_in_range(symbols[0].line, 3, 4);
	assert_true(memory_in_use() - before < ENOUGH_BYTES);
	dwarf_end(dwarf);
}

/* Cut off anywhere, or with one byte changed: refused or read, never beyond the section. */
static void damaged_ones_stay_inside(void **state)
{
	Dwarf *dwarf = open_dwarf("v5");
	struct line_sections sections, damaged;
	unsigned n_refused = 0;

	(void)state;
	assert_int_equal(line_sections_of(dwarf, &sections), 0);
	for (size_t i = 0; i < sections.lines.n_bytes; i++) {
		for (int cut = 0; cut < 2; cut++) {
			CLEANUP(line_table_freep) struct line_table *table = NULL;
			CLEANUP(freep) uint8_t *copy = malloc(sections.lines.n_bytes);
			const char *name;
			uint64_t file;
			int line, r;

			assert_non_null(copy);
			memcpy(copy, sections.lines.bytes, sections.lines.n_bytes);
			copy[i] ^= 0x55;
			damaged = sections;
			damaged.lines = (struct line_bytes){ copy, cut ? i : sections.lines.n_bytes };
			r = line_table_new(&damaged, 0, "/built", &table);
			assert_true(r == 0 || r == -EBADMSG || r == -ENOTSUP);
			n_refused += r < 0;
			for (uint64_t at = 0x1000; r == 0 && at < 0x1200; at += 7)
				if (line_table_find(table, at, &file, &line))
					assert_int_equal(line_table_file(table, file, &name), 0);
		}
	}
	/* The section's length is known at the start. */
	assert_true(n_refused >= sections.lines.n_bytes);
	dwarf_end(dwarf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_versions_are_read),
		cmocka_unit_test(long_ones_are_read),
		cmocka_unit_test(long_ones_take_little_memory),
		cmocka_unit_test(damaged_ones_stay_inside),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
