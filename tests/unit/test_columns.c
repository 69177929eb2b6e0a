/* SPDX-License-Identifier: MIT */
/* test_columns.c - aligned cells, cut texts and styles of tables for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <stdlib.h>

#include "base/util.h"
#include "src/columns/columns.h"

struct sheet {
	char *text;
	size_t n_bytes;
	FILE *out;
};

static FILE *open_sheet(struct sheet *sheet)
{
	sheet->out = open_memstream(&sheet->text, &sheet->n_bytes);
	assert_non_null(sheet->out);
	return sheet->out;
}

static void assert_sheet(struct sheet *sheet, const char *expected)
{
	assert_int_equal(fclose(sheet->out), 0);
	assert_string_equal(sheet->text, expected);
	free(sheet->text);
}

static const struct column list[] = { { "N", 4, 0, false }, { "NAME", 6, 2, true }, { "REST", 0, 1, true } };

static void test_alignment(void **state)
{
	struct sheet sheet;
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = open_sheet(&sheet) };

	(void)state;
	columns_put_head(&columns);
	columns_printf(&columns, "%d", 12);
	columns_put(&columns, "ab");
	columns_put(&columns, "c d");
	columns_end(&columns);
	columns_put(&columns, "12345");
	columns_put(&columns, "longer than it");
	assert_int_equal(columns.used, 5 + 2 + 14);
	columns_end(&columns);
	assert_sheet(&sheet, "   N  NAME   REST\n"
			     "  12  ab     c d\n"
			     "12345  longer than it\n");
}

/* A wide character takes two columns, and a short line ends without blanks. */
static void test_ends_and_wide_characters(void **state)
{
	struct sheet sheet;
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = open_sheet(&sheet) };

	(void)state;
	columns_put(&columns, "1");
	columns_put(&columns, "ab");
	columns_end(&columns);
	columns_put(&columns, "一");
	columns_start_last(&columns);
	fputs("x", columns.out);
	columns_end(&columns);
	assert_sheet(&sheet, "   1  ab\n"
			     "  一         x\n");
}

/* The caller's cells get the blanks of any other cell, and none at the end of a line. */
static void test_cells_of_the_caller(void **state)
{
	struct sheet sheet;
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = open_sheet(&sheet) };

	(void)state;
	columns_put(&columns, "1");
	columns_start(&columns);
	fputs("ab", columns.out);
	columns_wrote(&columns, 2);
	assert_int_equal(columns.used, 4 + 2 + 2);
	columns_start(&columns);
	fputs("x", columns.out);
	columns_end(&columns);
	columns_put(&columns, "1");
	columns_start(&columns);
	fputs("longer", columns.out);
	columns_wrote(&columns, 6);
	columns_end(&columns);
	assert_sheet(&sheet, "   1  ab     x\n"
			     "   1  longer\n");
}

static void test_labels(void **state)
{
	struct sheet sheet;
	FILE *out = open_sheet(&sheet);

	(void)state;
	label_put(out, 6, "name");
	label_put(out, 2, "一");
	label_put(out, 2, "long\033");
	assert_sheet(&sheet, "  name     一   long  ");
}

static void test_styles_and_controls(void **state)
{
	struct sheet sheet;
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = open_sheet(&sheet), .colour = true };

	(void)state;
	columns_put_styled(&columns, STYLE_BAD, "7");
	columns_put_styled(&columns, STYLE_PLAIN, "\033[2J");
	columns_end(&columns);
	columns.colour = false;
	columns_put_styled(&columns, STYLE_BAD, "7");
	columns_end(&columns);
	assert_sheet(&sheet, "\033[31m   7\033[0m   [2J\n"
			     "   7\n");
}

static void test_cut(void **state)
{
	struct sheet sheet;
	FILE *out = open_sheet(&sheet);

	(void)state;
	assert_int_equal(cell_put(out, "abcdefgh", 5, CELL_CUT_END), 5);
	fputc('|', out);
	assert_int_equal(cell_put(out, "a一二三", 5, CELL_CUT_END), 4);
	fputc('|', out);
	assert_int_equal(cell_put_start(out, "abcdefgh", 3), 3);
	fputc('|', out);
	assert_int_equal(cell_put_start(out, "一二", 3), 2);
	fputc('|', out);
	assert_int_equal(cell_put_path(out, "/usr/lib/torch/linear.py:114", 20), 15);
	fputc('|', out);
	assert_int_equal(cell_put_path(out, "/usr/lib", 20), 8);
	assert_sheet(&sheet, "abcd…|a一…|abc|一|…/linear.py:114|/usr/lib");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alignment),           cmocka_unit_test(test_ends_and_wide_characters),
		cmocka_unit_test(test_cells_of_the_caller), cmocka_unit_test(test_labels),
		cmocka_unit_test(test_styles_and_controls), cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
