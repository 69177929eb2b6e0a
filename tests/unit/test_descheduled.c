/* SPDX-License-Identifier: MIT */
/* test_descheduled.c - whether a thread has run since a sample, from the records of its switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/machine.h"
#include "base/util.h"
#include "src/capture/descheduled.h"

enum { RING_BYTES = 4096, N_RINGS = 2, TID = 7, OTHER = 8, SAMPLE_NS = 1000000, SOON_NS = SAMPLE_NS + 40000 };
enum { IN = 0, OUT = PERF_RECORD_MISC_SWITCH_OUT, PREEMPTED = OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT };

/* The kernel's side of a ring. */
struct writer {
	struct perf_event_mmap_page control;
	_Alignas(8) uint8_t data[RING_BYTES];
};

static struct writer writers[N_RINGS];
static struct perf_ring rings[N_RINGS];

static void put(struct writer *writer, const void *bytes, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i++)
		writer->data[(writer->control.data_head + i) % RING_BYTES] = ((const uint8_t *)bytes)[i];
	writer->control.data_head += n_bytes;
}

static void put_record(struct writer *writer, uint32_t type, uint16_t misc, pid_t tid, uint64_t time_ns)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t time_ns, cpu, id;
	} record = {
		.header = { .type = type, .misc = misc, .size = sizeof record },
		.pid = TID,
		.tid = (uint32_t)tid,
		.time_ns = time_ns,
	};

	put(writer, &record, sizeof record);
}

static void put_switch(struct writer *writer, uint16_t misc, pid_t tid, uint64_t time_ns)
{
	put_record(writer, PERF_RECORD_SWITCH, misc, tid, time_ns);
}

/* Rings that begin at such a position; a sample, current, is first in the first. */
static void begin_at(uint64_t position)
{
	struct perf_event_header sample = { .type = PERF_RECORD_SAMPLE, .size = sizeof sample };

	memset(writers, 0, sizeof writers);
	for (int i = 0; i < N_RINGS; i++) {
		perf_ring_init(&rings[i], &writers[i].control, writers[i].data, RING_BYTES);
		rings[i].position = rings[i].head = position;
		writers[i].control.data_head = writers[i].control.data_tail = position;
	}
	put(&writers[0], &sample, sizeof sample);
	perf_ring_refresh(&rings[0]);
}

static bool stands_still(void)
{
	const struct descheduled_query question = { .tid = TID, .time_ns = SAMPLE_NS, .current = &rings[0] };

	return descheduled_since(rings, N_RINGS, &question);
}

static void test_who_was_made_to_leave_at_once(void **state)
{
	(void)state;
	begin_at(0);
	assert_false(stands_still()); /* it runs on, elsewhere than we */
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	assert_true(stands_still());
	put_switch(&writers[1], IN, OTHER, SOON_NS + 1);
	put_switch(&writers[1], PREEMPTED, OTHER, SOON_NS + 2);
	assert_true(stands_still());
}

static void test_who_came_back_does_not(void **state)
{
	(void)state;
	for (int i = 0; i < N_RINGS; i++) {
		begin_at(0);
		put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
		put_switch(&writers[i], IN, TID, SOON_NS + 1);
		assert_false(stands_still());
		/* Nor when it is away again. */
		put_switch(&writers[i], PREEMPTED, TID, SOON_NS + 2);
		assert_false(stands_still());
	}
}

static void test_who_left_by_itself_or_late(void **state)
{
	(void)state;
	begin_at(0);
	put_switch(&writers[0], OUT, TID, SOON_NS); /* it went to wait, and had run until then */
	assert_false(stands_still());
	begin_at(0);
	put_switch(&writers[0], PREEMPTED, TID, SAMPLE_NS + 1000000);
	assert_false(stands_still());
	begin_at(0);
	put_switch(&writers[0], PREEMPTED, OTHER, SOON_NS);
	assert_false(stands_still());
}

static void test_what_was_before_does_not_count(void **state)
{
	(void)state;
	begin_at(0);
	put_switch(&writers[1], PREEMPTED, TID, SAMPLE_NS - 2000);
	put_switch(&writers[1], IN, TID, SAMPLE_NS - 1000);
	assert_false(stands_still());
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	assert_true(stands_still());
}

static void test_records_wrap_around(void **state)
{
	(void)state;
	for (uint64_t before_end = 8; before_end < 48; before_end += 8) {
		begin_at(RING_BYTES - before_end);
		put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
		assert_true(stands_still());
		put_switch(&writers[0], IN, TID, SOON_NS);
		assert_false(stands_still());
	}
}

static void test_rings_that_do_not_tell(void **state)
{
	struct perf_event_header senseless = { .type = PERF_RECORD_SWITCH, .size = 4 };

	(void)state;
	begin_at(0);
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	put_record(&writers[1], PERF_RECORD_LOST, 0, OTHER, SOON_NS);
	assert_false(stands_still());

	begin_at(0); /* more than one looks through */
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	for (int i = 0; i < 70; i++)
		put_switch(&writers[1], IN, OTHER, SOON_NS);
	assert_false(stands_still());

	begin_at(0); /* full: what came then found no room */
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	assert_true(stands_still());
	writers[1].control.data_head += RING_BYTES - 512;
	assert_false(stands_still());

	begin_at(0);
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	put(&writers[1], &senseless, sizeof senseless);
	assert_false(stands_still());
	begin_at(0);
	put_switch(&writers[0], PREEMPTED, TID, SOON_NS);
	senseless.size = 128; /* longer than what was written */
	put(&writers[1], &senseless, sizeof senseless);
	assert_false(stands_still());
}

/* This process stands for the sampled thread. */
static void test_who_changed_its_stack_has_run(void **state)
{
	enum { N_BYTES = 8192, PAGE = 4096 };
	uint8_t *stack = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t copy[N_BYTES] = { 0 };
	struct sample sample = {
		.pid = getpid(), .tid = getpid(), .has_user = true, .stack = copy, .stack_bytes = N_BYTES
	};

	(void)state;
	assert_ptr_not_equal(stack, MAP_FAILED);
	sample.regs.value[MACHINE_REG_SP] = (uintptr_t)stack;
	assert_true(descheduled_stack_is_unchanged(&sample));
	stack[200] = 1;
	assert_false(descheduled_stack_is_unchanged(&sample));
	copy[200] = 1;
	assert_true(descheduled_stack_is_unchanged(&sample));

	sample.stack_bytes = 100; /* fewer were captured */
	stack[100] = 2;
	assert_true(descheduled_stack_is_unchanged(&sample));
	sample.regs.value[MACHINE_REG_SP] += N_BYTES - 50; /* they end where nothing can be read */
	assert_int_equal(munmap(stack + PAGE, PAGE), 0);
	assert_false(descheduled_stack_is_unchanged(&sample));
	sample.stack_bytes = 0;
	assert_true(descheduled_stack_is_unchanged(&sample));
	assert_int_equal(munmap(stack, PAGE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_was_made_to_leave_at_once),
		cmocka_unit_test(test_who_came_back_does_not),
		cmocka_unit_test(test_who_left_by_itself_or_late),
		cmocka_unit_test(test_what_was_before_does_not_count),
		cmocka_unit_test(test_records_wrap_around),
		cmocka_unit_test(test_rings_that_do_not_tell),
		cmocka_unit_test(test_who_changed_its_stack_has_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
