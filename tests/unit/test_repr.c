/* SPDX-License-Identifier: MIT */
/* test_repr.c - values as text, as far as no interpreter is needed for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "unwind/cpython/repr.h"

static void numbers_are_the_shortest_that_read_the_same(void **state)
{
	static const struct {
		double value;
		const char *text;
	} known[] = {
		{ 0, "0.0" },
		{ -0.0, "-0.0" },
		{ 1, "1.0" },
		{ 0.1, "0.1" },
		{ -2.5, "-2.5" },
		{ 100, "100.0" },
		{ 123456.789, "123456.789" },
		{ 1e15, "1000000000000000.0" },
		{ 1e16, "1e+16" },
		{ 1.5e16, "1.5e+16" },
		{ 9999999999999998, "9999999999999998.0" },
		{ 0.0001, "0.0001" },
		{ 0.00012, "0.00012" },
		{ 0.00001, "1e-05" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 1e300 * 1e10, "inf" },
		{ -1e300 * 1e10, "-inf" },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(known); i++) {
		struct repr repr = { 0 };

		repr_put_double(&repr, known[i].value, true);
		assert_string_equal(repr.text, known[i].text);
		assert_true(strtod(repr.text, NULL) == known[i].value);
	}
}

static void without_a_point_where_none_is_wanted(void **state)
{
	struct repr repr = { 0 };

	(void)state;
	repr_put_double(&repr, 12, false);
	repr_put(&repr, " ");
	repr_put_double(&repr, 1.25, false);
	assert_string_equal(repr.text, "12 1.25");
}

/* Terminal controls and hidden characters print as their number. */
static void text_is_harmless(void **state)
{
	static const uint32_t characters[] = {
		'a', '\n', 0x1b, 0x7f, 0x9b, 0xe9, 0x202e, 0x540d, 0xd800, 0x1f600, 0xe0001 + 0x200000, '\'', '"', '\\'
	};
	struct repr text = { 0 }, bytes = { 0 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(characters); i++)
		repr_put_escaped(&text, characters[i], '\'', false);
	assert_string_equal(text.text,
			    "a\\n\\x1b\\x7f\\x9b\xc3\xa9\\u202e\xe5\x90\x8d\\ud800\xf0\x9f\x98\x80\\U002e0001"
			    "\\'\"\\\\");
	for (uint32_t c = 0xfe; c <= 0xff; c++)
		repr_put_escaped(&bytes, c, '\'', true);
	assert_string_equal(bytes.text, "\\xfe\\xff");
}

/* A type's name is any bytes. */
static void names_become_utf8(void **state)
{
	struct repr repr = { 0 };

	(void)state;
	repr_put(&repr, "Gr\xc3\xb6\xc3\x9f"
			"e \xff\xc3 \x1b[m");
	assert_string_equal(repr.text, "Gr\xc3\xb6\xc3\x9f"
				       "e \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd[m");
}

static void what_is_too_long_is_cut_between_characters(void **state)
{
	struct repr repr = { 0 };

	(void)state;
	repr_put(&repr, "x");
	for (unsigned i = 0; i < REPR_MAX_BYTES; i++)
		repr_put_character(&repr, 0x540d);
	assert_true(repr.is_full);
	assert_true(strlen(repr.text) <= REPR_MAX_BYTES + strlen("..."));
	assert_int_equal((strlen(repr.text) - 1 - strlen("...")) % 3, 0);
	assert_string_equal(repr.text + strlen(repr.text) - 6, "\xe5\x90\x8d...");
	repr_put(&repr, "more");
	assert_string_equal(repr.text + strlen(repr.text) - 6, "\xe5\x90\x8d...");
}

static void shapes_are_tuples(void **state)
{
	static const int64_t shape[] = { 3, 4, 5 };
	struct repr repr = { 0 };

	(void)state;
	for (unsigned n = 0; n <= N_ELEMENTS(shape); n++)
		repr_put_shape(&repr, shape, n);
	assert_string_equal(repr.text, "()(3,)(3, 4)(3, 4, 5)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_the_shortest_that_read_the_same),
		cmocka_unit_test(without_a_point_where_none_is_wanted),
		cmocka_unit_test(text_is_harmless),
		cmocka_unit_test(names_become_utf8),
		cmocka_unit_test(what_is_too_long_is_cut_between_characters),
		cmocka_unit_test(shapes_are_tuples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
