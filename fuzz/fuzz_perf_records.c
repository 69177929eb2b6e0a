/* SPDX-License-Identifier: MIT */
/* fuzz_perf_records.c - arbitrary bytes as the contents of a perf ring.
 *
 * The first byte says what samples carry (RECORD_HAS_CHAIN and the like), the second where in
 * the ring the contents begin (so that records wrap around); the rest is what
 * the kernel is supposed to have written.
 */
#include <stdlib.h>
#include <string.h>

#include "src/capture/decode.h"
#include "src/capture/merge.h"
#include "src/capture/descheduled.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { RING_BYTES = 1 << 17 };

static uint64_t checksum; /* keeps the compiler from dropping the reads */

static void touch(const void *bytes, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i++)
		checksum += ((const uint8_t *)bytes)[i];
}

/* Read everything an event points to. */
static void touch_event(const struct capture_event *event)
{
	switch (event->type) {
	case CAPTURE_SAMPLE:
		touch(event->sample.stack, event->sample.stack_bytes);
		if (event->sample.raw)
			touch(event->sample.raw, event->sample.raw_bytes);
		for (size_t i = 0; i < event->sample.n_kernel_ips; i++)
			checksum += event->sample.kernel_ips[i];
		break;
	case CAPTURE_MMAP:
		touch(event->mmap.path, strlen(event->mmap.path));
		break;
	case CAPTURE_COMM:
		touch(event->comm.name, strlen(event->comm.name));
		break;
	default:
		break;
	}
}

/* Decode again in a block of exact size, where the sanitizer detects every overrun. */
static void decode_alone(const struct perf_event_header *record, unsigned format)
{
	struct perf_event_header *copy = malloc(record->size);
	struct record_origin origin;
	struct capture_event event;

	if (!copy)
		abort();
	memcpy(copy, record, record->size);
	if (record_decode(copy, format, &event) > 0)
		touch_event(&event);
	if (record_origin(copy, &origin) == 0)
		checksum += origin.id;
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct perf_event_mmap_page control;
	static _Alignas(8) uint8_t contents[RING_BYTES];
	const struct perf_event_header *record;
	struct merge merge;
	struct perf_ring ring;
	size_t start, n;

	if (n_bytes < 2)
		return 0;
	n = (n_bytes - 2) & ~(size_t)7;
	if (n > RING_BYTES)
		n = RING_BYTES;
	start = RING_BYTES - (size_t)data[1] * 8;
	for (size_t i = 0; i < n; i++)
		contents[(start + i) % RING_BYTES] = data[2 + i];

	perf_ring_init(&ring, &control, contents, RING_BYTES);
	ring.position = ring.head = start;
	control.data_tail = start;
	control.data_head = start + n;
	if (merge_init(&merge, &ring, 1) < 0)
		abort();
	merge_begin(&merge, UINT64_MAX);
	while ((record = merge_next(&merge)) != NULL) {
		const struct descheduled_query question = { .tid = data[1], .current = &ring };

		decode_alone(record, data[0] & 7);
		checksum += descheduled_since(&ring, 1, &question);
	}
	if (control.data_tail != control.data_head)
		abort();
	merge_done(&merge);
	return 0;
}
