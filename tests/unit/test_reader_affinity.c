/* SPDX-License-Identifier: MIT */
/* test_reader_affinity.c - where the reading thread goes, and that it comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/reader_affinity.h"

/* As if it went: where to is asked only of the numbers. */
static unsigned go_if_wanted(struct reader_affinity *follow, unsigned cpu)
{
	reader_affinity_note(follow, cpu, 0);
	if (!reader_affinity_wants(follow))
		return 0;
	reader_affinity_went(follow);
	return 1;
}

static unsigned run(struct reader_affinity *follow, const unsigned *cpus, size_t n_cpus, unsigned n_samples)
{
	unsigned n_gone = 0;

	for (unsigned i = 0; i < n_samples; i++)
		n_gone += go_if_wanted(follow, cpus[i % n_cpus]);
	return n_gone;
}

static void test_a_thread_that_moves_is_followed_at_once(void **state)
{
	struct reader_affinity follow = { .is_on = true, .needed = 1 };
	unsigned cpu;

	(void)state;
	for (cpu = 0; cpu < 10; cpu++) {
		assert_int_equal(go_if_wanted(&follow, cpu), 1);
		assert_int_equal(follow.cpu, cpu);
		assert_int_equal(run(&follow, &cpu, 1, 20), 0);
	}
}

static void test_of_several_processors_one_is_kept(void **state)
{
	static const unsigned by_turns[] = { 0, 1 }, in_threes[] = { 0, 0, 0, 1, 1, 1 };
	struct reader_affinity follow = { .is_on = true, .needed = 1 };
	unsigned n_gone;

	(void)state;
	n_gone = run(&follow, by_turns, N_ELEMENTS(by_turns), 1000);
	assert_true(n_gone <= 4);
	follow = (struct reader_affinity){ .is_on = true, .needed = 1 };
	n_gone = run(&follow, in_threes, N_ELEMENTS(in_threes), 1000);
	assert_true(n_gone <= 6);
	/* Not forever: if all samples come from elsewhere, it moves there. */
	assert_int_equal(run(&follow, (const unsigned[]){ 2 }, 1, 100), 1);
	assert_int_equal(follow.cpu, 2);
}

static void test_nothing_happens_before_the_beginning(void **state)
{
	struct reader_affinity follow = { 0 };

	(void)state;
	reader_affinity_note(&follow, 3, 0);
	assert_false(reader_affinity_wants(&follow));
	reader_affinity_end(&follow);
}

/* Where this thread may be now, and one processor of those. */
static unsigned begin(struct reader_affinity *follow, cpu_set_t *ret)
{
	unsigned cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof *ret, ret), 0);
	while (!CPU_ISSET(cpu, ret))
		cpu++;
	reader_affinity_begin(follow);
	return cpu;
}

static void test_it_goes_and_comes_back(void **state)
{
	struct reader_affinity follow = { 0 };
	cpu_set_t before, now;
	unsigned cpu;

	(void)state;
	cpu = begin(&follow, &before);
	reader_affinity_note(&follow, cpu, 0);
	assert_true(reader_affinity_wants(&follow));
	reader_affinity_go(&follow);
	assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_int_equal(sched_getcpu(), (int)cpu);
	/* Where it may not go it does not. */
	for (cpu = 0; CPU_ISSET(cpu, &before);)
		cpu++;
	for (int i = 0; i < 10; i++)
		reader_affinity_note(&follow, cpu, 0);
	assert_true(reader_affinity_wants(&follow));
	reader_affinity_go(&follow);
	assert_int_not_equal(follow.cpu, cpu);
	reader_affinity_end(&follow);
	assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

/* Another recorder has that processor and does not share it. */
static void test_who_comes_too_late_is_free_again(void **state)
{
	enum { LATE_NS = 100000000, SOME = 100 };
	struct reader_affinity follow = { 0 };
	cpu_set_t before, now;
	unsigned n_rests[2];
	unsigned cpu;

	(void)state;
	cpu = begin(&follow, &before);
	for (int i = 0; i < 2; i++) {
		reader_affinity_note(&follow, cpu, 0);
		reader_affinity_go(&follow);
		assert_true(follow.is_bound);
		for (int k = 0; k < SOME && !reader_affinity_wants(&follow); k++)
			reader_affinity_note(&follow, cpu, LATE_NS);
		assert_true(reader_affinity_wants(&follow));
		reader_affinity_go(&follow);
		assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
		assert_true(CPU_EQUAL(&now, &before));
		for (n_rests[i] = 0; !reader_affinity_wants(&follow); n_rests[i]++)
			reader_affinity_note(&follow, cpu, 0);
	}
	assert_true(n_rests[0] > SOME && n_rests[1] > n_rests[0] + SOME);
	reader_affinity_end(&follow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_that_moves_is_followed_at_once),
		cmocka_unit_test(test_of_several_processors_one_is_kept),
		cmocka_unit_test(test_nothing_happens_before_the_beginning),
		cmocka_unit_test(test_it_goes_and_comes_back),
		cmocka_unit_test(test_who_comes_too_late_is_free_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
