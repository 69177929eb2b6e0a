/* SPDX-License-Identifier: MIT */
/* descheduled.c - whether a sampled thread has not run since its sample; see descheduled.h.
 *
 * A reader that a sample wakes on the sample's processor replaces the sampled thread there: on
 * the kernel's way back from the interrupt, before another instruction of the thread runs. Memory
 * is then as of the sample, until the thread gets a processor again.
 *
 * The kernel records both. Each switch has a record in the ring of its processor, complete before
 * the thread runs on. So the condition is: after the sample comes a record that the thread was preempted, within the
 * time of the interrupt; and no ring has a record of its return.
 *
 * Invariants:
 * 1. The rings' heads are read after the memory in question: if a thread that came back
 *    has changed it, its record had been written before.
 * 2. A lost record would hide a return, so the rings must have room, and few records to search.
 * 3. The interrupt that wakes the reader may come late, as under a hypervisor. Should another program preempt the thread
 *    within MAX_LEAVING_NS, it has run until then, without a record. So the top of its stack must be as sampled, too.
 */
#include "src/capture/descheduled.h"

#include <string.h>
#include <sys/uio.h>

#include "base/machine.h"
#include "src/capture/decode.h"

enum {
	MAX_RECORDS = 64, /* limit: after more records, the read is too late anyway */
	MIN_FREE_BYTES = 1024,
	MAX_SWITCH_BYTES = 64, /* size of a switch record */
	TOP_BYTES = 1024,      /* of the stack: the innermost functions, which a thread that runs changes first */
	/*
	 * From a sample's time to the thread's switch-out: the kernel copies the stack, wakes us and switches, 30 to 60
	 * us as measured. If the reader was not scheduled at once, it waits for the next tick, 1 to 10 ms.
	 */
	MAX_LEAVING_NS = 100000,
};

static const void *at(const struct perf_ring *ring, uint64_t position)
{
	return ring->data + (position & (ring->n_bytes - 1));
}

/* The record may wrap around; its words never do. */
static void copy_record(const struct perf_ring *ring, uint64_t position, size_t n_bytes, uint64_t *to)
{
	for (size_t i = 0; i < n_bytes / sizeof *to; i++)
		memcpy(&to[i], at(ring, position + i * sizeof *to), sizeof *to);
}

/* Whether a thread left a CPU or came back since a sample. */
struct moves {
	bool left, came;
};

static bool take_record(const struct perf_ring *ring, uint64_t position, const struct perf_event_header *header,
			const struct descheduled_query *question, struct moves *moves)
{
	uint64_t record[MAX_SWITCH_BYTES / sizeof(uint64_t)];
	struct capture_event event;

	if (header->type == PERF_RECORD_LOST)
		return false;
	if (header->type != PERF_RECORD_SWITCH && header->type != PERF_RECORD_SWITCH_CPU_WIDE)
		return true;
	if (header->size > sizeof record)
		return false;
	copy_record(ring, position, header->size, record);
	if (record_decode((const struct perf_event_header *)record, 0, &event) <= 0)
		return false;
	if (event.tid != question->tid || event.time_ns < question->time_ns)
		return true;
	moves->came |= !event.change.is_out;
	moves->left |= event.change.is_preempted && event.time_ns - question->time_ns <= MAX_LEAVING_NS;
	return true;
}

/* False: a lost or malformed record makes the answer unknown. */
static bool take_ring(const struct perf_ring *ring, const struct descheduled_query *question, struct moves *moves)
{
	uint64_t position = ring->position + (ring == question->current ? ring->n_record_bytes : 0);
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	unsigned n = 0;

	if (head - ring->control->data_tail > ring->n_bytes - MIN_FREE_BYTES)
		return false;
	while (position != head) {
		struct perf_event_header header;

		memcpy(&header, at(ring, position), sizeof header);
		if (header.size < sizeof header || header.size % 8 != 0 || header.size > head - position ||
		    n++ == MAX_RECORDS || !take_record(ring, position, &header, question, moves))
			return false;
		position += header.size;
	}
	return true;
}

bool descheduled_since(const struct perf_ring *rings, size_t n_rings, const struct descheduled_query *question)
{
	struct moves moves = { 0 };

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n_rings && !moves.came; i++)
		if (!take_ring(&rings[i], question, &moves))
			return false;
	return moves.left && !moves.came;
}

bool descheduled_stack_is_unchanged(const struct sample *sample)
{
	char top[TOP_BYTES];
	size_t n = sample->stack_bytes < sizeof top ? sample->stack_bytes : sizeof top;
	struct iovec here = { top, n };
	struct iovec there = { (void *)(uintptr_t)sample->regs.value[MACHINE_REG_SP], n };

	if (!sample->has_user || n == 0)
		return true;
	return process_vm_readv(sample->pid, &here, 1, &there, 1, 0) == (ssize_t)n &&
	       memcmp(top, sample->stack, n) == 0;
}
