/* SPDX-License-Identifier: MIT */
/* test_run_times.c - the weight of samples whose timer was late, and of threads that ran for less than a period. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/run_times.h"

enum { PID = 7, TID = 9, MS = 1000000, PERIOD = 10 * MS, MANY = 1000 };

/* The kernel's account of the thread. */
static uint64_t accounted_ns;
static int account_error;

static int read_account(pid_t pid, pid_t tid, uint64_t *ret_ns)
{
	assert_int_equal(pid, PID);
	assert_int_equal(tid, TID);
	*ret_ns = accounted_ns;
	return account_error;
}

static struct run_times new_times(bool has_kernel)
{
	account_error = 0;
	accounted_ns = 0;
	return (struct run_times){ .account = read_account, .has_kernel = has_kernel };
}

static void note(struct run_times *times, enum capture_event_type type, uint64_t time_ns, bool is_out)
{
	struct capture_event event = { .type = type, .pid = PID, .tid = TID, .time_ns = time_ns };

	if (type == CAPTURE_SWITCH)
		event.change.is_out = is_out;
	assert_int_equal(run_times_note(times, &event), 0);
}

/* A thread that is new, and runs from then on. */
static void begin(struct run_times *times, uint64_t time_ns)
{
	note(times, CAPTURE_FORK, time_ns, false);
	note(times, CAPTURE_SWITCH, time_ns, false);
}

static uint64_t weigh(struct run_times *times, uint64_t time_ns)
{
	const struct sample sample = { .pid = PID, .tid = TID, .time_ns = time_ns, .weight = PERIOD };
	uint64_t weight = 0;

	assert_int_equal(run_times_weigh(times, &sample, &weight), 0);
	return weight;
}

/* Of the thread, which has ended at end_ns. */
static uint64_t unsampled_at(struct run_times *times, uint64_t end_ns, uint64_t *ret_at_ns)
{
	note(times, CAPTURE_EXIT, end_ns, false);
	return run_times_unsampled(times, TID, end_ns, ret_at_ns);
}

static uint64_t unsampled(const struct run_times *times)
{
	uint64_t at_ns;

	return run_times_unsampled(times, TID, 0, &at_ns);
}

static void test_a_timer_that_is_late(void **state)
{
	struct run_times times = new_times(true);

	(void)state;
	begin(&times, 1000 * MS);
	accounted_ns = MANY * (uint64_t)MS;
	assert_int_equal(weigh(&times, 1010 * MS), PERIOD);
	assert_int_equal(weigh(&times, 1053 * MS), 4 * PERIOD); /* three periods passed without a sample */
	assert_int_equal(weigh(&times, 1060 * MS), PERIOD);
	note(&times, CAPTURE_EXIT, 1065 * MS, false);
	assert_int_equal(unsampled(&times), 5 * MS);
	run_times_done(&times);
}

/* What ran on the processor instead was another machine: the kernel does not account that to the thread. */
static void test_a_hypervisor_that_takes_the_processor(void **state)
{
	struct run_times times = new_times(true);
	uint64_t sum = 0;

	(void)state;
	begin(&times, 1000 * MS);
	for (uint64_t i = 1; i <= MANY; i++) {
		accounted_ns = i * 7 * MS; /* of 20 ms each, 13 were stolen */
		sum += weigh(&times, (1000 + 20 * i) * MS);
	}
	assert_in_range(sum, accounted_ns, accounted_ns + 2 * PERIOD);
	note(&times, CAPTURE_EXIT, (1000 + 20 * MANY) * (uint64_t)MS, false);
	assert_int_equal(unsampled(&times), 0);
	run_times_done(&times);
}

/* Less than a period each time, so that no timer is late by one. */
static void test_a_hypervisor_that_takes_parts_of_periods(void **state)
{
	struct run_times times = new_times(true);
	uint64_t sum = 0;

	(void)state;
	begin(&times, 1000 * MS);
	for (uint64_t i = 1; i <= MANY; i++) {
		accounted_ns = i * 8 * MS;
		sum += weigh(&times, (1000 + 10 * i) * MS);
	}
	assert_in_range(sum, accounted_ns, accounted_ns + 14 * PERIOD); /* the account is read at one sample in 64 */
	run_times_done(&times);
}

static void test_an_account_that_cannot_be_read(void **state)
{
	struct run_times times = new_times(true);

	(void)state;
	account_error = -1;
	begin(&times, 1000 * MS);
	assert_int_equal(weigh(&times, 1040 * MS), 4 * PERIOD);
	run_times_done(&times);
}

/* The thread may have been in the kernel, which has no samples here. */
static void test_without_samples_of_the_kernel(void **state)
{
	struct run_times times = new_times(false);

	(void)state;
	begin(&times, 1000 * MS);
	accounted_ns = 40 * MS;
	assert_int_equal(weigh(&times, 1040 * MS), PERIOD);
	note(&times, CAPTURE_EXIT, 1045 * MS, false);
	assert_int_equal(unsampled(&times), 35 * MS);
	run_times_done(&times);
}

/* Whoever waits for the thread does something else at its end. */
static void test_when_unsampled_time_was_used(void **state)
{
	struct run_times times = new_times(false);
	uint64_t at_ns;

	(void)state;
	begin(&times, 1000 * MS);
	assert_int_equal(unsampled_at(&times, 1004 * MS, &at_ns), 4 * MS);
	assert_int_equal(at_ns, 1000 * MS);

	begin(&times, 2000 * (uint64_t)MS);
	accounted_ns = 40 * MS;
	weigh(&times, 2040 * (uint64_t)MS);
	assert_int_equal(unsampled_at(&times, 2045 * (uint64_t)MS, &at_ns), 35 * MS);
	assert_int_equal(at_ns, 2040 * (uint64_t)MS);

	begin(&times, 3000 * (uint64_t)MS);
	assert_int_equal(unsampled_at(&times, 9000 * (uint64_t)MS, &at_ns), 6000 * (uint64_t)MS);
	assert_int_equal(at_ns, 8000 * (uint64_t)MS);
	run_times_done(&times);
}

static void test_shorter_than_a_period(void **state)
{
	struct run_times times = new_times(true);

	(void)state;
	accounted_ns = 10 * MS;
	begin(&times, 1000 * MS);
	note(&times, CAPTURE_SWITCH, 1002 * MS, true);
	note(&times, CAPTURE_SWITCH, 1900 * MS, false);
	assert_int_equal(weigh(&times, 1901 * MS), 3 * MS);
	note(&times, CAPTURE_EXIT, 1903 * MS, false);
	assert_int_equal(unsampled(&times), 2 * MS);
	run_times_done(&times);
}

/* The thread used CPU time before: only what it uses from here on counts. */
static void test_one_that_ran_before(void **state)
{
	const uint64_t now_ns = monotonic_ns();
	struct run_times times = new_times(true);
	uint64_t sum = 0;

	(void)state;
	note(&times, CAPTURE_SWITCH, now_ns - 1000 * (uint64_t)MS, false);
	for (uint64_t i = 1; i <= 10; i++) {
		accounted_ns = 3600000 * (uint64_t)MS;
		sum += weigh(&times, now_ns - 1000 * (uint64_t)MS + i * PERIOD);
	}
	assert_int_equal(sum, 10 * PERIOD);
	run_times_done(&times);
}

/*
 * The first sample is read late, and nothing tells whether the thread ran since. It did not: later samples show that, before
 * the hypervisor takes the processor.
 */
static void test_a_first_sample_that_is_read_late(void **state)
{
	enum { LATE = 200 * MS, QUIET = 128 };
	const uint64_t now_ns = monotonic_ns(), before_ns = 3600000 * (uint64_t)MS;
	struct run_times times = new_times(true);
	uint64_t sum = 0, at_ns = now_ns - LATE, used_ns = PERIOD;

	(void)state;
	note(&times, CAPTURE_SWITCH, at_ns - PERIOD, false);
	accounted_ns = before_ns + used_ns;
	sum += weigh(&times, at_ns);
	note(&times, CAPTURE_SWITCH, at_ns, true);
	at_ns = now_ns + LATE;
	note(&times, CAPTURE_SWITCH, at_ns, false);
	for (unsigned i = 0; i < QUIET; i++) {
		at_ns += PERIOD;
		used_ns += PERIOD;
		accounted_ns = before_ns + used_ns;
		sum += weigh(&times, at_ns);
	}
	assert_int_equal(sum, used_ns);
	for (unsigned i = 0; i < MANY; i++) { /* of 20 ms each, 13 were stolen */
		at_ns += 20 * MS;
		used_ns += 7 * MS;
		accounted_ns = before_ns + used_ns;
		sum += weigh(&times, at_ns);
	}
	assert_in_range(sum, used_ns, used_ns + 2 * PERIOD);
	run_times_done(&times);
}

static void test_lost_records(void **state)
{
	struct run_times times = new_times(true);

	(void)state;
	begin(&times, 1000 * MS);
	note(&times, CAPTURE_LOST, 1001 * MS, false);
	assert_int_equal(weigh(&times, 5000 * (uint64_t)MS), PERIOD);
	note(&times, CAPTURE_EXIT, 5001 * (uint64_t)MS, false);
	assert_int_equal(unsampled(&times), 0);
	run_times_done(&times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_timer_that_is_late),
		cmocka_unit_test(test_a_hypervisor_that_takes_the_processor),
		cmocka_unit_test(test_a_hypervisor_that_takes_parts_of_periods),
		cmocka_unit_test(test_an_account_that_cannot_be_read),
		cmocka_unit_test(test_without_samples_of_the_kernel),
		cmocka_unit_test(test_when_unsampled_time_was_used),
		cmocka_unit_test(test_shorter_than_a_period),
		cmocka_unit_test(test_one_that_ran_before),
		cmocka_unit_test(test_a_first_sample_that_is_read_late),
		cmocka_unit_test(test_lost_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
