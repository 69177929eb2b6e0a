/* SPDX-License-Identifier: MIT */
/* test_callers.c - what is believed of a program that is looked at too late.
 *
 * The program is made here: two functions call a third by turns, for times that are known.
 * A sample is taken of the third, and looked at later by up to 95 us, as memory would be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/util.h"
#include "unwind/stitch/callers.h"

enum { MAX_LATE_NS = 95000, SAMPLES = 40000, SAMPLE_NS = 1000000, GAP_NS = 300 };

struct program {
	uint64_t random;
	uint64_t now_ns, end_ns; /* of this call */
	uint64_t call_ns;        /* how long calls are, about */
	unsigned n_others;       /* every Nth call has the other caller */
	unsigned caller;
};

struct result {
	unsigned looks, believed, wrong;
};

static uint64_t draw(struct program *program, uint64_t below)
{
	program->random = program->random * 6364136223846793005u + 1442695040888963407u;
	return (program->random >> 33) % below;
}

static void next_call(struct program *program)
{
	program->caller = draw(program, program->n_others) == 0;
	program->end_ns += GAP_NS + program->call_ns / 2 + draw(program, program->call_ns);
}

/* Who is the caller then; -1: between two calls. */
static int go_to(struct program *program, uint64_t time_ns)
{
	while (program->end_ns <= time_ns)
		next_call(program);
	program->now_ns = time_ns;
	return program->end_ns - time_ns <= GAP_NS ? -1 : (int)program->caller;
}

static struct result simulate(uint64_t call_ns, unsigned n_others)
{
	struct program program = { .random = call_ns + n_others, .call_ns = call_ns, .n_others = n_others };
	struct py_code third = { 0 }, caller = { 0 };
	struct callers callers;
	struct sample sample = { .tid = 1, .weight = SAMPLE_NS };
	struct result result = { 0 };
	uint64_t free_ns = 0; /* when there is time for the next look */

	assert_int_equal(callers_init(&callers), 0);
	for (uint64_t n = 1; n <= SAMPLES; n++) {
		uint64_t sample_ns = n * SAMPLE_NS + draw(&program, SAMPLE_NS / 2);
		uint64_t look_ns = MAX(sample_ns, free_ns) + draw(&program, MAX_LATE_NS);
		struct py_frame frames[2] = {
			{ .address = 64, .code = &third },
			{ .address = 32, .code = &caller },
		};
		bool ask;
		int was = go_to(&program, sample_ns), is = go_to(&program, look_ns);

		sample.time_ns = sample_ns;
		callers_ran(&callers, &sample);
		if (was < 0 || is < 0)
			continue;
		frames[1].instruction = is; /* one caller, at two places */
		result.looks++;
		if (callers_look(&callers, frames, 2, &sample, look_ns, &ask)) {
			result.believed++;
			result.wrong += was != is;
		}
		if (ask) {
			free_ns = look_ns + CALLERS_WAIT_NS;
			is = go_to(&program, free_ns);
			callers_waited(&callers, &third, is == frames[1].instruction);
		}
	}
	callers_done(&callers);
	return result;
}

static void test_turns_are_not_believed(void **state)
{
	static const uint64_t calls_ns[] = { 2000, 10000, 40000, 100000, 300000 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(calls_ns); i++) {
		struct result result = simulate(calls_ns[i], 2);

		print_message("%llu ns: %u of %u wrong, of %u\n", (unsigned long long)calls_ns[i], result.wrong,
			      result.believed, result.looks);
		assert_true(result.looks > SAMPLES / 2);
		assert_true(result.wrong * 1000 <= result.looks);
	}
}

static void test_calls_that_last_are_believed(void **state)
{
	static const uint64_t calls_ns[] = { 3000000, 10000000, 100000000 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(calls_ns); i++) {
		struct result result = simulate(calls_ns[i], 2);

		print_message("%llu ns: %u of %u wrong, of %u\n", (unsigned long long)calls_ns[i], result.wrong,
			      result.believed, result.looks);
		assert_true(result.wrong * 1000 <= result.believed);
		if (calls_ns[i] >= 10000000)
			assert_true(result.believed >= result.looks / 2);
	}
}

static void test_a_rare_caller(void **state)
{
	static const unsigned one_of[] = { 5, 30, 200, 2000 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(one_of); i++) {
		struct result result = simulate(10000, one_of[i]);

		print_message("one in %u: %u of %u wrong, of %u\n", one_of[i], result.wrong, result.believed,
			      result.looks);
		assert_true(result.wrong * 1000 <= result.looks);
	}
}

static void test_a_single_caller_is_believed(void **state)
{
	struct result result = simulate(5000, 1);

	(void)state;
	assert_int_equal(result.wrong, 0);
	assert_true(result.believed >= result.looks - 64);
}

static void test_what_waited_too_long_is_not(void **state)
{
	struct py_code third = { 0 }, caller = { 0 };
	struct py_frame frames[2] = { { .address = 64, .code = &third }, { .address = 32, .code = &caller } };
	struct callers callers;
	bool ask;

	(void)state;
	assert_int_equal(callers_init(&callers), 0);
	for (uint64_t n = 1; n <= 1000; n++) {
		struct sample sample = { .tid = 1, .weight = SAMPLE_NS, .time_ns = n * 100000000 };

		callers_ran(&callers, &sample);
		assert_false(callers_look(&callers, frames, 2, &sample, sample.time_ns + 50000000, &ask));
	}
	callers_done(&callers);
}

static void test_many_that_waited_are_one_look(void **state)
{
	struct py_code third = { 0 }, caller = { 0 };
	struct py_frame frames[2] = { { .address = 64, .code = &third }, { .address = 32, .code = &caller } };
	struct callers callers;
	bool ask;

	(void)state;

	assert_int_equal(callers_init(&callers), 0);
	for (unsigned i = 0; i < 1000; i++) {
		struct sample sample = { .tid = 1, .weight = SAMPLE_NS, .time_ns = 1000 + i };

		callers_ran(&callers, &sample);
		assert_false(callers_look(&callers, frames, 2, &sample, 5000 + i, &ask));
	}
	callers_done(&callers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns_are_not_believed),
		cmocka_unit_test(test_calls_that_last_are_believed),
		cmocka_unit_test(test_a_rare_caller),
		cmocka_unit_test(test_a_single_caller_is_believed),
		cmocka_unit_test(test_what_waited_too_long_is_not),
		cmocka_unit_test(test_many_that_waited_are_one_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
