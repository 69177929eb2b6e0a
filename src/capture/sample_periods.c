/* SPDX-License-Identifier: MIT */
/* sample_periods.c - see sample_periods.h.
 *
 * At a frequency the kernel changes after each sample how many events it skips until the next.
 * A sample of a software event has that new number, not how many had passed: perf_swevent_event()
 * copies last_period, by which perf_swevent_set_period() sets the counter right after (kernel/events/core.c,
 * Linux 6.12). At a steady rate the two are equal; in bursts they differ tenfold. So each sample
 * gets the number of the previous one, of the same thread on the same processor, for each such
 * pair has a counter of its own. Its first sample is after one event, which it has itself.
 */
#include "src/capture/sample_periods.h"

static uint64_t key_of(pid_t tid, unsigned cpu)
{
	return ((uint64_t)(uint32_t)tid << 32 | cpu) + 1;
}

void sample_periods_done(struct sample_periods *paces)
{
	id_map_done(&paces->next);
}

int sample_periods_take(struct sample_periods *paces, pid_t tid, unsigned cpu, uint64_t told, uint64_t *ret)
{
	struct id_slot *slot = id_map_find(&paces->next, key_of(tid, cpu));
	uint32_t next = (uint32_t)MIN(told, (uint64_t)UINT32_MAX);
	int r = 0;

	*ret = slot && slot->id > 0 ? slot->id : told;
	if (slot)
		slot->id = next;
	else
		r = id_map_add(&paces->next, key_of(tid, cpu), next);
	return r;
}

void sample_periods_forget(struct sample_periods *paces, pid_t tid, unsigned cpu)
{
	struct id_slot *slot = id_map_find(&paces->next, key_of(tid, cpu));

	if (slot)
		slot->id = 0;
}
