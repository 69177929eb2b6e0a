/* SPDX-License-Identifier: MIT */
/* run_times.c - see run_times.h.
 *
 * Timers of events run a little longer than the records of switches show, for they are set before and taken down after. So a
 * sample counts in full where most of its period is accounted for.
 *
 * A timer may be late by several periods, and gives one sample then (hrtimer_forward_now() in perf_swevent_hrtimer(),
 * kernel/events/core.c, Linux 6.18). The reasons:
 * 1. The kernel throttled sampling, or ran with interrupts off. The thread used this time. The sample weighs all of these
 *    periods: where the thread is at the end of the gap stands for the gap. This is fair if the length of the gap does not depend
 *    on the stack; after an interval with interrupts off, the sample shows the function that enables them.
 * 2. The hypervisor ran another machine. The guest's clock goes on, and a kernel with a steal clock does not account this time
 *    to the thread. Neither does a sample.
 * 3. The thread was in the kernel, and the user may not sample the kernel. Nothing tells this from 1, so the sample weighs one period.
 * The kernel's account of the thread tells 1 from 2. It is read after the sample, so it is never too small but for
 * the part of a clock tick that the kernel has not accounted yet. Read at late samples, and from time to time, because the hypervisor
 * also takes parts of a period.
 */
#include "src/capture/run_times.h"

#include <errno.h>

#include "base/util.h"

/* A smaller fraction of a thread's time does not justify a row. */
enum { SHARE = 50 };

/* Retention expects rows of about the order of their times. */
#define LONGEST_SHIFT_NS UINT64_C(1000000000)

/* The kernel accounts a running thread's time at each clock tick; this is the longest, of 100 Hz. */
enum { ACCOUNT_LAG_NS = 10000000, ACCOUNT_SAMPLES = 64 };

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

/* NULL: out of memory. */
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
		*time = (struct run_time){ .is_known = true, .is_based = true, .seen_ns = event->time_ns };
	else if (event->type == CAPTURE_EXIT || (event->type == CAPTURE_SWITCH && event->change.is_out))
		run_until(time, event->time_ns);
	else if (event->type == CAPTURE_SWITCH || time->since_ns == 0) /* at an exec, events become active */
		run_from(time, event->time_ns);
	if (is_exec) /* the calling thread now has the leader's TID */
		time->is_based = false;
	return 0;
}

/*
 * What the kernel had accounted to the thread when no sample weighed anything: a lower bound, as the thread may have run all
 * the time between its sample and now. The sample that is read soonest gives the largest bound, which is the best one.
 */
static void find_base(struct run_time *time, const struct sample *sample, uint64_t used_ns)
{
	uint64_t now_ns = monotonic_ns(), later_ns = now_ns > sample->time_ns ? now_ns - sample->time_ns : 0;
	int64_t least_ns = (int64_t)used_ns - (int64_t)later_ns - (int64_t)time->owed_ns - (int64_t)time->told_ns;

	time->base_ns = time->is_based ? MAX(time->base_ns, least_ns) : least_ns;
	time->is_based = true;
}

/* Limit the owed time to what the kernel accounts. */
static void limit(struct run_times *times, struct run_time *time, const struct sample *sample)
{
	uint64_t period_ns = sample->weight, used_ns;
	int64_t left_ns;

	if (time->is_based && ++time->n_since < ACCOUNT_SAMPLES && time->owed_ns < 2 * period_ns && !time->is_over)
		return;
	time->n_since = 0;
	if (!times->account || times->account(sample->pid, sample->tid, &used_ns) < 0)
		return;
	find_base(time, sample, used_ns);
	left_ns = (int64_t)used_ns + ACCOUNT_LAG_NS - time->base_ns - (int64_t)time->told_ns;
	time->is_over = left_ns < (int64_t)period_ns;
	time->owed_ns = MIN(time->owed_ns, (uint64_t)MAX(left_ns, (int64_t)0));
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
	time->since_ns = time->seen_ns = sample->time_ns;
	limit(times, time, sample);
	if (time->owed_ns < period_ns - period_ns / 8)
		*ret_ns = MAX(time->owed_ns, 1u);
	else if (times->has_kernel && time->owed_ns >= 2 * period_ns)
		*ret_ns = time->owed_ns / period_ns * period_ns;
	time->owed_ns -= MIN(time->owed_ns, *ret_ns);
	time->told_ns += *ret_ns;
	return 0;
}

uint64_t run_times_unsampled(const struct run_times *times, pid_t tid, uint64_t end_ns, uint64_t *ret_at_ns)
{
	const struct run_time *time = find(times, tid);

	*ret_at_ns = end_ns;
	if (time && time->seen_ns > 0)
		*ret_at_ns = MAX(time->seen_ns, end_ns - MIN(end_ns, LONGEST_SHIFT_NS));
	return time && time->is_known && time->owed_ns > time->told_ns / SHARE ? time->owed_ns : 0;
}

void run_times_forget(struct run_times *times)
{
	for (size_t i = 0; i < times->n; i++)
		times->items[i] = (struct run_time){ 0 };
}
