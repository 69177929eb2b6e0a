/* SPDX-License-Identifier: MIT */
/* test_sample_periods.c - each sample represents the period that the one before it has set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/capture/sample_periods.h"

static uint64_t take(struct sample_periods *paces, pid_t tid, unsigned cpu, uint64_t told)
{
	uint64_t weight = 0;

	assert_int_equal(sample_periods_take(paces, tid, cpu, told, &weight), 0);
	return weight;
}

static void test_one_thread(void **state)
{
	struct sample_periods paces = { 0 };

	(void)state;
	assert_int_equal(take(&paces, 7, 0, 1), 1);
	assert_int_equal(take(&paces, 7, 0, 1263), 1);
	assert_int_equal(take(&paces, 7, 0, 50), 1263);
	assert_int_equal(take(&paces, 7, 0, 60), 50);
	sample_periods_done(&paces);
}

/* Each thread has a counter of its own on each processor. */
static void test_many(void **state)
{
	struct sample_periods paces = { 0 };

	(void)state;
	for (uint64_t round = 1; round <= 3; round++)
		for (pid_t tid = 1; tid < 1000; tid++)
			for (unsigned cpu = 0; cpu < 3; cpu++)
				assert_int_equal(take(&paces, tid, cpu, (uint64_t)tid * 10 + cpu + round),
						 (uint64_t)tid * 10 + cpu + (round > 1 ? round - 1 : 1));
	sample_periods_done(&paces);
}

static void test_a_number_comes_again(void **state)
{
	struct sample_periods paces = { 0 };

	(void)state;
	sample_periods_forget(&paces, 7, 0); /* nothing is known of it */
	take(&paces, 7, 0, 1000);
	take(&paces, 7, 1, 2000);
	sample_periods_forget(&paces, 7, 0);
	assert_int_equal(take(&paces, 7, 0, 1), 1);
	assert_int_equal(take(&paces, 7, 1, 1), 2000);
	sample_periods_done(&paces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_a_number_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
