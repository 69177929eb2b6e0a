/* SPDX-License-Identifier: MIT */
/* Test the choice of the prefetch method: the faster one, despite other load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/native/prefetch.h"

enum { FRAMES = 20, LONG_ENOUGH = 10000 };

/* Unwinding times of both variants, in nanoseconds; every Nth is interrupted for a millisecond. */
static void walk(struct prefetch *ahead, uint64_t guess_ns, uint64_t in_order_ns, unsigned interrupted)
{
	for (unsigned i = 1; i <= LONG_ENOUGH; i++) {
		uint64_t ns = ahead->way == PREFETCH_BY_GUESS ? guess_ns : in_order_ns;

		prefetch_note(ahead, interrupted && i % interrupted == 0 ? 1000000 : ns, FRAMES);
	}
	/* Not in a trial: those are few. */
	while (ahead->trial.n_samples > 100)
		prefetch_note(ahead, ahead->way == PREFETCH_BY_GUESS ? guess_ns : in_order_ns, FRAMES);
}

static void test_the_faster_way(void **state)
{
	struct prefetch ahead = { 0 };

	(void)state;
	walk(&ahead, 300, 500, 0);
	assert_int_equal(ahead.way, PREFETCH_BY_GUESS);
	walk(&ahead, 500, 300, 0);
	assert_int_equal(ahead.way, PREFETCH_IN_ORDER);
	walk(&ahead, 300, 500, 0);
	assert_int_equal(ahead.way, PREFETCH_BY_GUESS);
}

static void test_interruptions_do_not_matter(void **state)
{
	struct prefetch ahead = { 0 };

	(void)state;
	walk(&ahead, 300, 500, 37);
	assert_int_equal(ahead.way, PREFETCH_BY_GUESS);
	walk(&ahead, 500, 300, 37);
	assert_int_equal(ahead.way, PREFETCH_IN_ORDER);
}

/* Most walks are not tried upon: both ways are taken in few of them. */
static void test_trials_are_rare(void **state)
{
	unsigned n_guessed = 0;
	struct prefetch ahead = { 0 };

	(void)state;
	walk(&ahead, 500, 300, 0);
	for (unsigned i = 0; i < LONG_ENOUGH; i++) {
		n_guessed += ahead.way == PREFETCH_BY_GUESS;
		prefetch_note(&ahead, ahead.way == PREFETCH_BY_GUESS ? 500 : 300, FRAMES);
	}
	assert_in_range(n_guessed, 1, LONG_ENOUGH / 50);
}

static struct sample sample_of(pid_t tid, const uint8_t *bytes, size_t n_bytes, uint64_t sp)
{
	struct sample sample = { .tid = tid, .stack = bytes, .stack_bytes = n_bytes, .has_user = true };

	sample.regs.value[MACHINE_REG_SP] = sp;
	return sample;
}

/* No prefetch beyond the thread's start once it is known, for that thread only. */
static void test_not_behind_the_start(void **state)
{
	enum { DEPTH = 1000, SP = 0x7000 };
	static uint8_t bytes[4096];
	struct pc_table pcs = { 0 };
	struct prefetch ahead = { .way = PREFETCH_IN_ORDER };
	struct sample sample = sample_of(1, bytes, sizeof bytes, SP), other = sample_of(2, bytes, sizeof bytes, SP);
	struct native_frame frame = { .pc = 1, .sp = SP, .cfa = SP + DEPTH };
	struct native_stack stack = { .frames = &frame, .n_frames = 1, .sample = &sample, .end = STACK_COMPLETE };

	(void)state;
	prefetch_expect(&ahead, &pcs, &sample);
	assert_int_equal(ahead.end - ahead.next, sizeof bytes);
	prefetch_done(&ahead, &stack);
	assert_true(ahead.next >= ahead.end);
	prefetch_expect(&ahead, &pcs, &sample);
	assert_int_equal(ahead.end - ahead.next, DEPTH);
	prefetch_expect(&ahead, &pcs, &other);
	assert_int_equal(ahead.end - ahead.next, sizeof bytes);

	stack.end = STACK_TRUNCATED;
	prefetch_done(&ahead, &stack);
	prefetch_expect(&ahead, &pcs, &sample);
	assert_int_equal(ahead.end - ahead.next, sizeof bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_faster_way),
		cmocka_unit_test(test_interruptions_do_not_matter),
		cmocka_unit_test(test_trials_are_rare),
		cmocka_unit_test(test_not_behind_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
