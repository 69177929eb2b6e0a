/* SPDX-License-Identifier: MIT */
/* dup_events.c - the same thread from two events; see dup_events.h.
 *
 * A thread born while we attach may or may not have inherited its creator's
 * event, and nothing reveals which. It therefore gets an event of its own (a
 * late one, see events.c), and if its records then turn out to come from
 * two events, one of them is closed. It is always the one opened later:
 *
 *   Let thread t be sampled on one CPU by events a and b, opened on threads A
 *   and B, a before b. A thread gets an event either directly or, at its birth,
 *   from its creator; so A and B are both in the line of creators that ends
 *   with t. B is not above A: then b would have come to t through A, which had
 *   it from birth, so before a was opened on A. So A is above B, a came to t
 *   through B, and B had it from birth: before b was opened on B, and with it
 *   every thread that got b from B got a as well. So b is redundant.
 *
 * Invariant: a slot has the latest record of some (tid, cpu). Slots are
 * overwritten when others fall on them; that only makes the discovery later.
 */
#include "src/capture/dup_events.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

enum { N_SLOTS = 2048 };

struct dup_events {
	struct slot {
		pid_t tid; /* 0: empty */
		unsigned cpu;
		uint64_t id;
	} slots[N_SLOTS];
};

int dup_events_new(struct dup_events **ret)
{
	struct dup_events *streams = calloc(1, sizeof *streams);

	if (!streams)
		return -ENOMEM;
	*ret = streams;
	return 0;
}

void dup_events_free(struct dup_events *streams)
{
	free(streams);
}

static struct slot *slot_of(struct dup_events *streams, pid_t tid, unsigned cpu)
{
	return &streams->slots[mix64((uint64_t)(uint32_t)tid << 32 | cpu) % N_SLOTS];
}

uint64_t dup_events_note(struct dup_events *streams, pid_t tid, unsigned cpu, uint64_t id)
{
	struct slot *slot = slot_of(streams, tid, cpu);
	uint64_t later;

	if (slot->tid != tid || slot->cpu != cpu) {
		*slot = (struct slot){ .tid = tid, .cpu = cpu, .id = id };
		return 0;
	}
	if (slot->id == id)
		return 0;
	later = MAX(slot->id, id);
	slot->id = MIN(slot->id, id);
	return later;
}

void dup_events_forget(struct dup_events *streams, pid_t tid, unsigned cpu)
{
	struct slot *slot = slot_of(streams, tid, cpu);

	if (slot->tid == tid && slot->cpu == cpu)
		slot->tid = 0;
}

void dup_events_forget_all(struct dup_events *streams)
{
	memset(streams, 0, sizeof *streams);
}
