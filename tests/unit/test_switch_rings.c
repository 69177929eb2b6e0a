/* SPDX-License-Identifier: MIT */
/* test_switch_rings.c - switches out of memory that the kernel's side, here the test, writes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/switch_rings.h"

enum { N_CPUS = 3, PID = 100, OTHER_PID = 200 };

struct fixture {
	struct switch_ring *shared;
	struct switch_rings rings;
};

static struct fixture begin(void)
{
	struct fixture fixture = { .shared = calloc(N_CPUS, sizeof *fixture.shared) };

	assert_non_null(fixture.shared);
	assert_int_equal(switch_rings_init(&fixture.rings, fixture.shared, N_CPUS), 0);
	return fixture;
}

static void end(struct fixture *fixture)
{
	switch_rings_done(&fixture->rings);
	free(fixture->shared);
}

static void put(struct fixture *fixture, unsigned cpu, struct switch_record record)
{
	struct switch_ring *ring = &fixture->shared[cpu];

	assert_true(ring->head - ring->tail < SWITCH_RING_RECORDS);
	ring->records[ring->head++ % SWITCH_RING_RECORDS] = record;
}

static void put_switch(struct fixture *fixture, unsigned cpu, uint64_t time_ns, uint32_t out, uint32_t in)
{
	put(fixture, cpu,
	    (struct switch_record){
		    .time_ns = time_ns, .out = out, .in = in, .out_pid = out ? PID : 0, .in_pid = OTHER_PID });
}

static struct capture_event take(struct fixture *fixture)
{
	struct capture_event event;
	uint64_t time_ns;

	assert_true(switch_rings_time(&fixture->rings, &time_ns));
	switch_rings_take(&fixture->rings, &event);
	assert_int_equal(event.time_ns, time_ns);
	return event;
}

static void assert_taken(struct fixture *fixture, uint64_t time_ns, pid_t pid, pid_t tid, unsigned cpu, bool is_out)
{
	struct capture_event event = take(fixture);

	assert_int_equal(event.type, CAPTURE_SWITCH);
	assert_int_equal(event.time_ns, time_ns);
	assert_int_equal(event.pid, pid);
	assert_int_equal(event.tid, tid);
	assert_int_equal(event.change.cpu, cpu);
	assert_int_equal(event.change.is_out, is_out);
}

static void assert_over(struct fixture *fixture)
{
	uint64_t time_ns;

	assert_false(switch_rings_time(&fixture->rings, &time_ns));
}

static void a_switch_is_of_two_threads(void **state)
{
	struct fixture fixture = begin();

	(void)state;
	assert_false(switch_rings_begin(&fixture.rings, 100));
	assert_over(&fixture);
	put_switch(&fixture, 1, 10, 101, 202);
	put_switch(&fixture, 1, 20, 202, 0);
	put_switch(&fixture, 1, 30, 0, 101);
	assert_over(&fixture); /* no round has begun since */
	assert_true(switch_rings_begin(&fixture.rings, 100));
	assert_taken(&fixture, 10, PID, 101, 1, true);
	assert_taken(&fixture, 10, OTHER_PID, 202, 1, false);
	assert_taken(&fixture, 20, PID, 202, 1, true);
	assert_taken(&fixture, 30, OTHER_PID, 101, 1, false);
	assert_over(&fixture);
	assert_false(switch_rings_begin(&fixture.rings, 100));
	assert_int_equal(fixture.shared[1].tail, 3);
	end(&fixture);
}

static void who_could_have_gone_on_is_told_apart(void **state)
{
	struct fixture fixture = begin();
	struct capture_event event;

	(void)state;
	put_switch(&fixture, 0, 10, 101 | SWITCH_PREEMPTED, 102);
	put_switch(&fixture, 0, 11, 102, 101);
	assert_true(switch_rings_begin(&fixture.rings, 100));
	event = take(&fixture);
	assert_int_equal(event.tid, 101);
	assert_true(event.change.is_out && event.change.is_preempted);
	event = take(&fixture);
	assert_false(event.change.is_out || event.change.is_preempted);
	event = take(&fixture);
	assert_true(event.change.is_out);
	assert_false(event.change.is_preempted);
	end(&fixture);
}

/* It comes in the order of its report, with its own time. */
static void an_arrival_that_is_reported_late(void **state)
{
	struct fixture fixture = begin();
	struct capture_event event;
	uint64_t time_ns;

	(void)state;
	put_switch(&fixture, 0, 9000, 7, 0);
	put(&fixture, 1, (struct switch_record){ .time_ns = 10000, .in = 7, .in_pid = PID, .out_pid = 3 });
	put_switch(&fixture, 1, 10000, 7, 0);
	assert_true(switch_rings_begin(&fixture.rings, 20000));
	assert_taken(&fixture, 9000, PID, 7, 0, true);
	assert_true(switch_rings_time(&fixture.rings, &time_ns));
	assert_int_equal(time_ns, 10000);
	switch_rings_take(&fixture.rings, &event);
	assert_int_equal(event.time_ns, 10000 - 3 * SWITCH_LATE_NS);
	assert_true(event.pid == PID && event.tid == 7 && event.change.is_late && !event.change.is_out);
	assert_taken(&fixture, 10000, PID, 7, 1, true);
	end(&fixture);
}

static void processors_in_order_of_time_and_no_later_than_now(void **state)
{
	struct fixture fixture = begin();

	(void)state;
	put_switch(&fixture, 2, 10, 1, 0);
	put_switch(&fixture, 0, 20, 2, 3);
	put_switch(&fixture, 2, 20, 4, 0); /* at the same time: in any order, but each record at once */
	put_switch(&fixture, 1, 41, 5, 0);
	assert_true(switch_rings_begin(&fixture.rings, 40));
	assert_taken(&fixture, 10, PID, 1, 2, true);
	assert_taken(&fixture, 20, PID, 2, 0, true);
	assert_taken(&fixture, 20, OTHER_PID, 3, 0, false);
	assert_taken(&fixture, 20, PID, 4, 2, true);
	assert_over(&fixture);
	assert_true(switch_rings_begin(&fixture.rings, 40)); /* it waits, but is not ripe */
	assert_over(&fixture);
	assert_true(switch_rings_begin(&fixture.rings, UINT64_MAX));
	assert_taken(&fixture, 41, PID, 5, 1, true);
	end(&fixture);
}

static void losses_stand_where_they_were(void **state)
{
	struct fixture fixture = begin();
	struct capture_event event;

	(void)state;
	put_switch(&fixture, 0, 10, 1, 0);
	put(&fixture, 0, (struct switch_record){ .time_ns = 30, .out_pid = 77 });
	put_switch(&fixture, 0, 30, 2, 0);
	fixture.shared[0].n_lost = 77;
	fixture.shared[2].n_lost = 5; /* nothing came behind those */
	assert_true(switch_rings_begin(&fixture.rings, 100));
	assert_taken(&fixture, 10, PID, 1, 0, true);
	event = take(&fixture);
	assert_int_equal(event.type, CAPTURE_LOST);
	assert_int_equal(event.lost.n, 77);
	assert_taken(&fixture, 30, PID, 2, 0, true);
	assert_over(&fixture);
	assert_int_equal(switch_rings_lost(&fixture.rings), 82);
	end(&fixture);
}

/* Space is released in the middle of a long round, and the ring wraps around. */
static void nothing_is_lost_or_comes_twice_for_long(void **state)
{
	enum { TOTAL = 5 * SWITCH_RING_RECORDS + 7 };
	struct fixture fixture = begin();
	uint64_t n_put = 0, n_taken = 0, time_ns;

	(void)state;
	while (n_taken < TOTAL) {
		while (n_put < TOTAL && fixture.shared[0].head - fixture.shared[0].tail < SWITCH_RING_RECORDS) {
			put_switch(&fixture, 0, n_put, (uint32_t)n_put + 1, 0);
			n_put++;
		}
		switch_rings_begin(&fixture.rings, UINT64_MAX);
		while (switch_rings_time(&fixture.rings, &time_ns)) {
			assert_taken(&fixture, n_taken, PID, (pid_t)n_taken + 1, 0, true);
			n_taken++;
			assert_true(n_taken - fixture.shared[0].tail <= SWITCH_RING_RECORDS / 4);
		}
	}
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_switch_is_of_two_threads),
		cmocka_unit_test(who_could_have_gone_on_is_told_apart),
		cmocka_unit_test(an_arrival_that_is_reported_late),
		cmocka_unit_test(processors_in_order_of_time_and_no_later_than_now),
		cmocka_unit_test(losses_stand_where_they_were),
		cmocka_unit_test(nothing_is_lost_or_comes_twice_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
