/* SPDX-License-Identifier: MIT */
/* The offset of two clocks, also if the thread loses its processor between two reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock_offset.h"

#define SECOND INT64_C(1000000000)

enum { READ_NS = 100 }; /* one read of a clock */

/* The monotonic time, and how long the thread does not run before each of the first reads. */
static struct {
	int64_t now_ns, pauses_ns[4];
	unsigned n_reads;
} fake;

static const int64_t offset_ns = 1700000000 * SECOND;

static int read_clock(clockid_t clock, struct timespec *ret)
{
	int64_t time_ns;

	if (fake.n_reads < sizeof fake.pauses_ns / sizeof fake.pauses_ns[0])
		fake.now_ns += fake.pauses_ns[fake.n_reads];
	fake.n_reads++;
	fake.now_ns += READ_NS;
	time_ns = fake.now_ns + (clock == CLOCK_REALTIME ? offset_ns : 0);
	*ret = (struct timespec){ .tv_sec = time_ns / SECOND, .tv_nsec = time_ns % SECOND };
	return 0;
}

static void read_at_once(void **state)
{
	(void)state;
	fake.n_reads = 0;
	assert_int_equal(clock_offset_ns(read_clock), offset_ns);
	assert_int_equal(fake.n_reads, 3);
}

static void interrupted(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3; i++) {
		fake.n_reads = 0;
		for (unsigned k = 0; k < 4; k++)
			fake.pauses_ns[k] = k == i ? 2 * SECOND : 0;
		assert_int_equal(clock_offset_ns(read_clock), offset_ns);
		assert_int_equal(fake.n_reads, 6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_at_once),
		cmocka_unit_test(interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
