/* SPDX-License-Identifier: MIT */
/* switch_rings.c - see switch_rings.h.
 *
 * Read in rounds, as perf's rings are (merge.c), so that both together stay in order.
 *
 * Invariants:
 * 1. tail <= position <= head. The kernel's side does not write to [tail, head).
 * 2. The tail moves rarely: each switch reads its cache line, and each move takes that away.
 */
#include "src/capture/switch_rings.h"

#include <errno.h>
#include <stdlib.h>

/* Report after this many records even within a round, before the ring fills up. */
enum { RECORDS_AT_ONCE = SWITCH_RING_RECORDS / 4 };

int switch_rings_init(struct switch_rings *rings, struct switch_ring *shared, size_t n)
{
	*rings = (struct switch_rings){
		.rings = shared, .readers = calloc(n, sizeof *rings->readers), .n = n, .next = n
	};
	return rings->readers ? 0 : -ENOMEM;
}

void switch_rings_done(struct switch_rings *rings)
{
	free(rings->readers);
	*rings = (struct switch_rings){ 0 };
}

static const struct switch_record *record_at(const struct switch_rings *rings, size_t i)
{
	return &rings->rings[i].records[rings->readers[i].position & (SWITCH_RING_RECORDS - 1)];
}

static void give_back(struct switch_rings *rings, size_t i)
{
	__atomic_store_n(&rings->rings[i].tail, rings->readers[i].position, __ATOMIC_RELEASE);
}

static void choose(struct switch_rings *rings)
{
	uint64_t best_ns = 0;

	rings->next = rings->n;
	rings->has_left = false;
	for (size_t i = 0; i < rings->n; i++) {
		uint64_t time_ns;

		if (rings->readers[i].position == rings->readers[i].head)
			continue;
		time_ns = record_at(rings, i)->time_ns;
		if (time_ns > rings->horizon_ns || (rings->next < rings->n && time_ns >= best_ns))
			continue;
		rings->next = i;
		best_ns = time_ns;
	}
}

bool switch_rings_begin(struct switch_rings *rings, uint64_t now_ns)
{
	bool any = false;

	rings->horizon_ns = now_ns;
	for (size_t i = 0; i < rings->n; i++) {
		struct switch_reader *reader = &rings->readers[i];

		if (rings->rings[i].tail != reader->position)
			give_back(rings, i);
		reader->head = __atomic_load_n(&rings->rings[i].head, __ATOMIC_ACQUIRE);
		any |= reader->head != reader->position;
	}
	choose(rings);
	return any;
}

bool switch_rings_time(const struct switch_rings *rings, uint64_t *ret_ns)
{
	if (rings->next == rings->n)
		return false;
	*ret_ns = record_at(rings, rings->next)->time_ns;
	return true;
}

static void advance(struct switch_rings *rings)
{
	size_t i = rings->next;

	rings->readers[i].position++;
	if (rings->readers[i].position - rings->rings[i].tail >= RECORDS_AT_ONCE)
		give_back(rings, i);
	choose(rings);
}

void switch_rings_take(struct switch_rings *rings, struct capture_event *ret)
{
	const struct switch_record *record = record_at(rings, rings->next);

	*ret = (struct capture_event){ .type = CAPTURE_SWITCH, .time_ns = record->time_ns };
	if (record->out == 0 && record->in == 0) {
		ret->type = CAPTURE_LOST;
		ret->lost.n = record->out_pid;
		advance(rings);
		return;
	}
	ret->change.cpu = (unsigned)rings->next;
	if (record->out != 0 && !rings->has_left) {
		ret->pid = (pid_t)record->out_pid;
		ret->tid = (pid_t)(record->out & ~SWITCH_PREEMPTED);
		ret->change.is_out = true;
		ret->change.is_preempted = record->out & SWITCH_PREEMPTED;
		rings->has_left = record->in != 0;
	} else {
		ret->pid = (pid_t)record->in_pid;
		ret->tid = (pid_t)record->in;
		ret->change.is_late = record->out == 0 && record->out_pid != 0;
		if (ret->change.is_late)
			ret->time_ns -= (uint64_t)record->out_pid * SWITCH_LATE_NS;
		rings->has_left = false;
	}
	if (!rings->has_left)
		advance(rings);
}

uint64_t switch_rings_lost(const struct switch_rings *rings)
{
	uint64_t n = 0;

	for (size_t i = 0; i < rings->n; i++)
		n += __atomic_load_n(&rings->rings[i].n_lost, __ATOMIC_RELAXED);
	return n;
}
