/* SPDX-License-Identifier: MIT */
/* test_capture_order.c - rings in ordinary memory, and the order over several. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/cpus.h"
#include "src/capture/decode.h"
#include "src/capture/merge.h"
#include "src/capture/dup_events.h"
#include "src/capture/tasks.h"

enum { RING_BYTES = 1024, N_RINGS = 3 };

/* The kernel's side of a ring. */
struct writer {
	struct perf_event_mmap_page control;
	_Alignas(8) uint8_t data[RING_BYTES];
};

static struct writer writers[N_RINGS];
static struct perf_ring rings[N_RINGS];

static void setup_rings(struct merge *merge)
{
	memset(writers, 0, sizeof writers);
	for (int i = 0; i < N_RINGS; i++)
		perf_ring_init(&rings[i], &writers[i].control, writers[i].data, RING_BYTES);
	assert_int_equal(merge_init(merge, rings, N_RINGS), 0);
}

static size_t room(const struct writer *writer)
{
	return RING_BYTES - (writer->control.data_head - writer->control.data_tail);
}

/* A record with its time in the trailer and its number in every word before. */
static void write_record(struct writer *writer, uint64_t time, uint64_t number, size_t n_words)
{
	struct perf_event_header header = {
		.type = PERF_RECORD_COMM,
		.size = (uint16_t)(sizeof header + n_words * 8 + 32),
	};
	uint64_t words[64] = { 0 };

	assert_true(room(writer) >= header.size);
	memcpy(&words[0], &header, sizeof header);
	for (size_t i = 0; i < n_words; i++)
		words[1 + i] = number;
	words[1 + n_words + 1] = time;
	for (size_t i = 0; i < header.size / 8; i++)
		memcpy(&writer->data[(writer->control.data_head + i * 8) % RING_BYTES], &words[i], 8);
	writer->control.data_head += header.size;
}

static uint64_t number_of(const struct perf_event_header *record)
{
	const uint64_t *words = (const uint64_t *)(record + 1);

	for (size_t i = 0; i < (record->size - 40u) / 8; i++)
		assert_int_equal(words[i], words[0]);
	return words[0];
}

static void assert_next(struct merge *merge, uint64_t number)
{
	const struct perf_event_header *record = merge_next(merge);

	assert_non_null(record);
	assert_int_equal(number_of(record), number);
}

static void test_earliest_first(void **state)
{
	struct merge merge;

	(void)state;
	setup_rings(&merge);
	write_record(&writers[0], 10, 1, 1);
	write_record(&writers[0], 40, 4, 1);
	write_record(&writers[1], 30, 3, 1);
	write_record(&writers[2], 20, 2, 1);
	assert_null(merge_next(&merge)); /* no round has begun */
	assert_true(merge_begin(&merge, 100));
	for (uint64_t i = 1; i <= 4; i++)
		assert_next(&merge, i);
	assert_null(merge_next(&merge));
	assert_false(merge_begin(&merge, 100));
	merge_done(&merge);
}

static void test_later_records_wait(void **state)
{
	struct merge merge;

	(void)state;
	setup_rings(&merge);
	write_record(&writers[0], 10, 1, 1);
	write_record(&writers[1], 50, 3, 1);
	assert_true(merge_begin(&merge, 30));
	assert_next(&merge, 1);
	assert_null(merge_next(&merge));
	/* Written after the ring was read: not in this round, although it is old enough. */
	write_record(&writers[2], 20, 2, 1);
	assert_null(merge_next(&merge));
	/* The record that waited does not come before it. */
	assert_true(merge_begin(&merge, 60));
	assert_next(&merge, 2);
	assert_next(&merge, 3);
	assert_null(merge_next(&merge));
	merge_done(&merge);
}

static void test_the_next_record_can_be_looked_at(void **state)
{
	const size_t per_record = 8 + 17 * 8 + 32, n_whole = RING_BYTES / per_record;
	struct merge merge;

	(void)state;
	setup_rings(&merge);
	assert_null(merge_peek(&merge, 0));
	for (uint64_t i = 1; i <= n_whole; i++)
		write_record(&writers[0], i, i, 17);
	assert_true(merge_begin(&merge, 2));
	assert_next(&merge, 1);
	assert_int_equal(number_of(merge_peek(&merge, 0)), 2);
	assert_int_equal(number_of(merge_peek(&merge, 0)), 2);
	assert_next(&merge, 2);
	assert_int_equal(number_of(merge_peek(&merge, 0)), 3); /* also one that is not ripe */
	assert_null(merge_next(&merge));
	assert_null(merge_peek(&merge, 0)); /* none is current */
	/* A record that wraps around is not returned, and neither is one that claims more bytes than exist. */
	write_record(&writers[0], 90, n_whole + 1, 17);
	assert_true(merge_begin(&merge, 100));
	for (uint64_t i = 3; i < n_whole; i++)
		assert_next(&merge, i);
	assert_int_equal(number_of(merge_peek(&merge, 0)), n_whole);
	assert_next(&merge, n_whole);
	assert_null(merge_peek(&merge, 0));
	assert_next(&merge, n_whole + 1);
	assert_null(merge_peek(&merge, 0));
	write_record(&writers[0], 91, n_whole + 2, 1);
	write_record(&writers[0], 92, n_whole + 3, 1);
	writers[0].data[(writers[0].control.data_head - 48 + offsetof(struct perf_event_header, size)) % RING_BYTES] =
		0xff;
	assert_true(merge_begin(&merge, 100));
	assert_next(&merge, n_whole + 2);
	assert_null(merge_peek(&merge, 0));
	merge_done(&merge);
}

static void test_memory_is_given_back_late(void **state)
{
	struct merge merge;
	uint64_t tail;

	(void)state;
	setup_rings(&merge);
	write_record(&writers[0], 10, 1, 1);
	write_record(&writers[0], 11, 2, 1);
	assert_true(merge_begin(&merge, 100));
	assert_next(&merge, 1);
	assert_int_equal(writers[0].control.data_tail, 0);
	assert_next(&merge, 2);
	tail = writers[0].control.data_tail;
	assert_true(tail > 0 && tail < writers[0].control.data_head);
	assert_null(merge_next(&merge));
	assert_int_equal(writers[0].control.data_tail, writers[0].control.data_head);
	merge_done(&merge);
}

/* Sizes and times at random; many rounds, so that records wrap at all offsets. */
static void test_random_rings(void **state)
{
	uint64_t time = 1, n_written = 0, n_read = 0, last = 0;
	struct merge merge;
	unsigned seed = 1;

	(void)state;
	setup_rings(&merge);
	for (int round = 0; round < 20000; round++) {
		const struct perf_event_header *record;

		for (int i = rand_r(&seed) % 8; i > 0; i--) {
			size_t n_words = 1 + (size_t)rand_r(&seed) % 30;
			struct writer *writer = &writers[rand_r(&seed) % N_RINGS];

			if (room(writer) >= 40 + n_words * 8)
				write_record(writer, time++, ++n_written, n_words);
		}
		/* A clock that is sometimes behind. */
		merge_begin(&merge, time - (uint64_t)rand_r(&seed) % 4);
		while ((record = merge_next(&merge)) != NULL) {
			assert_int_equal(number_of(record), last + 1);
			last++;
			n_read++;
		}
	}
	merge_begin(&merge, UINT64_MAX);
	while (merge_next(&merge))
		n_read++;
	assert_true(n_written > 10000);
	assert_int_equal(n_read, n_written);
	merge_done(&merge);
}

static void damage(size_t size)
{
	struct perf_event_header *header = (struct perf_event_header *)writers[0].data;

	write_record(&writers[0], 10, 1, 1);
	write_record(&writers[0], 11, 2, 1);
	header->size = (uint16_t)size;
}

static void test_damaged_ring_is_skipped(void **state)
{
	const size_t sizes[] = { 0, 4, 12, 49, 1000, 65535 };
	struct merge merge;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(sizes); i++) {
		setup_rings(&merge);
		damage(sizes[i]);
		write_record(&writers[1], 12, 3, 1);
		assert_true(merge_begin(&merge, 100));
		assert_next(&merge, 3);
		assert_null(merge_next(&merge));
		assert_int_equal(rings[0].n_malformed, 1);
		assert_int_equal(writers[0].control.data_tail, writers[0].control.data_head);
		/* And it continues with the next records. */
		write_record(&writers[0], 20, 4, 1);
		assert_true(merge_begin(&merge, 100));
		assert_next(&merge, 4);
		assert_null(merge_next(&merge));
		assert_int_equal(writers[0].control.data_tail, writers[0].control.data_head);
		merge_done(&merge);
	}

	setup_rings(&merge);
	writers[0].control.data_head = 3 * RING_BYTES;
	assert_false(merge_begin(&merge, 100));
	assert_int_equal(rings[0].n_malformed, 1);
	merge_done(&merge);
}

static void test_cpu_lists(void **state)
{
	static const struct {
		const char *text;
		int r;
		unsigned n, first, last;
	} cases[] = {
		{ "0\n", 0, 1, 0, 0 },
		{ "0-3\n", 0, 4, 0, 3 },
		{ "0-1,8,10-11", 0, 5, 0, 11 },
		{ "5-5", 0, 1, 5, 5 },
		{ "", -EINVAL },
		{ "\n", -EINVAL },
		{ "a", -EINVAL },
		{ "3-1", -EINVAL },
		{ "1,", -EINVAL },
		{ "1 2", -EINVAL },
		{ "-1", -EINVAL },
		{ "65536", -EINVAL },
		{ "0-99999999999999999999", -EINVAL },
		{ "0-65535,0-65535", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		CLEANUP(freep) unsigned *cpus = NULL;
		size_t n;

		assert_int_equal(cpus_parse(cases[i].text, &cpus, &n), cases[i].r);
		if (cases[i].r < 0)
			continue;
		assert_int_equal(n, cases[i].n);
		assert_int_equal(cpus[0], cases[i].first);
		assert_int_equal(cpus[n - 1], cases[i].last);
	}
}

static void test_cpus_of_this_machine(void **state)
{
	CLEANUP(freep) unsigned *cpus = NULL;
	size_t n;

	(void)state;
	assert_int_equal(cpus_online(&cpus, &n), 0);
	assert_int_equal(n, sysconf(_SC_NPROCESSORS_ONLN));
}

static void test_task_set(void **state)
{
	const pid_t tids[] = { 5, 3, 9, 3, 1, 9, 7, 5 };
	const int added[] = { 1, 1, 1, 0, 1, 0, 1, 0 };
	struct task_set set = { 0 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(tids); i++)
		assert_int_equal(task_set_add(&set, tids[i]), added[i]);
	assert_int_equal(set.n, 5);
	for (size_t i = 1; i < set.n; i++)
		assert_true(set.tids[i - 1] < set.tids[i]);
	task_set_done(&set);
}

static void test_streams(void **state)
{
	struct dup_events *streams;

	(void)state;
	assert_int_equal(dup_events_new(&streams), 0);
	assert_int_equal(dup_events_note(streams, 1, 0, 10), 0);
	assert_int_equal(dup_events_note(streams, 1, 1, 11), 0); /* another CPU */
	assert_int_equal(dup_events_note(streams, 2, 0, 20), 0); /* another thread */
	assert_int_equal(dup_events_note(streams, 1, 0, 10), 0);
	/* The later one is redundant, in either order. */
	assert_int_equal(dup_events_note(streams, 1, 0, 30), 30);
	assert_int_equal(dup_events_note(streams, 1, 0, 10), 0);
	assert_int_equal(dup_events_note(streams, 2, 0, 5), 20);
	assert_int_equal(dup_events_note(streams, 2, 0, 5), 0);
	/* A number that comes again. */
	dup_events_forget(streams, 1, 0);
	assert_int_equal(dup_events_note(streams, 1, 0, 40), 0);
	assert_int_equal(dup_events_note(streams, 1, 1, 12), 12);
	dup_events_forget_all(streams);
	assert_int_equal(dup_events_note(streams, 2, 0, 50), 0);
	dup_events_free(streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_earliest_first),
		cmocka_unit_test(test_later_records_wait),
		cmocka_unit_test(test_the_next_record_can_be_looked_at),
		cmocka_unit_test(test_memory_is_given_back_late),
		cmocka_unit_test(test_random_rings),
		cmocka_unit_test(test_damaged_ring_is_skipped),
		cmocka_unit_test(test_cpu_lists),
		cmocka_unit_test(test_cpus_of_this_machine),
		cmocka_unit_test(test_task_set),
		cmocka_unit_test(test_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
