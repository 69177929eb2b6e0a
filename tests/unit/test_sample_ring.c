/* SPDX-License-Identifier: MIT */
/* The reader of an agent's ring: whole records, padding, records in the making, and memory that makes no sense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/agent/agent.h"

enum { DATA_BYTES = SAMPLE_RING_MIN_BYTES, ALL_BYTES = SAMPLE_RING_HEADER_BYTES + DATA_BYTES };

static _Alignas(64) uint8_t memory[ALL_BYTES];
static struct sample_ring *const ring = (struct sample_ring *)memory;
static struct sample_ring_reader reader;

static int set_up(void **state)
{
	(void)state;
	memset(memory, 0xa5, sizeof memory);
	*ring = (struct sample_ring){ .magic = SAMPLE_RING_MAGIC,
				      .version = SAMPLE_RING_VERSION,
				      .data_bytes = DATA_BYTES };
	return sample_ring_reader_init(memory, sizeof memory, &reader);
}

static int tear_down(void **state)
{
	(void)state;
	sample_ring_reader_done(&reader);
	return 0;
}

static void *at(uint64_t position)
{
	return memory + SAMPLE_RING_HEADER_BYTES + position % DATA_BYTES;
}

/* As the agent writes it, but for the commit. @python: entries; less than 0: no frames. */
static struct sample_record *write_sample(uint64_t position, int python, uint32_t stack_bytes)
{
	struct sample_record *record = at(position);
	uint32_t python_bytes = python < 0 ? 0
					   : (uint32_t)(sizeof(struct python_record) +
							(size_t)python * sizeof(struct python_entry));

	*record = (struct sample_record){
		.start = { .n_bytes = sample_ring_align((uint32_t)sizeof *record + python_bytes + stack_bytes),
			   .kind = SAMPLE_RECORD_SAMPLE },
		.time_ns = 1000 + position,
		.weight_ns = 7,
		.tid = 42,
		.python_bytes = python_bytes,
		.stack_bytes = stack_bytes,
	};
	if (python >= 0)
		*(struct python_record *)(record + 1) = (struct python_record){ .mark = PYTHON_MARK,
										.n_entries = (uint32_t)python };
	memset((uint8_t *)(record + 1) + python_bytes, 0x5a, stack_bytes);
	return record;
}

static void commit(uint64_t position)
{
	((struct sample_record_start *)at(position))->commit = sample_ring_commit(position);
}

static uint64_t put(uint64_t position, int python, uint32_t stack_bytes)
{
	struct sample_record *record = write_sample(position, python, stack_bytes);

	commit(position);
	ring->head = position + record->start.n_bytes;
	return ring->head;
}

static void samples_come_in_order(void **state)
{
	struct sample_ring_sample sample;
	uint64_t time_ns, second;

	(void)state;
	assert_int_equal(sample_ring_take(&reader, &sample), 0);
	second = put(0, 3, 64);
	put(second, -1, 0);
	assert_true(sample_ring_time(&reader, &time_ns));
	assert_int_equal(time_ns, 1000);
	assert_int_equal(sample_ring_take(&reader, &sample), 1);
	assert_int_equal(sample.record.tid, 42);
	assert_int_equal(sample.python->n_entries, 3);
	assert_int_equal(sample.stack[63], 0x5a);
	assert_int_equal(ring->tail, second);
	assert_int_equal(sample_ring_take(&reader, &sample), 1);
	assert_null(sample.python);
	assert_int_equal(sample.record.time_ns, 1000 + second);
	assert_int_equal(sample_ring_take(&reader, &sample), 0);
	assert_false(sample_ring_time(&reader, &time_ns));
}

/* What is reserved and not written yet hides those behind it, and what lies there from the round before is no record. */
static void one_in_the_making_is_waited_for(void **state)
{
	struct sample_ring_sample sample;
	uint64_t first = write_sample(0, 1, 16)->start.n_bytes;

	(void)state;
	put(first, 1, 16);
	assert_int_equal(sample_ring_take(&reader, &sample), 0);
	((struct sample_record_start *)at(0))->commit = sample_ring_commit(0) - sample_ring_commit(DATA_BYTES);
	assert_int_equal(sample_ring_take(&reader, &sample), 0);
	commit(0);
	assert_int_equal(sample_ring_take(&reader, &sample), 1);
	assert_int_equal(sample_ring_take(&reader, &sample), 1);
}

static void padding_is_passed_over(void **state)
{
	const uint64_t end = DATA_BYTES - 64;
	struct sample_record_start *padding = at(end);
	struct sample_ring_sample sample;
	uint64_t time_ns;

	(void)state;
	reader.tail = ring->tail = end;
	*padding = (struct sample_record_start){ .n_bytes = 64, .kind = SAMPLE_RECORD_PADDING };
	commit(end);
	put(DATA_BYTES, 0, 8);
	assert_true(sample_ring_time(&reader, &time_ns));
	assert_int_equal(time_ns, 1000 + DATA_BYTES);
	assert_int_equal(ring->tail, end);
	assert_int_equal(sample_ring_take(&reader, &sample), 1);
	assert_int_equal(sample.record.stack_bytes, 8);
}

static void assert_refused(void)
{
	struct sample_ring_sample sample;

	assert_int_equal(sample_ring_take(&reader, &sample), -EBADMSG);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct sample_record *record;

	(void)state;
	put(0, 2, 64);
	ring->head = DATA_BYTES + 16;
	assert_refused();
	ring->head = 8;
	assert_refused();

	for (int i = 0; i < 9; i++) {
		reader.tail = ring->tail = 0;
		put(0, 2, 64);
		record = at(0);
		if (i == 0)
			record->start.n_bytes = 8;
		else if (i == 1)
			record->start.n_bytes += 8;
		else if (i == 2)
			record->start.n_bytes = 1 << 30;
		else if (i == 3)
			record->start.kind = 9;
		else if (i == 4)
			record->stack_bytes = UINT32_MAX - 7;
		else if (i == 5)
			record->python_bytes = UINT32_MAX;
		else if (i == 6)
			((struct python_record *)(record + 1))->n_entries = PYTHON_MAX_ENTRIES + 1;
		else if (i == 7)
			((struct python_record *)(record + 1))->n_entries = 1;
		else
			record->tid = 0;
		assert_refused();
	}
}

static void other_memory_is_no_ring(void **state)
{
	struct sample_ring_reader other;

	(void)state;
	assert_int_equal(sample_ring_reader_init(memory, SAMPLE_RING_HEADER_BYTES, &other), -EBADMSG);
	assert_int_equal(sample_ring_reader_init(memory, ALL_BYTES - 8, &other), -EBADMSG);
	ring->data_bytes *= 2;
	assert_int_equal(sample_ring_reader_init(memory, ALL_BYTES, &other), -EBADMSG);
	ring->data_bytes /= 2;
	ring->version++;
	assert_int_equal(sample_ring_reader_init(memory, ALL_BYTES, &other), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_come_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_in_the_making_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(padding_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_memory_is_no_ring, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
