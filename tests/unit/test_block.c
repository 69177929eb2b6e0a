/* SPDX-License-Identifier: MIT */
/* test_block.c - any samples survive encoding and decoding; damaged blocks are refused. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/store/block.h"

static uint64_t seed = 7;

static uint64_t noise(void)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return seed >> 20 ^ seed << 17;
}

static struct sample_row sound_row(void)
{
	return (struct sample_row){ .time_ns = UINT64_C(1700000000000000000), .pid = 42, .tid = 43, .stack = 7 };
}

static bool is_same(const struct sample_row *a, const struct sample_row *b)
{
	return store_time(a->time_ns) == store_time(b->time_ns) && a->pid == b->pid && a->tid == b->tid &&
	       a->cpu == b->cpu && a->weight == b->weight && a->verdict == b->verdict && a->end == b->end &&
	       a->stack == b->stack && a->gil == b->gil && a->gc == b->gc && a->state == b->state;
}

static int setup(void **state)
{
	return block_encoder_new((struct block_encoder **)state);
}

static int teardown(void **state)
{
	block_encoder_free(*state);
	return 0;
}

#define BLOCK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static size_t round_trip(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	CLEANUP(block_done) struct block block = { 0 };
	const uint8_t *bytes = NULL;
	size_t n_bytes = 0;

	assert_int_equal(block_encode(encoder, rows, n, &bytes, &n_bytes), 0);
	assert_int_equal(block_open(&block, bytes, n_bytes), 0);
	assert_int_equal(block.n_rows, n);
	assert_int_equal(block_load(&block, BLOCK_ALL), 0);
	for (size_t i = 0; i < n; i++) {
		struct sample_row row;

		block_row(&block, i, &row);
		assert_true(is_same(&row, &rows[i]));
	}
	return n_bytes;
}

/* From all the same to nothing alike; each kind of row in blocks of each size. */
static struct sample_row made_row(unsigned kind, size_t i)
{
	struct sample_row row = sound_row();

	row.time_ns += i * 1001001 + (kind > 0 ? noise() % 2000 : 0);
	row.weight = kind == 0 ? 1001001 : noise() >> (noise() % 60 + 1);
	row.stack = kind == 0 ? 7 : (int64_t)(noise() % (kind == 1 ? 30 : 100000));
	row.tid = 43 + (int)(kind * (noise() % 5));
	row.cpu = (unsigned)(kind == 2 ? noise() % 300 : 1);
	row.verdict = (enum verdict)(noise() % VERDICT_N);
	row.end = (enum stack_end)(noise() % STACK_N_ENDS);
	row.gil = (enum answer)(noise() % 3);
	row.gc = (enum answer)(noise() % 3);
	row.state = (enum thread_state)(noise() % STATE_N);
	if (kind == 3) {
		row.time_ns = noise() % (INT64_MAX - 1000) + 1;
		row.pid = (pid_t)(noise() & INT32_MAX);
		row.tid = (pid_t)(noise() & INT32_MAX);
		row.cpu = (unsigned)noise();
		row.stack = (int64_t)(noise() >> 2);
	}
	return row;
}

static void what_goes_in_comes_out(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 100, 255, 256, 257, 4096, BLOCK_ROWS };
	CLEANUP(freep) struct sample_row *rows = calloc(BLOCK_ROWS, sizeof *rows);

	assert_non_null(rows);
	for (unsigned kind = 0; kind < 4; kind++)
		for (size_t s = 0; s < N_ELEMENTS(sizes); s++) {
			for (size_t i = 0; i < sizes[s]; i++)
				rows[i] = made_row(kind, i);
			round_trip(*state, rows, sizes[s]);
		}
}

static void the_ends_of_the_ranges(void **state)
{
	struct sample_row rows[4];

	for (size_t i = 0; i < 4; i++)
		rows[i] = sound_row();
	rows[1] = (struct sample_row){ .time_ns = INT64_MAX - 1000,
				       .pid = INT32_MAX,
				       .tid = INT32_MAX,
				       .cpu = UINT32_MAX,
				       .weight = INT64_MAX,
				       .stack = INT64_MAX - 1,
				       .verdict = VERDICT_PYTHON,
				       .end = STACK_FRAME_LIMIT,
				       .gil = ANSWER_YES,
				       .gc = ANSWER_YES,
				       .state = STATE_BLOCKED };
	rows[2] = (struct sample_row){ .time_ns = 1 };
	round_trip(*state, rows, 4);
	round_trip(*state, rows + 1, 1);
	round_trip(*state, rows + 2, 2);
}

/* A stored time prints as the exact one does, also after repeated writes. */
static void times_are_what_a_timestamp_shows(void **state)
{
	const uint64_t start = UINT64_C(1763840000000000000);

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t time_ns = start + noise() % UINT64_C(100000000000000000), kept = store_time(time_ns);
		double seconds = store_seconds(time_ns);

		assert_true(kept <= time_ns ? time_ns - kept <= 120 : kept - time_ns <= 120);
		assert_true(store_time(kept) == kept && store_seconds(kept) == seconds);
		assert_true(store_nanoseconds(seconds) == kept);
		assert_true(fabsl((long double)seconds - (long double)time_ns / 1e9L) <= 0.12e-6L);
	}
	assert_true(store_nanoseconds(-1) == 0 && store_nanoseconds(NAN) == 0 && store_nanoseconds(1e300) == 0);
}

static void times_of_version_1_are_nanoseconds(void **state)
{
	static const uint8_t bytes[] = {
		1,    0x32, 0xd4, 0xb0, 0xab,                 /* version, checksum */
		3,    10,   8,    1,    2,    5, 3,           /* rows, lengths of columns */
		0xe8, 0x07, 0,    0xd0, 0x0f, 1, 1,  0, 2, 1, /* from 1000 ns on, by rows, in steps of 1000: 0, +1, -1 */
		1,    1,    0,    42,   1,    0, 43, 0, 0, 5, 0, /* one thread, CPU 0, weight 5 */
		1,    1,    0,    7,    0,    1, 0,  0,          /* stack 7, no flags */
	};
	static const uint64_t times[] = { 2000, 3001, 4000 };
	CLEANUP(block_done) struct block block = { 0 };
	struct sample_row row;

	(void)state;
	assert_int_equal(block_open(&block, bytes, sizeof bytes), 0);
	assert_int_equal(block_load(&block, BLOCK_ALL), 0);
	assert_int_equal(block.n_rows, 3);
	for (size_t i = 0; i < 3; i++) {
		block_row(&block, i, &row);
		assert_true(row.time_ns == times[i] && row.pid == 42 && row.tid == 43 && row.stack == 7 &&
			    row.weight == 5);
	}
}

static void regular_samples_are_small(void **state)
{
	CLEANUP(freep) struct sample_row *rows = calloc(BLOCK_ROWS, sizeof *rows);

	assert_non_null(rows);
	for (size_t i = 0; i < BLOCK_ROWS; i++) {
		rows[i] = sound_row();
		rows[i].time_ns += i * 1001001;
	}
	assert_true(round_trip(*state, rows, BLOCK_ROWS) < 200);
}

static void what_no_sample_has_is_refused(void **state)
{
	const uint8_t *bytes;
	size_t n_bytes;
	struct sample_row rows[9];

	for (size_t i = 0; i < 9; i++)
		rows[i] = sound_row();
	rows[0].time_ns = 0;
	rows[1].time_ns = INT64_MAX - 999;
	rows[2].weight = UINT64_MAX;
	rows[3].stack = -1;
	rows[4].pid = -1;
	rows[5].verdict = VERDICT_N;
	rows[6].end = STACK_N_ENDS;
	rows[7].state = STATE_N;
	rows[8].gil = 3;
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(block_encode(*state, &rows[i], 1, &bytes, &n_bytes), -EINVAL);
	assert_int_equal(block_encode(*state, rows, 0, &bytes, &n_bytes), -EINVAL);
	assert_int_equal(block_encode(*state, rows, BLOCK_ROWS + 1, &bytes, &n_bytes), -EINVAL);
}

static void each_flipped_bit_is_noticed(void **state)
{
	CLEANUP(block_done) struct block block = { 0 };
	CLEANUP(freep) uint8_t *copy = NULL;
	struct sample_row rows[50];
	const uint8_t *bytes;
	size_t n_bytes;

	for (size_t i = 0; i < 50; i++)
		rows[i] = made_row(1, i);
	assert_int_equal(block_encode(*state, rows, 50, &bytes, &n_bytes), 0);
	copy = malloc(n_bytes);
	assert_non_null(copy);
	for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
		memcpy(copy, bytes, n_bytes);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(block_open(&block, copy, n_bytes) < 0);
		assert_int_equal(block.n_rows, 0);
	}
	for (size_t n = 0; n < n_bytes; n++)
		assert_true(block_open(&block, bytes, n) < 0);
	assert_int_equal(block_open(&block, bytes, n_bytes), 0);
	copy[0] = BLOCK_VERSION + 1;
	assert_int_equal(block_open(&block, copy, n_bytes), -EPROTONOSUPPORT);
}

static void a_column_at_a_time(void **state)
{
	CLEANUP(block_done) struct block block = { 0 };
	struct sample_row rows[100];
	const uint8_t *bytes;
	size_t n_bytes;

	for (size_t i = 0; i < 100; i++)
		rows[i] = made_row(2, i);
	assert_int_equal(block_encode(*state, rows, 100, &bytes, &n_bytes), 0);
	assert_int_equal(block_open(&block, bytes, n_bytes), 0);
	assert_int_equal(block_load(&block, BLOCK_HAS(BLOCK_WEIGHT)), 0);
	assert_int_equal(block.loaded, BLOCK_HAS(BLOCK_WEIGHT));
	for (size_t i = 0; i < 100; i++)
		assert_true(block.values[BLOCK_WEIGHT][i] == rows[i].weight);
	assert_int_equal(block_load(&block, BLOCK_HAS(BLOCK_TIME)), 0);
	for (size_t i = 0; i < 100; i++)
		assert_true(block.values[BLOCK_TIME][i] == store_time(rows[i].time_ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BLOCK_TEST(what_goes_in_comes_out),           BLOCK_TEST(the_ends_of_the_ranges),
		BLOCK_TEST(times_are_what_a_timestamp_shows), BLOCK_TEST(times_of_version_1_are_nanoseconds),
		BLOCK_TEST(regular_samples_are_small),        BLOCK_TEST(what_no_sample_has_is_refused),
		BLOCK_TEST(each_flipped_bit_is_noticed),      BLOCK_TEST(a_column_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
