/* SPDX-License-Identifier: MIT */
/* sample_ring.c - the reader of a ring; see sample_ring.h. The writer is sampler.c.
 *
 * The memory can change at any time, and may say anything: each value is read once, and only the copy is looked at.
 */
#include "src/agent/sample_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sample_ring_reader_init(void *memory, uint64_t n_bytes, struct sample_ring_reader *ret)
{
	struct sample_ring *ring = memory;
	uint64_t data_bytes = n_bytes - SAMPLE_RING_HEADER_BYTES;
	uint8_t *copy;

	if (n_bytes < SAMPLE_RING_HEADER_BYTES + SAMPLE_RING_MIN_BYTES || data_bytes > SAMPLE_RING_MAX_BYTES ||
	    (data_bytes & (data_bytes - 1)) != 0 || ring->magic != SAMPLE_RING_MAGIC ||
	    ring->version != SAMPLE_RING_VERSION || ring->data_bytes != data_bytes)
		return -EBADMSG;
	copy = malloc(SAMPLE_RECORD_MAX_BYTES);
	if (!copy)
		return -ENOMEM;
	*ret = (struct sample_ring_reader){
		.ring = ring,
		.data = (const uint8_t *)memory + SAMPLE_RING_HEADER_BYTES,
		.data_bytes = data_bytes,
		.copy = copy,
	};
	return 0;
}

void sample_ring_reader_done(struct sample_ring_reader *reader)
{
	free(reader->copy);
	*reader = (struct sample_ring_reader){ 0 };
}

uint64_t sample_ring_head(const struct sample_ring_reader *reader)
{
	return __atomic_load_n(&reader->ring->head, __ATOMIC_ACQUIRE);
}

/* The beginning of the record at the tail. 1: it is whole; 0: none is; -EBADMSG. */
static int peek(const struct sample_ring_reader *reader, struct sample_record_start *ret)
{
	uint64_t head = sample_ring_head(reader), offset = reader->tail & (reader->data_bytes - 1);
	const struct sample_record_start *start = (const struct sample_record_start *)(reader->data + offset);

	if (head == reader->tail)
		return 0;
	if (head - reader->tail > reader->data_bytes || head % SAMPLE_RING_ALIGNMENT != 0)
		return -EBADMSG;
	if (__atomic_load_n(&start->commit, __ATOMIC_ACQUIRE) != sample_ring_commit(reader->tail))
		return 0;
	memcpy(ret, start, sizeof *ret);
	if (ret->n_bytes < sizeof *ret || ret->n_bytes % SAMPLE_RING_ALIGNMENT != 0 ||
	    ret->n_bytes > reader->data_bytes - offset || ret->n_bytes > head - reader->tail)
		return -EBADMSG;
	return 1;
}

static void skip(struct sample_ring_reader *reader, uint32_t n_bytes)
{
	reader->tail += n_bytes;
	__atomic_store_n(&reader->ring->tail, reader->tail, __ATOMIC_RELEASE);
}

/* Padding is passed over. */
static int next_record(struct sample_ring_reader *reader, struct sample_record_start *ret)
{
	int r;

	while ((r = peek(reader, ret)) > 0 && ret->kind == SAMPLE_RECORD_PADDING)
		skip(reader, ret->n_bytes);
	return r;
}

/* The frames of the copied record. */
static bool is_python(const struct python_record *python, uint32_t n_bytes)
{
	return n_bytes >= sizeof *python && python->mark == PYTHON_MARK && python->n_entries <= PYTHON_MAX_ENTRIES &&
	       python->n_states <= PYTHON_MAX_STATES &&
	       n_bytes == sizeof *python + python->n_entries * sizeof(struct python_entry);
}

static int check(uint8_t *copy, uint32_t n_bytes, struct sample_ring_sample *ret)
{
	uint32_t n_rest = n_bytes - (uint32_t)sizeof ret->record;
	uint8_t *rest = copy + sizeof ret->record;

	memcpy(&ret->record, copy, sizeof ret->record);
	if (ret->record.python_bytes > n_rest || ret->record.stack_bytes > n_rest - ret->record.python_bytes ||
	    ret->record.stack_bytes > SAMPLE_RING_MAX_STACK_BYTES || ret->record.stack_bytes % sizeof(uint64_t) != 0 ||
	    ret->record.tid <= 0)
		return -EBADMSG;
	ret->python = ret->record.python_bytes > 0 ? (struct python_record *)rest : NULL;
	ret->stack = rest + ret->record.python_bytes;
	return !ret->python || is_python(ret->python, ret->record.python_bytes) ? 1 : -EBADMSG;
}

int sample_ring_take(struct sample_ring_reader *reader, struct sample_ring_sample *ret)
{
	uint64_t offset;
	struct sample_record_start start;
	int r;

	r = next_record(reader, &start);
	if (r <= 0)
		return r;
	if (start.kind != SAMPLE_RECORD_SAMPLE || start.n_bytes < sizeof(struct sample_record) ||
	    start.n_bytes > SAMPLE_RECORD_MAX_BYTES)
		return -EBADMSG;
	offset = reader->tail & (reader->data_bytes - 1);
	memcpy(reader->copy, reader->data + offset, start.n_bytes);
	skip(reader, start.n_bytes);
	return check(reader->copy, start.n_bytes, ret);
}

bool sample_ring_time(const struct sample_ring_reader *reader, uint64_t *ret_ns)
{
	struct sample_ring_reader ahead = *reader; /* whose tail is not the writers' */
	struct sample_record_start start;
	uint64_t offset;
	int r;

	while ((r = peek(&ahead, &start)) > 0 && start.kind == SAMPLE_RECORD_PADDING)
		ahead.tail += start.n_bytes;
	if (r <= 0 || start.n_bytes < sizeof(struct sample_record))
		return false;
	offset = ahead.tail & (ahead.data_bytes - 1);
	memcpy(ret_ns, ahead.data + offset + offsetof(struct sample_record, time_ns), sizeof *ret_ns);
	return true;
}
