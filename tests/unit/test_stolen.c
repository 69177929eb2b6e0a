/* SPDX-License-Identifier: MIT */
/* test_stolen.c - the share of time that a hypervisor takes from all programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/capture/stolen.h"

static void test_the_text(void **state)
{
	uint64_t busy, stolen;

	(void)state;
	assert_int_equal(stolen_parse("cpu  10 20 30 4000 5000 6 7 8 900 900\ncpu0 1 2", &busy, &stolen), 0);
	assert_int_equal(busy, 10 + 20 + 30 + 6 + 7 + 8);
	assert_int_equal(stolen, 8);
	assert_true(stolen_parse("cpu  10 20 30 4000 5000", &busy, &stolen) < 0);
	assert_true(stolen_parse("", &busy, &stolen) < 0);
}

static void test_the_share(void **state)
{
	struct stolen none = { 0 }, quarter = { .busy_so_far = 100, .stolen_so_far = 25 },
		      all = { .busy_so_far = 5, .stolen_so_far = 5 };

	(void)state;
	assert_int_equal(stolen_leave(&none, 1000), 1000);
	assert_int_equal(stolen_leave(&quarter, 1000), 750);
	assert_int_equal(stolen_leave(&all, 1000), 1000); /* nothing ran: no share */
}

static void test_this_machine(void **state)
{
	struct stolen stolen;

	(void)state;
	stolen_begin(&stolen);
	assert_true(stolen.busy > 0 && stolen.busy >= stolen.stolen);
	stolen_read(&stolen);
	assert_true(stolen.busy_so_far >= stolen.stolen_so_far);
	assert_true(stolen_leave(&stolen, 1000) <= 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_text),
		cmocka_unit_test(test_the_share),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
