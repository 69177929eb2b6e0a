/* SPDX-License-Identifier: MIT */
/* test_go_table.c - functions, lines and inlined calls out of Go's function tables of each layout.
 *
 * The tables are those of fuzz/make_go_table_corpus.py. A real program of the installed Go: tests/e2e/test_symbols.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/go_table.h"

enum { CODE = 0x401000, MAX_BYTES = 1 << 16 };

struct opened {
	char *bytes;
	struct elf_file *elf;
	struct go_table *table;
};

static int open_table(const char *name, struct opened *ret)
{
	const char *root = getenv("PROBING_SOURCE_ROOT");
	char path[512];
	size_t n_bytes;

	*ret = (struct opened){ 0 };
	assert_non_null(root);
	snprintf(path, sizeof path, "%s/fuzz/corpus/go_table/%s", root, name);
	assert_return_code(read_file(path, MAX_BYTES, &ret->bytes, &n_bytes), 0);
	assert_return_code(elf_file_open_memory(ret->bytes, n_bytes, &ret->elf), 0);
	return go_table_new(ret->elf, &ret->table);
}

static void close_table(struct opened *opened)
{
	go_table_free(opened->table);
	elf_file_free(opened->elf);
	free(opened->bytes);
}

static void assert_frame(const struct debug_frame *frame, const char *name, const char *file, int line)
{
	assert_string_equal(frame->name, name);
	assert_int_equal(frame->line, line);
	if (file)
		assert_string_equal(frame->file, file);
	else
		assert_null(frame->file);
}

static void check_layout(const char *name)
{
	struct debug_frame frames[4];
	struct opened opened;

	assert_return_code(open_table(name, &opened), 0);
	assert_int_equal(go_table_find(opened.table, CODE - 1, frames, 4), 0);
	assert_int_equal(go_table_find(opened.table, CODE + 3, frames, 4), 1);
	assert_frame(&frames[0], "main.outer", "/src/outer.go", 10);
	assert_int_equal(frames[0].start, CODE);
	assert_int_equal(go_table_find(opened.table, CODE + 20, frames, 4), 2);
	assert_frame(&frames[0], "main.inner", "/src/inner.go", 77);
	assert_int_equal(frames[0].start, 0);
	assert_frame(&frames[1], "main.outer", "/src/outer.go", 10); /* the call, at its own line */
	assert_int_equal(go_table_find(opened.table, CODE + 63, frames, 4), 1);
	assert_frame(&frames[0], "main.outer", "/src/outer.go", 12);
	assert_int_equal(go_table_find(opened.table, CODE + 64, frames, 4), 1);
	assert_frame(&frames[0], "main.other", "/src/outer.go", 30);
	assert_int_equal(go_table_find(opened.table, CODE + 96, frames, 4), 0);
	close_table(&opened);
}

static void test_layouts(void **state)
{
	(void)state;
	check_layout("go1_16.elf");
	check_layout("go1_18.elf");
	check_layout("go1_20.elf");
}

/* Which function was inlined is unknown then: a line of it is not one of the outer function. */
static void test_without_module_data(void **state)
{
	struct debug_frame frames[4];
	struct opened opened;

	(void)state;
	assert_return_code(open_table("no_module_data.elf", &opened), 0);
	assert_int_equal(go_table_find(opened.table, CODE + 20, frames, 4), 1);
	assert_frame(&frames[0], "main.outer", NULL, 0);
	close_table(&opened);
}

static void test_an_inlined_call_that_leads_to_itself(void **state)
{
	struct debug_frame frames[4];
	struct opened opened;

	(void)state;
	assert_return_code(open_table("circle.elf", &opened), 0);
	assert_int_equal(go_table_find(opened.table, CODE + 20, frames, 4), 4);
	assert_string_equal(frames[3].name, "main.outer");
	close_table(&opened);
}

static void test_more_functions_than_bytes(void **state)
{
	struct opened opened;

	(void)state;
	assert_int_equal(open_table("many.elf", &opened), -ENOENT);
	close_table(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_without_module_data),
		cmocka_unit_test(test_an_inlined_call_that_leads_to_itself),
		cmocka_unit_test(test_more_functions_than_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
