/* SPDX-License-Identifier: MIT */
/* test_poll_pace.c - when to look next, by a clock of the test's own. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/capture/poll_pace.h"

enum { MS = 1000000 };

/* Looks that begin when they are due and take so long each. */
static void look(struct poll_pace *pace, unsigned n, uint64_t took_ns)
{
	while (n-- > 0)
		poll_pace_looked(pace, pace->next_ns, pace->next_ns + took_ns);
}

static struct poll_pace pace_at(double hz)
{
	struct poll_pace pace;

	assert_int_equal(poll_pace_init(&pace, hz, 1000 * MS), 0);
	return pace;
}

static void rates_have_bounds(void **state)
{
	struct poll_pace pace;

	(void)state;
	assert_int_equal(poll_pace_init(&pace, 0, 0), -EINVAL);
	assert_int_equal(poll_pace_init(&pace, -1, 0), -EINVAL);
	assert_int_equal(poll_pace_init(&pace, 1e9, 0), -EINVAL);
	assert_int_equal(poll_pace_init(&pace, NAN, 0), -EINVAL);
	assert_int_equal(poll_pace_init(&pace, 20000, 0), 0);
	assert_int_equal(pace.period_ns, 50000);
}

static void short_looks_come_at_multiples_of_the_period(void **state)
{
	struct poll_pace pace = pace_at(100);

	(void)state;
	assert_int_equal(pace.next_ns, 1010 * MS);
	look(&pace, 50, MS);
	assert_int_equal(pace.next_ns, 1510 * MS);
	assert_int_equal(pace.n_looks, 50);
	assert_int_equal(pace.n_lost, 0);
	assert_int_equal(pace.longest_ns, 0);
}

static void a_late_look_takes_the_place_of_others(void **state)
{
	struct poll_pace pace = pace_at(100);

	(void)state;
	look(&pace, 1, MS); /* at 1010 ms, the next is due at 1020 */
	poll_pace_looked(&pace, 1055 * MS, 1056 * MS);
	assert_in_range(pace.n_lost, 3, 4); /* of those due at 1020, 1030, 1040 and 1050 it is one */
	assert_int_equal(pace.next_ns, 1060 * MS);
	look(&pace, 1, MS);
	assert_int_equal(pace.next_ns, 1070 * MS);
}

static void long_looks_lengthen_the_period(void **state)
{
	struct poll_pace pace = pace_at(1000);

	(void)state;
	look(&pace, 100, 3 * MS);
	/* No more than half of the time goes into looks, and no less than needed. */
	assert_in_range(pace.period_ns, 6 * MS, 24 * MS);
	assert_in_range(pace.longest_ns, pace.period_ns, 24 * MS);
	assert_true(pace.n_lost > 400);
	look(&pace, 100, MS / 100);
	assert_int_equal(pace.period_ns, MS);
	assert_in_range(pace.longest_ns, 6 * MS, 24 * MS);
}

static void a_single_long_look_does_not(void **state)
{
	struct poll_pace pace = pace_at(100);

	(void)state;
	look(&pace, 10, MS);
	look(&pace, 1, 20 * MS);
	assert_int_equal(pace.period_ns, 10 * MS);
	assert_int_equal(pace.longest_ns, 0);
}

static void the_next_is_never_in_the_past(void **state)
{
	struct poll_pace pace = pace_at(999);
	uint64_t now = 1000 * MS, seed = 1;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t began;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		began = now + (seed >> 40);
		now = began + (seed >> 38 & 0xffffff);
		poll_pace_looked(&pace, began, now);
		assert_true(pace.next_ns > now);
		assert_true(pace.next_ns <= now + pace.period_ns);
		assert_true(pace.period_ns >= pace.wanted_ns);
	}
}

static void nothing_falls_out_in_a_pause(void **state)
{
	struct poll_pace pace = pace_at(100);
	uint64_t later_ns;

	(void)state;
	look(&pace, 5, MS);
	later_ns = pace.next_ns + 60000ull * MS;
	poll_pace_resume(&pace, later_ns);
	assert_int_equal(pace.next_ns, later_ns);
	look(&pace, 5, MS);
	assert_int_equal(pace.n_looks, 10);
	assert_int_equal(pace.n_lost, 0);
	assert_int_equal(pace.next_ns, later_ns + 50 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_falls_out_in_a_pause),
		cmocka_unit_test(rates_have_bounds),
		cmocka_unit_test(short_looks_come_at_multiples_of_the_period),
		cmocka_unit_test(a_late_look_takes_the_place_of_others),
		cmocka_unit_test(long_looks_lengthen_the_period),
		cmocka_unit_test(a_single_long_look_does_not),
		cmocka_unit_test(the_next_is_never_in_the_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
