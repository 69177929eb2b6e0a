/* SPDX-License-Identifier: MIT */
/* run_times.c - see run_times.h.
 *
 * Timers of events run a little longer than the records of switches say, for they are set before and taken down after. So a sample
 * counts in full where most of its period is accounted for.
 */
#include "src/capture/run_times.h"

#include <errno.h>

#include "base/util.h"

/* Less than such a part of a thread's time is not worth a row. */
enum { SHARE = 50 };

void run_times_done(struct run_times *times)
{
	id_map_done(&times->index);
	free(times->items);
	*times = (struct run_times){ 0 };
}

static struct run_time *find(const struct run_times *times, pid_t tid)
{
	const struct id_slot *slot = id_map_find(&times->index, (uint64_t)tid + 1);

	return slot ? &times->items[slot->id] : NULL;
}

/* NULL: no memory. */
static struct run_time *find_or_add(struct run_times *times, pid_t tid)
{
	struct run_time *time = find(times, tid);

	if (time)
		return time;
	if (grow(&times->items, times->n, &times->allocated, sizeof *times->items) < 0 ||
	    id_map_add(&times->index, (uint64_t)tid + 1, (uint32_t)times->n) < 0)
		return NULL;
	time = &times->items[times->n++];
	*time = (struct run_time){ 0 };
	return time;
}

static void run_until(struct run_time *time, uint64_t now_ns)
{
	if (time->since_ns != 0 && now_ns > time->since_ns)
		time->owed_ns += now_ns - time->since_ns;
	time->since_ns = 0;
}

static void run_from(struct run_time *time, uint64_t now_ns)
{
	time->is_known = true;
	time->since_ns = now_ns;
}

int run_times_note(struct run_times *times, const struct capture_event *event)
{
	bool is_exec = event->type == CAPTURE_COMM && event->comm.is_exec;
	struct run_time *time;

	if (event->type == CAPTURE_LOST)
		run_times_forget(times);
	if ((event->type != CAPTURE_SWITCH && event->type != CAPTURE_FORK && event->type != CAPTURE_EXIT && !is_exec) ||
	    event->tid <= 0)
		return 0;
	time = find_or_add(times, event->tid);
	if (!time)
		return -ENOMEM;
	if (event->type == CAPTURE_FORK)
		*time = (struct run_time){ .is_known = true };
	else if (event->type == CAPTURE_EXIT || (event->type == CAPTURE_SWITCH && event->change.is_out))
		run_until(time, event->time_ns);
	else if (event->type == CAPTURE_SWITCH || time->since_ns == 0) /* an exec: from here on events are on */
		run_from(time, event->time_ns);
	return 0;
}

int run_times_weigh(struct run_times *times, const struct sample *sample, uint64_t *ret_ns)
{
	uint64_t period_ns = sample->weight;
	struct run_time *time = find_or_add(times, sample->tid);

	if (!time)
		return -ENOMEM;
	*ret_ns = period_ns;
	if (!time->is_known)
		return 0;
	run_until(time, sample->time_ns);
	time->since_ns = sample->time_ns;
	if (time->owed_ns < period_ns - period_ns / 8)
		*ret_ns = MAX(time->owed_ns, 1u);
	time->owed_ns -= MIN(time->owed_ns, period_ns);
	time->told_ns += *ret_ns;
	return 0;
}

uint64_t run_times_unsampled(const struct run_times *times, pid_t tid)
{
	const struct run_time *time = find(times, tid);

	return time && time->is_known && time->owed_ns > time->told_ns / SHARE ? time->owed_ns : 0;
}

void run_times_forget(struct run_times *times)
{
	for (size_t i = 0; i < times->n; i++)
		times->items[i] = (struct run_time){ 0 };
}
