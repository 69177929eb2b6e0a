/* SPDX-License-Identifier: MIT */
/* own_periods.c - see own_periods.h.
 *
 * A child inherits its parent's events as clones, each with a whole period to go. If the two take turns on a processor, the
 * kernel does not take one's events off and put the other's on: it swaps them. The parent then has the whole periods,
 * and its begun ones end with the child. A thread that starts a process more often than once a period never has a sample.
 *
 * Events are no clones if the child has not inherited all. So a thread that starts processes gets one event more, which counts
 * nothing and is inherited by threads alone. Source: inherit_task_group() and perf_event_context_sched_out(),
 * kernel/events/core.c, Linux 6.18.
 */
#include "src/capture/own_periods.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

static void drop(struct forking *thread)
{
	if (thread->tid != 0 && thread->fd >= 0)
		close(thread->fd);
	thread->tid = 0;
}

void own_periods_done(struct own_periods *periods)
{
	for (size_t i = 0; i < MAX_FORKING; i++)
		drop(&periods->threads[i]);
}

static struct forking *find(struct own_periods *periods, pid_t tid)
{
	for (size_t i = 0; i < MAX_FORKING; i++)
		if (periods->threads[i].tid == tid)
			return &periods->threads[i];
	return NULL;
}

static int open_event(pid_t tid)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = 1,
		.inherit_thread = 1, /* Linux 5.13 */
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	attr.inherit = attr.inherit_thread = 0;
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void own_periods_forked(struct own_periods *periods, pid_t tid)
{
	struct forking *thread = find(periods, tid);

	if (thread) {
		if (thread->fd < 0)
			thread->fd = open_event(tid);
		return;
	}
	thread = &periods->threads[periods->next];
	periods->next = (periods->next + 1) % MAX_FORKING;
	drop(thread);
	*thread = (struct forking){ .tid = tid, .fd = -1 };
}

void own_periods_ended(struct own_periods *periods, pid_t tid)
{
	struct forking *thread = find(periods, tid);

	if (thread)
		drop(thread);
}
