/* SPDX-License-Identifier: MIT */
/* fuzz_sample_ring.c - a ring that another process has written, and may write anything into.
 *
 * The input is the header's positions (head, tail: 8 bytes each), and then data from the beginning of the ring on. What
 * is taken out of it lies within the reader's copy and its bounds, and each step moves on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/agent/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { DATA_BYTES = SAMPLE_RING_MIN_BYTES, POSITION_BYTES = 2 * sizeof(uint64_t) };

static void check(const struct sample_ring_reader *reader, const struct sample_ring_sample *sample)
{
	const uint8_t *end = reader->copy + SAMPLE_RECORD_MAX_BYTES;
	const uint8_t *entries = (const uint8_t *)(sample->python + 1);

	if (sample->stack < reader->copy || sample->stack > end ||
	    sample->record.stack_bytes > (size_t)(end - sample->stack))
		abort();
	if (sample->python && (sample->python->n_entries > PYTHON_MAX_ENTRIES ||
			       entries + sample->python->n_entries * sizeof(struct python_entry) > sample->stack))
		abort();
}

static struct sample_ring *make_ring(const uint8_t *data, size_t n_bytes, uint64_t *ret_tail)
{
	struct sample_ring *ring = aligned_alloc(64, SAMPLE_RING_HEADER_BYTES + DATA_BYTES);

	if (!ring)
		abort();
	memset(ring, 0, SAMPLE_RING_HEADER_BYTES + DATA_BYTES);
	*ring = (struct sample_ring){ .magic = SAMPLE_RING_MAGIC,
				      .version = SAMPLE_RING_VERSION,
				      .data_bytes = DATA_BYTES };
	memcpy(&ring->head, data, sizeof ring->head);
	memcpy(ret_tail, data + sizeof ring->head, sizeof *ret_tail);
	n_bytes -= POSITION_BYTES;
	memcpy((uint8_t *)ring + SAMPLE_RING_HEADER_BYTES, data + POSITION_BYTES,
	       n_bytes < DATA_BYTES ? n_bytes : DATA_BYTES);
	return ring;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct sample_ring_reader reader;
	struct sample_ring_sample sample;
	struct sample_ring *ring;
	uint64_t tail, time_ns;

	if (n_bytes < POSITION_BYTES)
		return 0;
	ring = make_ring(data, n_bytes, &tail);
	if (sample_ring_reader_init(ring, SAMPLE_RING_HEADER_BYTES + DATA_BYTES, &reader) < 0)
		abort();
	reader.tail = tail - tail % SAMPLE_RING_ALIGNMENT; /* its own, which it only ever moves by whole records */
	for (;;) {
		uint64_t before = reader.tail;

		(void)sample_ring_time(&reader, &time_ns);
		if (sample_ring_take(&reader, &sample) <= 0)
			break;
		if (reader.tail <= before)
			abort();
		check(&reader, &sample);
	}
	sample_ring_reader_done(&reader);
	free(ring);
	return 0;
}
