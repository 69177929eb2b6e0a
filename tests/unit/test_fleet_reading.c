/* SPDX-License-Identifier: MIT */
/* What reads a fleet, without a server: conditions as SQL, rows of an answer. tests/e2e/test_fleet_reading.py has servers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/fleet/read.h"
#include "src/fleet/row_cursor.h"

static void expect_where(const char *text, const char *sql)
{
	CLEANUP(freep) char *found = NULL;
	char why[256] = "";

	assert_int_equal(fleet_parse_where(text, &found, why, sizeof why), 0);
	assert_string_equal(found, sql);
}

static void conditions_become_numbers_and_our_words(void **state)
{
	(void)state;
	expect_where("cpu = 3", "cpu = 3");
	expect_where(" PID>=10 and weight <> -1 ", "pid >= 10 AND weight <> -1");
	expect_where("gil = 1", "(bitAnd(bitShiftRight(flags, 6), 3) = 2 AND bitAnd(bitShiftRight(flags, 6), 3) > 0)");
	expect_where("gc != 1", "(bitAnd(bitShiftRight(flags, 8), 3) != 2 AND bitAnd(bitShiftRight(flags, 8), 3) > 0)");
	expect_where("verdict = 'verified'",
		     "(bitAnd(bitShiftRight(flags, 0), 7) = 1 AND bitAnd(bitShiftRight(flags, 0), 7) >= 0)");
}

static void other_conditions_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"1 = 1",
		"pid",
		"pid =",
		"pid = x",
		"pid = 1 OR 1 = 1",
		"pid = 1;",
		"pid = 1) OR (1",
		"pid = 1 AND",
		"pid = 99999999999999999999",
		"gil = 2",
		"gil < 1",
		"verdict = exact",
		"verdict = 'exact",
		"verdict = 'exact'' OR 1",
		"verdict = 'unheard of'",
		"state > 'io'",
		"job = 'x'",
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		char *found = NULL, why[256] = "";

		assert_int_equal(fleet_parse_where(texts[i], &found, why, sizeof why), -EINVAL);
		assert_null(found);
		assert_true(why[0] != '\0');
	}
}

static void ranks_are_ranges(void **state)
{
	static const char *const wrong[] = { "", "x", "1,", "-1", "3-1", "1-", "99999999999", "1;2", "1 OR 1" };
	CLEANUP(freep) char *found = NULL;

	(void)state;
	assert_int_equal(fleet_parse_ranks("0,8-15", &found), 0);
	assert_string_equal(found, "(rank BETWEEN 0 AND 0 OR rank BETWEEN 8 AND 15)");
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++) {
		char *none = NULL;

		assert_int_equal(fleet_parse_ranks(wrong[i], &none), -EINVAL);
		assert_null(none);
	}
}

/* Each cut of a row is noticed, and its values are 0 or "". */
static void cut_rows_are_damaged(void **state)
{
	static const uint8_t row[] = { 7, 0, 0, 0, 0, 0, 0, 0, 3, 'a', 0, 'c', 0xff, 0xff, 0xff, 0xff, 2, 5, 6 };

	(void)state;
	for (size_t n = 0; n <= sizeof row; n++) {
		struct row_cursor cursor = row_cursor_of(row, n);
		CLEANUP(freep) char *text = NULL;
		uint64_t number = row_cursor_number(&cursor, 8), sum = 0;
		int32_t rank;
		size_t count;

		assert_int_equal(row_cursor_text(&cursor, &text), 0);
		rank = row_cursor_int32(&cursor);
		count = row_cursor_count(&cursor);
		for (size_t i = 0; i < count; i++)
			sum += row_cursor_number(&cursor, 1);
		assert_int_equal(cursor.is_damaged, n < sizeof row);
		assert_false(row_cursor_more(&cursor));
		assert_int_equal(number, n >= 8 ? 7 : 0);
		assert_string_equal(text, n >= 12 ? "a?c" : "");
		assert_int_equal(rank, n >= 16 ? -1 : 0);
		assert_int_equal(sum, n == sizeof row ? 11 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_become_numbers_and_our_words),
		cmocka_unit_test(other_conditions_are_refused),
		cmocka_unit_test(ranks_are_ranges),
		cmocka_unit_test(cut_rows_are_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
