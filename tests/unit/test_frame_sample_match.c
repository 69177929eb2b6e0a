/* SPDX-License-Identifier: MIT */
/* test_frame_sample_match.c - which Python frames belong to which sample. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/decode.h"
#include "src/capture/frame_sample_match.h"

enum { PID = 100, TID = 101, OTHER_TID = 102, FIRST = 0, SECOND = 1, N_RINGS = 2 };

/* A record as in a ring: its key, then Python frames or irrelevant bytes. */
struct draft {
	struct perf_event_header header;
	struct python_record record;
	struct python_entry entries[3];
};

static struct draft *draft_sample(pid_t tid)
{
	static struct draft draft;

	draft = (struct draft){
		.header = { .type = PERF_RECORD_SAMPLE, .size = offsetof(struct draft, entries) },
		.record = { .pid = PID, .tid = (uint32_t)tid },
	};
	return &draft;
}

/* With n_entries entries, whose addresses are 1, 2, ... */
static struct draft *draft_python(pid_t tid, uint32_t n_entries)
{
	struct draft *draft = draft_sample(tid);

	draft->record.mark = PYTHON_MARK;
	draft->record.layout_id = 7;
	draft->record.n_entries = n_entries;
	draft->record.n_states = 1;
	for (uint32_t i = 0; i < n_entries; i++)
		draft->entries[i].address = i + 1;
	draft->header.size = (uint16_t)(draft->header.size + n_entries * sizeof draft->entries[0]);
	draft->record.n_bytes = (uint32_t)(draft->header.size - sizeof draft->header - sizeof draft->record.n_bytes);
	return draft;
}

static struct frame_sample_match pairs;

static int begin(void **state)
{
	(void)state;
	return frame_sample_match_init(&pairs, N_RINGS);
}

static int end(void **state)
{
	(void)state;
	frame_sample_match_done(&pairs);
	return 0;
}

static void keep(size_t ring, pid_t tid, uint32_t n_entries)
{
	frame_sample_match_keep(&pairs, ring, 0, &draft_python(tid, n_entries)->header);
}

static const struct python_record *take(size_t ring, pid_t tid)
{
	return frame_sample_match_take(&pairs, ring, 0, &draft_sample(tid)->header);
}

static void neighbours_of_one_thread_are_a_pair(void **state)
{
	const struct python_record *record;

	(void)state;
	keep(FIRST, TID, 3);
	record = take(FIRST, TID);
	assert_non_null(record);
	assert_int_equal(record->layout_id, 7);
	assert_int_equal(record->n_entries, 3);
	assert_int_equal(python_entries(record)[2].address, 3);
	assert_null(take(FIRST, TID));
	assert_int_equal(pairs.unpaired, 0);
}

static void rings_do_not_mix(void **state)
{
	(void)state;
	keep(FIRST, TID, 1);
	assert_null(take(SECOND, TID));
	keep(SECOND, OTHER_TID, 2);
	assert_int_equal(take(FIRST, TID)->n_entries, 1);
	assert_int_equal(take(SECOND, OTHER_TID)->n_entries, 2);
	assert_int_equal(pairs.unpaired, 0);
}

/* The sample was lost; another thread's, or this one's next, must not get its frames. */
static void a_lost_sample_leaves_its_frames_alone(void **state)
{
	struct draft *lost = draft_sample(TID);

	(void)state;
	keep(FIRST, TID, 1);
	assert_null(take(FIRST, OTHER_TID));
	assert_int_equal(pairs.unpaired, 1);

	keep(FIRST, TID, 1);
	lost->header.type = PERF_RECORD_LOST;
	assert_null(frame_sample_match_take(&pairs, FIRST, 0, &lost->header));
	assert_null(take(FIRST, TID));
	assert_int_equal(pairs.unpaired, 2);

	keep(FIRST, TID, 1);
	keep(FIRST, TID, 2);
	assert_int_equal(take(FIRST, TID)->n_entries, 2);
	assert_int_equal(pairs.unpaired, 3);
}

/* As samples of that time are dropped, and lost ones do not count. */
static void frames_before_the_beginning_do_not_count(void **state)
{
	struct draft *early = draft_python(TID, 1);

	(void)state;
	pairs.began_ns = 1000;
	early->record.time_ns = 999;
	frame_sample_match_keep(&pairs, FIRST, 0, &early->header);
	assert_null(take(FIRST, OTHER_TID));
	assert_int_equal(pairs.unpaired, 0);

	early = draft_python(TID, 1);
	early->record.time_ns = 1000;
	frame_sample_match_keep(&pairs, FIRST, 0, &early->header);
	frame_sample_match_keep(&pairs, FIRST, 0, &early->header);
	assert_null(take(FIRST, OTHER_TID));
	assert_int_equal(pairs.unpaired, 2);
}

static void a_gap_in_the_ring_is_no_neighbourhood(void **state)
{
	(void)state;
	frame_sample_match_keep(&pairs, FIRST, 4, &draft_python(TID, 1)->header);
	assert_null(frame_sample_match_take(&pairs, FIRST, 5, &draft_sample(TID)->header));
	assert_int_equal(pairs.unpaired, 1);
}

static void what_is_not_whole_is_not_kept(void **state)
{
	struct draft *draft = draft_python(TID, 2);

	(void)state;
	draft->header.size = (uint16_t)(draft->header.size - sizeof(struct python_entry));
	frame_sample_match_keep(&pairs, FIRST, 0, &draft->header);
	assert_null(take(FIRST, TID));
	draft = draft_python(TID, 2);
	draft->record.n_bytes -= sizeof(struct python_entry);
	frame_sample_match_keep(&pairs, FIRST, 0, &draft->header);
	assert_null(take(FIRST, TID));
	draft = draft_python(TID, 2);
	draft->record.n_entries = UINT32_MAX;
	frame_sample_match_keep(&pairs, FIRST, 0, &draft->header);
	assert_null(take(FIRST, TID));
	draft = draft_python(TID, 2);
	draft->record.n_states = UINT32_MAX;
	frame_sample_match_keep(&pairs, FIRST, 0, &draft->header);
	assert_null(take(FIRST, TID));
	draft = draft_python(TID, 2);
	draft->record.mark = 0;
	frame_sample_match_keep(&pairs, FIRST, 0, &draft->header);
	assert_null(take(FIRST, TID));
	assert_int_equal(pairs.malformed, 5);
	assert_int_equal(pairs.unpaired, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(neighbours_of_one_thread_are_a_pair),   TEST(rings_do_not_mix),
		TEST(a_lost_sample_leaves_its_frames_alone), TEST(frames_before_the_beginning_do_not_count),
		TEST(a_gap_in_the_ring_is_no_neighbourhood), TEST(what_is_not_whole_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
