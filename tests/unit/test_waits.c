/* SPDX-License-Identifier: MIT */
/* test_waits.c - each thread's intervals of time, from switches that are made here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/pipeline/waits.h"

enum { PID = 100, TID = 101, OTHER = 102, MS = 1000000, PERIOD = 10 * MS };

/* What has been put. */
static struct kept {
	struct interval intervals[4096];
	uint32_t ids[4096]; /* of their stacks; 0: none */
	uint32_t objects[4096];
	size_t n;
	int error;
} kept;

static int keep(void *data, const struct interval *interval)
{
	assert_ptr_equal(data, &kept);
	assert_true(kept.n < N_ELEMENTS(kept.intervals));
	kept.intervals[kept.n] = *interval;
	kept.objects[kept.n] = interval->stack ? interval->stack->object : 0;
	kept.ids[kept.n++] = interval->stack ? interval->stack->id : 0;
	return kept.error;
}

static struct waits *begin(bool running)
{
	struct waits *waits;

	memset(&kept, 0, sizeof kept);
	assert_int_equal(waits_new(running, keep, &kept, &waits), 0);
	return waits;
}

static uint64_t sum_of(pid_t tid)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < kept.n; i++)
		if (kept.intervals[i].tid == tid)
			sum += kept.intervals[i].weight;
	return sum;
}

static void assert_interval(size_t i, enum thread_state state, uint64_t since_ns, uint64_t weight, uint32_t id)
{
	assert_true(i < kept.n);
	assert_int_equal(kept.intervals[i].state, state);
	assert_int_equal(kept.intervals[i].since_ns, since_ns);
	assert_int_equal(kept.intervals[i].weight, weight);
	assert_int_equal(kept.ids[i], id);
}

static void leave(struct waits *waits, pid_t tid, uint64_t time_ns)
{
	assert_int_equal(waits_sched_out(waits, PID, tid, 1, false, time_ns), 0);
}

static void enter(struct waits *waits, pid_t tid, uint64_t time_ns)
{
	assert_int_equal(waits_sched_in(waits, PID, tid, time_ns), 0);
}

static void enter_late(struct waits *waits, uint64_t time_ns)
{
	assert_int_equal(waits_sched_in_late(waits, PID, TID, time_ns), 0);
}

static void stack_at(struct waits *waits, uint32_t id, uint64_t from_ns, uint64_t to_ns, bool at_switch)
{
	const struct wait_stack stack = {
		.id = id,
		.depth = 3,
		.state = STATE_IO,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.at_switch = at_switch,
	};

	assert_int_equal(waits_stack(waits, PID, TID, &stack), 0);
}

static void a_wait_has_the_stack_of_its_switch(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	stack_at(waits, 7, 20 * MS - 5, 20 * MS - 5, true);
	leave(waits, TID, 20 * MS);
	enter(waits, TID, 50 * MS);
	assert_int_equal(kept.n, 1);
	assert_interval(0, STATE_IO, 20 * MS, 30 * MS, 7);
	assert_int_equal(kept.intervals[0].cpu, 1);

	/* The same one is not the next wait's. */
	leave(waits, TID, 60 * MS);
	enter(waits, TID, 100 * MS);
	assert_int_equal(kept.n, 1);
	waits_free(waits);
}

/* Switch records may arrive before the samples. */
static void or_of_the_moment_after_it(void **state)
{
	struct waits *waits = begin(true);
	uint64_t since_ns;
	pid_t pid, tid;

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 20 * MS);
	stack_at(waits, 7, 20 * MS + 5, 20 * MS + 5, true);
	assert_false(waits_next(waits, 40 * MS, &pid, &tid, &since_ns)); /* nothing to read */
	enter(waits, TID, 50 * MS);
	assert_int_equal(kept.n, 1);
	assert_interval(0, STATE_IO, 20 * MS, 30 * MS, 7);
	leave(waits, TID, 60 * MS);
	assert_true(waits_next(waits, 61 * MS, &pid, &tid, &since_ns));
	enter(waits, TID, 100 * MS);
	assert_int_equal(kept.n, 1);
	assert_int_equal(waits_exit(waits, TID, 101 * MS), 0);
	assert_interval(1, STATE_IO, 60 * MS, 40 * MS, 7);
	assert_interval(2, STATE_RUNNING, 101 * MS, 21 * MS, 7); /* where it was seen last */
	waits_free(waits);
}

static void preempted_is_runnable_whatever_it_was_in(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	stack_at(waits, 7, 11 * MS, 11 * MS, true);
	assert_int_equal(waits_sched_out(waits, PID, TID, 0, true, 12 * MS), 0);
	enter(waits, TID, 20 * MS);
	assert_interval(0, STATE_RUNNABLE, 12 * MS, 8 * MS, 7);
	waits_free(waits);
}

/* A look is believed only where all of it lies within the wait. */
static void looks_are_held_against_switches(void **state)
{
	static const struct {
		uint64_t from_ns, to_ns;
		bool fits;
	} looks[] = {
		{ 20 * MS, 50 * MS, true },      { 30 * MS, 31 * MS, true },  { 19 * MS, 31 * MS, false },
		{ 30 * MS, 50 * MS + 1, false }, { 12 * MS, 13 * MS, false }, { 51 * MS, 52 * MS, false },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(looks); i++) {
		struct waits *waits = begin(true);

		enter(waits, TID, 10 * MS);
		stack_at(waits, 9, looks[i].from_ns, looks[i].to_ns, false);
		leave(waits, TID, 20 * MS);
		enter(waits, TID, 50 * MS);
		assert_int_equal(kept.n, looks[i].fits);
		assert_int_equal(waits_end(waits, 50 * MS), 0);
		assert_int_equal(sum_of(TID), 40 * MS); /* however that was */
		waits_free(waits);
	}
}

/* It is ahead of the records of switches. */
static void a_look_waits_for_its_wait(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 20 * MS);
	stack_at(waits, 9, 71 * MS, 72 * MS, false);
	enter(waits, TID, 30 * MS);
	leave(waits, TID, 70 * MS);
	enter(waits, TID, 90 * MS);
	assert_int_equal(kept.n, 1);
	/* And it represents the one before, which was long, too. */
	assert_interval(0, STATE_IO, 70 * MS, 30 * MS, 9);
	waits_free(waits);
}

static void lost_records_cast_doubt_on_looks(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 20 * MS);
	stack_at(waits, 9, 21 * MS, 22 * MS, false);
	assert_int_equal(waits_invalidate(waits), 0);
	enter(waits, TID, 50 * MS);
	assert_int_equal(kept.n, 0);
	waits_free(waits);
}

/* A thread without a single switch has no other evidence than a look. */
static void who_waits_is_looked_at_again_after_a_loss(void **state)
{
	struct waits *waits = begin(true);
	uint64_t since_ns;
	pid_t pid, tid;

	(void)state;
	waits_begin(waits, 100 * MS);
	assert_int_equal(waits_find(waits, PID, TID), 0);
	assert_true(waits_next(waits, 200 * MS, &pid, &tid, &since_ns));
	stack_at(waits, 9, 201 * MS, 202 * MS, false);
	assert_int_equal(waits_invalidate(waits), 0);
	assert_int_equal(waits_invalidate(waits), 0);
	assert_true(waits_next(waits, 300 * MS, &pid, &tid, &since_ns));
	assert_int_equal(tid, TID);
	assert_false(waits_next(waits, 300 * MS, &pid, &tid, &since_ns)); /* once */
	stack_at(waits, 8, 301 * MS, 302 * MS, false);
	assert_int_equal(waits_end(waits, 400 * MS), 0);
	assert_int_equal(kept.n, 1);
	assert_interval(0, STATE_IO, 100 * MS, 300 * MS, 8);
	waits_free(waits);
}

static uint64_t unknown(const struct waits *waits)
{
	struct waits_sums sums;

	waits_read_sums(waits, &sums);
	return sums.unknown_ns;
}

/* A new thread that no program in the kernel saw arrive is sampled before it leaves, which reports both. */
static void an_arrival_may_be_reported_after_a_sample(void **state)
{
	struct waits *waits = begin(true);
	uint64_t weight;

	(void)state;
	assert_int_equal(waits_created(waits, PID, TID, 10 * MS), 0);
	assert_int_equal(waits_account_run(waits, PID, TID, PERIOD, 40 * MS, &weight), 0);
	assert_int_equal(weight, PERIOD);
	enter_late(waits, 25 * MS);
	leave(waits, TID, 42 * MS);
	assert_int_equal(waits_exit(waits, TID, 42 * MS), 0);
	assert_int_equal(waits_end(waits, 50 * MS), 0);
	assert_int_equal(unknown(waits), 0);
	assert_int_equal(kept.n, 2);
	assert_interval(0, STATE_RUNNABLE, 10 * MS, 15 * MS, 0);
	assert_interval(1, STATE_RUNNING, 42 * MS, 7 * MS, 0); /* all that the sample does not cover */
	waits_free(waits);
}

static void or_after_the_end_of_its_thread(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	assert_int_equal(waits_created(waits, PID, TID, 10 * MS), 0);
	assert_int_equal(waits_exit(waits, TID, 40 * MS), 0);
	assert_int_equal(kept.n, 0);
	enter_late(waits, 25 * MS);
	leave(waits, TID, 41 * MS);
	assert_int_equal(waits_end(waits, 50 * MS), 0);
	assert_int_equal(unknown(waits), 0);
	assert_int_equal(kept.n, 2);
	assert_interval(0, STATE_RUNNABLE, 10 * MS, 15 * MS, 0);
	assert_interval(1, STATE_RUNNING, 40 * MS, 15 * MS, 0);
	waits_free(waits);
}

/* Or before it left another processor, by the scheduler's clock. */
static void or_with_a_time_that_cannot_be(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 20 * MS);
	enter_late(waits, 20 * MS - 5);
	leave(waits, TID, 25 * MS);
	enter(waits, TID, 30 * MS);
	enter_late(waits, 28 * MS); /* known already */
	assert_int_equal(waits_exit(waits, TID, 40 * MS), 0);
	assert_int_equal(waits_end(waits, 50 * MS), 0);
	assert_int_equal(unknown(waits), 0);
	assert_int_equal(sum_of(TID), 30 * MS);
	waits_free(waits);
}

/* Whose arrival is not reported because the recording ends has waited until a sample saw it at work. */
static void the_end_leaves_no_doubt(void **state)
{
	struct waits *waits = begin(true);
	uint64_t weight;

	(void)state;
	assert_int_equal(waits_created(waits, PID, TID, 10 * MS), 0);
	assert_int_equal(waits_account_run(waits, PID, TID, PERIOD, 40 * MS, &weight), 0);
	assert_int_equal(waits_end(waits, 50 * MS), 0);
	assert_int_equal(unknown(waits), 0);
	assert_int_equal(kept.n, 2);
	assert_interval(0, STATE_RUNNABLE, 10 * MS, 20 * MS, 0);
	assert_interval(1, STATE_RUNNING, 50 * MS, 10 * MS, 0);
	waits_free(waits);
}

/* The arrival after a sample is another one, and so is the thread that has the same number later. */
static void a_later_arrival_settles_no_doubt(void **state)
{
	struct waits *waits = begin(true);
	uint64_t weight;

	(void)state;
	assert_int_equal(waits_created(waits, PID, TID, 10 * MS), 0);
	assert_int_equal(waits_account_run(waits, PID, TID, PERIOD, 40 * MS, &weight), 0);
	enter(waits, TID, 45 * MS);
	assert_int_equal(unknown(waits), 25 * MS); /* 20 ms before the sample, 5 ms after it */
	leave(waits, TID, 50 * MS);
	assert_int_equal(waits_exit(waits, TID, 60 * MS), 0);
	assert_int_equal(waits_created(waits, PID, TID, 70 * MS), 0);
	assert_int_equal(unknown(waits), 35 * MS);
	enter(waits, TID, 71 * MS);
	assert_int_equal(waits_end(waits, 80 * MS), 0);
	assert_int_equal(unknown(waits), 35 * MS);
	waits_free(waits);
}

static void waits_stand_for_others_of_their_kind(void **state)
{
	struct waits *waits = begin(true);
	uint64_t now = 10 * MS;

	(void)state;
	enter(waits, TID, now);
	for (int i = 0; i < 5; i++) { /* short ones without a stack */
		leave(waits, TID, now += MS);
		enter(waits, TID, now += MS);
	}
	assert_int_equal(kept.n, 0);
	stack_at(waits, 5, now + 1, now + 1, true); /* a long one with a stack is not concerned */
	leave(waits, TID, now += MS);
	enter(waits, TID, now += 20 * MS);
	assert_interval(0, STATE_IO, now - 20 * MS, 20 * MS, 5);
	stack_at(waits, 6, now + 1, now + 1, true);
	leave(waits, TID, now += MS);
	enter(waits, TID, now += 2 * MS);
	assert_interval(1, STATE_IO, now - 2 * MS, 7 * MS, 6);
	waits_free(waits);
}

static void what_is_owed_is_put_in_the_end(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 11 * MS);
	enter(waits, TID, 13 * MS);
	assert_int_equal(waits_exit(waits, TID, 20 * MS), 0);
	assert_int_equal(kept.n, 2);
	assert_interval(0, STATE_BLOCKED, 11 * MS, 2 * MS, 0);
	assert_interval(1, STATE_RUNNING, 20 * MS, 8 * MS, 0);
	/* Its last switches, from all processors. */
	leave(waits, TID, 21 * MS);
	assert_int_equal(waits_end(waits, 900 * MS), 0);
	assert_int_equal(kept.n, 2);
	waits_free(waits);
}

static void samples_weigh_what_ran_since(void **state)
{
	struct waits *waits = begin(true);
	uint64_t weight;

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 17 * MS);
	enter(waits, TID, 30 * MS);
	assert_int_equal(waits_account_run(waits, PID, TID, PERIOD, 33 * MS, &weight), 0);
	assert_int_equal(weight, 10 * MS);
	assert_int_equal(waits_account_run(waits, PID, TID, PERIOD, 43 * MS, &weight), 0);
	assert_int_equal(weight, 10 * MS);
	/* One that was not known of. */
	assert_int_equal(waits_account_run(waits, PID, OTHER, PERIOD, 43 * MS, &weight), 0);
	assert_int_equal(weight, PERIOD);
	waits_free(waits);
}

static void a_thread_that_never_switches(void **state)
{
	struct waits *waits = begin(true);
	uint64_t since_ns;
	pid_t pid, tid;

	(void)state;
	waits_begin(waits, 100 * MS);
	assert_int_equal(waits_find(waits, PID, TID), 0);
	assert_false(waits_next(waits, 100 * MS, &pid, &tid, &since_ns));
	assert_true(waits_next(waits, 100 * MS + 1, &pid, &tid, &since_ns));
	assert_int_equal(tid, TID);
	assert_int_equal(since_ns, 100 * MS);
	assert_false(waits_next(waits, 200 * MS, &pid, &tid, &since_ns));
	stack_at(waits, 3, 101 * MS, 102 * MS, false);
	assert_int_equal(waits_end(waits, 900 * MS), 0);
	assert_int_equal(kept.n, 1);
	assert_interval(0, STATE_IO, 100 * MS, 800 * MS, 3);
	waits_free(waits);
}

/* Alone on its processor a thread may run for seconds without a switch. */
static void a_thread_that_always_runs(void **state)
{
	struct waits *waits = begin(true);
	struct wait_stack running = { .id = 4, .state = STATE_RUNNABLE, .from_ns = 2 * MS, .to_ns = 3 * MS };

	(void)state;
	waits_begin(waits, MS);
	assert_int_equal(waits_find(waits, PID, TID), 0);
	assert_int_equal(waits_find(waits, PID, OTHER), 0);
	assert_int_equal(waits_stack(waits, PID, TID, &running), 0);
	assert_int_equal(waits_flush_partial(waits, 2 * WAIT_PORTION_NS), 0);
	assert_int_equal(kept.n, 0);
	assert_int_equal(waits_end(waits, 11 * MS), 0);
	assert_int_equal(kept.n, 2);
	assert_interval(0, STATE_RUNNING, 11 * MS, 10 * MS, 0);
	assert_interval(1, STATE_RUNNING, 11 * MS, 10 * MS, 0);
	waits_free(waits);
}

static void long_waits_come_in_portions(void **state)
{
	struct waits *waits = begin(true);
	uint64_t first = 20 * MS + WAIT_PORTION_NS, second = first + WAIT_PORTION_NS + 5;

	(void)state;
	enter(waits, TID, 10 * MS);
	leave(waits, TID, 20 * MS);
	assert_int_equal(waits_flush_partial(waits, first), 0);
	assert_int_equal(kept.n, 0); /* no read found it waiting */
	stack_at(waits, 3, 21 * MS, 22 * MS, false);
	assert_int_equal(waits_flush_partial(waits, first - 1), 0);
	assert_int_equal(kept.n, 0);
	assert_int_equal(waits_flush_partial(waits, first), 0);
	assert_interval(0, STATE_IO, 20 * MS, WAIT_PORTION_NS, 3);
	assert_int_equal(waits_flush_partial(waits, second), 0);
	assert_interval(1, STATE_IO, first, WAIT_PORTION_NS + 5, 3);
	enter(waits, TID, second + 30 * MS);
	assert_interval(2, STATE_IO, second, 30 * MS, 3);
	assert_int_equal(waits_end(waits, second + 31 * MS), 0);
	assert_int_equal(sum_of(TID), second + 21 * MS);
	waits_free(waits);
}

static void time_before_the_beginning_does_not_count(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	waits_begin(waits, 100 * MS);
	assert_int_equal(waits_find(waits, PID, TID), 0);
	enter(waits, TID, 50 * MS);
	leave(waits, TID, 60 * MS);
	enter(waits, TID, 120 * MS);
	assert_int_equal(waits_end(waits, 150 * MS), 0);
	assert_int_equal(sum_of(TID), 50 * MS);
	waits_free(waits);
}

static void new_threads_wait_for_a_processor(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	assert_int_equal(waits_created(waits, PID, TID, 10 * MS), 0);
	enter(waits, TID, 30 * MS);
	assert_int_equal(waits_end(waits, 31 * MS), 0);
	assert_interval(0, STATE_RUNNABLE, 10 * MS, 20 * MS, 0);
	assert_int_equal(sum_of(TID), 21 * MS);
	/* Its number comes again. */
	assert_int_equal(waits_created(waits, PID, TID, 40 * MS), 0);
	enter(waits, TID, 41 * MS);
	assert_int_equal(waits_exit(waits, TID, 42 * MS), 0);
	assert_int_equal(sum_of(TID), 23 * MS);
	waits_free(waits);
}

static void another_program_has_one_thread(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, PID, 10 * MS);
	enter(waits, TID, 10 * MS);
	leave(waits, PID, 20 * MS);
	assert_int_equal(waits_exec(waits, PID, PID, 30 * MS), 0);
	assert_int_equal(sum_of(TID), 20 * MS);
	enter(waits, PID, 29 * MS);
	enter(waits, PID, 28 * MS); /* reported late, because it had another TID then */
	assert_int_equal(waits_end(waits, 40 * MS), 0);
	assert_int_equal(sum_of(TID), 20 * MS);
	assert_int_equal(sum_of(PID), 30 * MS);
	waits_free(waits);
}

static void lost_records_leave_no_wrong_time(void **state)
{
	struct waits *waits = begin(true);
	struct waits_sums sums;

	(void)state;
	enter(waits, TID, 10 * MS);
	enter(waits, TID, 20 * MS); /* it left in between */
	leave(waits, TID, 25 * MS);
	leave(waits, TID, 35 * MS); /* it returned in between */
	enter(waits, TID, 40 * MS);
	leave(waits, TID, 41 * MS);
	assert_int_equal(waits_exit(waits, TID, 45 * MS), 0); /* only a running thread can exit: it came just now */
	assert_int_equal(waits_end(waits, 45 * MS), 0);
	waits_read_sums(waits, &sums);
	assert_int_equal(sums.unknown_ns, 20 * MS);
	assert_int_equal(sum_of(TID), 15 * MS);
	waits_free(waits);
}

static void only_who_still_waits_is_looked_at(void **state)
{
	struct waits *waits = begin(false);
	uint64_t since_ns;
	pid_t pid, tid;

	(void)state;
	enter(waits, TID, 10 * MS);
	enter(waits, OTHER, 10 * MS);
	leave(waits, TID, 11 * MS);
	assert_int_equal(waits_sched_out(waits, PID, OTHER, 0, true, 12 * MS), 0);
	enter(waits, TID, 13 * MS);
	leave(waits, TID, 14 * MS);
	assert_true(waits_next(waits, 15 * MS, &pid, &tid, &since_ns));
	assert_int_equal(tid, TID);
	assert_int_equal(since_ns, 14 * MS);
	assert_false(waits_next(waits, 15 * MS, &pid, &tid, &since_ns)); /* the other may run any moment */
	assert_true(waits_next(waits, 12 * MS + WAIT_SHORT_NS + 1, &pid, &tid, &since_ns));
	assert_int_equal(tid, OTHER);
	waits_free(waits);
}

/* Such samples may come before the switches of their time, and cover time before the start. */
static void samples_that_weigh_themselves(void **state)
{
	struct waits *waits = begin(true);
	struct waits_sums sums;

	(void)state;
	waits_begin(waits, 100 * MS);
	assert_int_equal(waits_find(waits, PID, TID), 0);
	assert_int_equal(waits_sampled(waits, TID, 30 * MS, 110 * MS), 10 * MS);
	assert_int_equal(waits_sampled(waits, TID, 5 * MS, 90 * MS), 0);
	leave(waits, TID, 120 * MS); /* it had run for 20 ms */
	enter(waits, TID, 150 * MS);
	assert_int_equal(waits_sampled(waits, TID, 40 * MS, 195 * MS), 40 * MS);
	assert_int_equal(waits_end(waits, 200 * MS), 0); /* 70 ms in all, of which samples have 50 */
	assert_int_equal(sum_of(TID), 30 * MS + 20 * MS);
	waits_read_sums(waits, &sums);
	assert_int_equal(sums.by_state[STATE_RUNNING], 70 * MS);
	waits_free(waits);
}

static void errors_are_handed_on(void **state)
{
	struct waits *waits = begin(true);

	(void)state;
	enter(waits, TID, 10 * MS);
	stack_at(waits, 7, 11 * MS, 11 * MS, true);
	leave(waits, TID, 12 * MS);
	kept.error = -ENOSPC;
	assert_int_equal(waits_sched_in(waits, PID, TID, 20 * MS), -ENOSPC);
	waits_free(waits);
}

/* For any records in any order: the intervals of a thread and the unknown time add up to its time. */
static void sums_hold_for_any_history(void **state)
{
	uint64_t seed = 12345;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct waits *waits = begin(true);
		uint64_t now = 1000 * MS, first, weight, ran = 0;
		struct waits_sums sums;

		first = now;
		assert_int_equal(waits_created(waits, PID, TID, now), 0);
		for (int i = 0; i < 300; i++) {
			seed = mix64(seed + 1);
			now += seed % (9 * MS);
			switch (seed >> 32 & 7) {
			case 0:
				enter_late(waits, now - seed % (5 * MS));
				break;
			case 1:
			case 2:
				enter(waits, TID, now);
				break;
			case 3:
			case 4:
				leave(waits, TID, now);
				break;
			case 5:
				assert_int_equal(waits_sched_out(waits, PID, TID, 0, true, now), 0);
				break;
			case 6:
				stack_at(waits, 2, now - seed % MS, now, seed & 1 << 20);
				break;
			default:
				assert_int_equal(waits_account_run(waits, PID, TID, PERIOD, now, &weight), 0);
				ran += weight;
			}
		}
		assert_int_equal(waits_exit(waits, TID, now), 0);
		assert_int_equal(waits_end(waits, now), 0);
		waits_read_sums(waits, &sums);
		assert_int_equal(sum_of(TID) + ran + sums.unknown_ns, now - first);
		waits_free(waits);
	}
}

/* What was read of a wait's object is of that wait if it went on until then. */
static void an_object_is_of_the_wait_that_it_was_read_in(void **state)
{
	struct wait_stack stack = { .id = 7,
				    .state = STATE_IO,
				    .from_ns = 10 * MS,
				    .to_ns = 10 * MS,
				    .at_switch = true,
				    .object = 5,
				    .object_ns = 14 * MS };
	struct waits *waits = begin(true);

	(void)state;
	assert_int_equal(waits_created(waits, PID, TID, 0), 0);
	enter(waits, TID, 1 * MS);
	assert_int_equal(waits_stack(waits, PID, TID, &stack), 0);
	leave(waits, TID, 10 * MS);
	enter(waits, TID, 13 * MS);
	assert_int_equal(kept.objects[kept.n - 1], 0);
	assert_interval(kept.n - 1, STATE_IO, 10 * MS, 3 * MS, 7);
	stack.from_ns = stack.to_ns = 20 * MS;
	stack.object_ns = 24 * MS;
	assert_int_equal(waits_stack(waits, PID, TID, &stack), 0);
	leave(waits, TID, 20 * MS);
	enter(waits, TID, 24 * MS);
	assert_interval(kept.n - 1, STATE_IO, 20 * MS, 4 * MS, 7);
	assert_int_equal(kept.objects[kept.n - 1], 5);
	waits_free(waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_has_the_stack_of_its_switch),
		cmocka_unit_test(or_of_the_moment_after_it),
		cmocka_unit_test(preempted_is_runnable_whatever_it_was_in),
		cmocka_unit_test(looks_are_held_against_switches),
		cmocka_unit_test(a_look_waits_for_its_wait),
		cmocka_unit_test(lost_records_cast_doubt_on_looks),
		cmocka_unit_test(who_waits_is_looked_at_again_after_a_loss),
		cmocka_unit_test(an_arrival_may_be_reported_after_a_sample),
		cmocka_unit_test(or_after_the_end_of_its_thread),
		cmocka_unit_test(or_with_a_time_that_cannot_be),
		cmocka_unit_test(the_end_leaves_no_doubt),
		cmocka_unit_test(a_later_arrival_settles_no_doubt),
		cmocka_unit_test(waits_stand_for_others_of_their_kind),
		cmocka_unit_test(what_is_owed_is_put_in_the_end),
		cmocka_unit_test(samples_weigh_what_ran_since),
		cmocka_unit_test(a_thread_that_never_switches),
		cmocka_unit_test(a_thread_that_always_runs),
		cmocka_unit_test(long_waits_come_in_portions),
		cmocka_unit_test(time_before_the_beginning_does_not_count),
		cmocka_unit_test(new_threads_wait_for_a_processor),
		cmocka_unit_test(another_program_has_one_thread),
		cmocka_unit_test(lost_records_leave_no_wrong_time),
		cmocka_unit_test(only_who_still_waits_is_looked_at),
		cmocka_unit_test(an_object_is_of_the_wait_that_it_was_read_in),
		cmocka_unit_test(samples_that_weigh_themselves),
		cmocka_unit_test(errors_are_handed_on),
		cmocka_unit_test(sums_hold_for_any_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
