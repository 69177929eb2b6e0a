/* SPDX-License-Identifier: MIT */
/* Lanes: columns of all widths against the samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/lanes/lanes_private.h"

#define BEGAN_NS UINT64_C(1700000000000000000)
enum { N_INTERVALS = 5000, N_COLUMNS = 64 };

/* ---- Columns ---- */

static uint32_t enter(struct calls *calls, uint32_t parent, const char *text)
{
	uint32_t name, call;

	assert_int_equal(lane_calls_name(calls, NAME_PYTHON, text, "a.py", &name), 0);
	assert_int_equal(lane_calls_enter(calls, parent, name, &call), 0);
	return call;
}

/* Paths main, main > f0 ... main > f4 > g. */
static size_t make_calls(struct calls *calls, uint32_t *ret)
{
	size_t n = 0;

	assert_int_equal(lane_calls_init(calls), 0);
	ret[n++] = enter(calls, 0, "main");
	for (int i = 0; i < 5; i++) {
		char text[8];

		snprintf(text, sizeof text, "f%d", i);
		ret[n++] = enter(calls, ret[0], text);
		ret[n] = enter(calls, ret[n - 1], "g");
		n++;
	}
	return n;
}

/* Lengths from 1 ns to about a second, and gaps. */
static void make_intervals(struct lane_thread *thread, const uint32_t *paths, size_t n_paths)
{
	uint64_t at = BEGAN_NS;

	srand(1);
	thread->items = calloc(N_INTERVALS, sizeof *thread->items);
	assert_non_null(thread->items);
	thread->n = N_INTERVALS;
	for (size_t i = 0; i < thread->n; i++) {
		uint64_t length = (uint64_t)1 << (rand() % 31);

		at += rand() % 4 == 0 ? (uint64_t)rand() % 5000000 : 0;
		thread->items[i] = (struct interval){ .start_ns = at,
						      .length_ns = length,
						      .state = (unsigned)(rand() % 3 ? STATE_RUNNING : STATE_GIL) & 15,
						      .gil = (unsigned)(rand() % 3) & 3,
						      .call = paths[(size_t)rand() % n_paths] };
		at += length;
	}
}

static void columns_of_each_width_are_those_of_the_samples(void **state)
{
	struct lane_thread made = { .tid = 1 }, plain = { .tid = 1 };
	struct calls calls = { 0 };
	uint32_t paths[16];
	size_t n_paths = make_calls(&calls, paths), n_compared = 0;
	struct column by_level[N_COLUMNS], by_sample[N_COLUMNS];

	(void)state;
	make_intervals(&made, paths, n_paths);
	make_intervals(&plain, paths, n_paths);
	assert_int_equal(columns_make(&made, &calls), 0);
	assert_true(made.n_levels > 10);
	for (unsigned level = made.first_level; level <= MAX_LEVEL; level++) {
		uint64_t first = BEGAN_NS >> level, last = interval_end(&made.items[made.n - 1]) >> level;

		for (uint64_t at = first; at <= last; at += N_COLUMNS) {
			assert_int_equal(columns_fold(&made, &calls, level, at, N_COLUMNS, by_level), 0);
			assert_int_equal(columns_fold(&plain, &calls, level, at, N_COLUMNS, by_sample), 0);
			assert_memory_equal(by_level, by_sample, sizeof by_level);
			n_compared++;
		}
	}
	assert_true(n_compared > 20);
	columns_drop(&made);
	free(made.items);
	free(plain.items);
	lane_calls_done(&calls);
}

/* A clock that began in 1970 and was set: few samples over decades need columns wider than the widest. */
static void few_samples_over_decades(void **state)
{
	enum { N = 256 };
	struct lane_thread thread = { .tid = 1, .n = N };
	struct interval *items = calloc(N, sizeof *items);
	struct column columns[N_COLUMNS];
	struct calls calls = { 0 };
	uint32_t paths[16], n = 0;

	(void)state;
	assert_non_null(items);
	make_calls(&calls, paths);
	for (size_t i = 0; i < N; i++)
		items[i] = (struct interval){ .start_ns = 1 + i * (BEGAN_NS / N), .length_ns = 10, .call = paths[0] };
	thread.items = items;
	assert_int_equal(columns_make(&thread, &calls), 0);
	assert_int_equal(thread.first_level, MAX_LEVEL);
	assert_int_equal(thread.n_levels, 1);
	for (uint64_t at = 0; at <= BEGAN_NS >> MAX_LEVEL; at += N_COLUMNS) {
		assert_int_equal(columns_fold(&thread, &calls, MAX_LEVEL, at, N_COLUMNS, columns), 0);
		for (size_t i = 0; i < N_COLUMNS; i++)
			n += columns[i].n;
	}
	assert_int_equal(n, N);
	columns_drop(&thread);
	free(items);
	lane_calls_done(&calls);
}

/* The heaviest callee at each depth, though no single stack is the heaviest there. */
static void the_path_follows_the_largest_share(void **state)
{
	struct calls calls = { 0 };
	uint32_t paths[16];
	struct lane_thread thread = { .tid = 1 };
	struct interval items[4];
	struct column column;

	(void)state;
	make_calls(&calls, paths);
	items[0] = (struct interval){ .start_ns = 0, .length_ns = 30, .call = paths[1] };  /* main > f0 */
	items[1] = (struct interval){ .start_ns = 30, .length_ns = 40, .call = paths[3] }; /* main > f1 */
	items[2] = (struct interval){ .start_ns = 70, .length_ns = 29, .call = paths[2] }; /* main > f0 > g */
	items[3] = (struct interval){ .start_ns = 100, .length_ns = 28, .call = paths[3], .gil = ANSWER_YES };
	thread.items = items;
	thread.n = 3;
	assert_int_equal(columns_fold(&thread, &calls, 7, 0, 1, &column), 0);
	assert_int_equal(column.call, paths[1]);
	assert_int_equal(column.n, 3);
	assert_int_equal(column.held, 0);
	thread.n = 4;
	assert_int_equal(columns_fold(&thread, &calls, 7, 0, 1, &column), 0);
	assert_int_equal(column.call, paths[3]);
	assert_in_range(column.held, 54, 56); /* 28 of 128 */
	assert_in_range(column.covered, 252, 254);
	lane_calls_done(&calls);
}

/* More paths in a column than are kept: those of little time count for their callers. */
static void many_stacks_keep_their_common_path(void **state)
{
	struct calls calls = { 0 };
	struct lane_thread thread = { .tid = 1, .n = 1000 };
	struct interval *items = calloc(thread.n, sizeof *items);
	uint32_t main_call, loop;
	struct column column;

	(void)state;
	assert_non_null(items);
	assert_int_equal(lane_calls_init(&calls), 0);
	main_call = enter(&calls, 0, "main");
	loop = enter(&calls, main_call, "loop");
	for (size_t i = 0; i < thread.n; i++) {
		char text[32];

		snprintf(text, sizeof text, "leaf%zu", i);
		items[i] = (struct interval){ .start_ns = i, .length_ns = 1, .call = enter(&calls, loop, text) };
	}
	thread.items = items;
	assert_int_equal(columns_fold(&thread, &calls, 10, 0, 1, &column), 0);
	assert_int_equal(column.n, 1000);
	assert_int_equal(column.call, loop);
	free(items);
	lane_calls_done(&calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_of_each_width_are_those_of_the_samples),
		cmocka_unit_test(few_samples_over_decades),
		cmocka_unit_test(the_path_follows_the_largest_share),
		cmocka_unit_test(many_stacks_keep_their_common_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
