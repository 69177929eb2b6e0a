/* SPDX-License-Identifier: MIT */
/* Test stored memory values of a process, from arbitrary text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/cli/memory_history.h"

static void lines_are_values(void **state)
{
	static const char text[] = "time_ns 12\nrss_bytes 4096\nx\nbad name 1\n 5\nUPPER 1\nswap -7\nhalf 1x\n"
				   "huge 99999999999999999999\nlast 3";
	struct memory_values values = { 0 };

	(void)state;
	memory_values_parse(&values, text, sizeof text - 1);
	assert_int_equal(values.n, 3);
	assert_int_equal(values.time_ns, 12);
	assert_int_equal(*memory_values_find(&values, "rss_bytes"), 4096);
	assert_int_equal(*memory_values_find(&values, "swap"), -7);
	assert_int_equal(*memory_values_find(&values, "last"), 3);
	assert_null(memory_values_find(&values, "time_ns"));
}

static void too_many_are_left_out(void **state)
{
	struct memory_values values = { 0 };
	char text[64];

	(void)state;
	for (int i = 0; i < 2 * MEMORY_MAX_VALUES; i++)
		memory_values_parse(&values, text, (size_t)snprintf(text, sizeof text, "v%d %d\n", i, i));
	assert_int_equal(values.n, MEMORY_MAX_VALUES);
	memset(text, 'x', sizeof text);
	memory_values_parse(&values, text, sizeof text);
	assert_int_equal(values.n, MEMORY_MAX_VALUES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_values),
		cmocka_unit_test(too_many_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
