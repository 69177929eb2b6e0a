/* SPDX-License-Identifier: MIT */
/*
 * The switches between two looks at a thread's counts: their times never decrease, out and in take turns, and what they add
 * up to is what the kernel counted, but for the lag that a running thread's counts may have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/wait_ticks.h"

#define MS UINT64_C(1000000)

/* What the steps of a thread add up to. */
struct sums {
	uint64_t at_ns, run_ns, delay_ns, blocked_ns;
	bool is_out, is_preempted;
};

static void add_time(struct sums *sums, uint64_t until_ns)
{
	uint64_t *to = !sums->is_out ? &sums->run_ns : sums->is_preempted ? &sums->delay_ns : &sums->blocked_ns;

	assert_true(until_ns >= sums->at_ns);
	*to += until_ns - sums->at_ns;
	sums->at_ns = until_ns;
}

static void take(struct sums *sums, struct wait_count *last, const struct wait_count *now)
{
	struct wait_step steps[WAIT_MAX_STEPS];
	unsigned n = wait_steps(last, now, steps);

	assert_true(n <= WAIT_MAX_STEPS);
	for (unsigned i = 0; i < n; i++) {
		assert_true(steps[i].time_ns <= now->time_ns);
		assert_int_not_equal(sums->is_out, steps[i].is_out);
		add_time(sums, steps[i].time_ns);
		sums->is_out = steps[i].is_out;
		sums->is_preempted = steps[i].is_preempted;
	}
	assert_int_equal(sums->is_out, !now->is_ready);
}

static struct sums begin(const struct wait_count *count)
{
	return (struct sums){ .at_ns = count->time_ns, .is_out = !count->is_ready };
}

static void test_one_long_wait_is_one(void **state)
{
	struct wait_count last = { .time_ns = 5 * MS, .run_ns = 3 * MS, .n_runs = 7 }, now = last;
	struct sums sums = begin(&last);

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct wait_step steps[WAIT_MAX_STEPS];

		now.time_ns += 20 * MS;
		assert_int_equal(0, wait_steps(&last, &now, steps));
	}
	now = (struct wait_count){ .time_ns = now.time_ns + 20 * MS, .run_ns = 8 * MS, .delay_ns = 2 * MS, .n_runs = 8 };
	take(&sums, &last, &now);
	add_time(&sums, now.time_ns);
	assert_int_equal(5 * MS, sums.run_ns);
	assert_int_equal(0, sums.delay_ns); /* it was the end of the wait */
	assert_int_equal((1020 - 5) * MS, sums.blocked_ns);
}

/* The kernel brings a running thread's time up to date every few milliseconds: that is no wait. */
static void test_a_lag_is_no_wait(void **state)
{
	struct wait_count last = { .time_ns = 1000 * MS, .is_ready = true, .n_runs = 1 }, now = last;
	struct sums sums = begin(&last);

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		now.time_ns += 20 * MS;
		now.run_ns = now.time_ns - 1000 * MS - (i * 7 % 4) * MS;
		now.n_runs += i % 3 == 0; /* preempted for a moment */
		take(&sums, &last, &now);
	}
	add_time(&sums, now.time_ns);
	assert_int_equal(0, sums.blocked_ns);
	assert_int_equal(2000 * MS, sums.run_ns);
}

enum doing { RUNS, IS_READY, IS_BLOCKED };

/* A thread as the kernel counts it: ready time when it gets its processor, running time each 4 ms and when it leaves. */
struct model {
	enum doing doing;
	uint64_t time_ns, since_ns, real_ns[3];
	struct wait_count count;
};

static void change(struct model *model, enum doing doing)
{
	if (model->doing == IS_READY)
		model->count.delay_ns = model->real_ns[IS_READY];
	model->count.run_ns = model->real_ns[RUNS];
	model->count.n_runs += doing == RUNS;
	model->count.is_ready = doing != IS_BLOCKED;
	model->doing = doing;
}

static void pass(struct model *model, uint64_t n_ns)
{
	model->time_ns += n_ns;
	model->real_ns[model->doing] += n_ns;
	if (model->doing == RUNS && model->real_ns[RUNS] - model->count.run_ns >= 4 * MS)
		model->count.run_ns = model->real_ns[RUNS];
	model->count.time_ns = model->time_ns;
}

static enum doing next_of(enum doing doing)
{
	return doing == IS_BLOCKED ? IS_READY : doing == IS_READY ? RUNS : rand() % 2 ? IS_BLOCKED : IS_READY;
}

static void test_sums_are_the_kernels(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 1000; seed++) {
		struct model model = { .doing = IS_BLOCKED, .time_ns = 100 * MS, .count = { .time_ns = 100 * MS } };
		struct wait_count last = model.count;
		struct sums sums = begin(&last);
		unsigned longest_ms = seed % 40 + 1, left_ms = 1;

		srand(seed);
		for (unsigned i = 0; i < 3000; i++) {
			pass(&model, MS);
			if (--left_ms == 0) {
				change(&model, next_of(model.doing));
				left_ms = (unsigned)rand() % longest_ms + 1;
			}
			if (i % 10 == 9)
				take(&sums, &last, &model.count);
		}
		while (model.doing != IS_BLOCKED)
			change(&model, next_of(model.doing));
		pass(&model, 10 * MS);
		take(&sums, &last, &model.count);
		add_time(&sums, model.time_ns);
		assert_int_equal(3010 * MS, sums.run_ns + sums.delay_ns + sums.blocked_ns);
		assert_in_range(sums.run_ns, model.real_ns[RUNS] * 9 / 10 - 40 * MS,
				model.real_ns[RUNS] * 11 / 10 + 40 * MS);
		assert_true(sums.blocked_ns + 40 * MS >= model.real_ns[IS_BLOCKED]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_long_wait_is_one),
		cmocka_unit_test(test_a_lag_is_no_wait),
		cmocka_unit_test(test_sums_are_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
