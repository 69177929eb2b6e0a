/* SPDX-License-Identifier: MIT */
/* switches.c - see switches.h.
 *
 * A thread that switches very often would fill the rings with its stacks. Each event therefore has
 * a limit of samples a second, not a period of switches: rare switches
 * are all sampled, and for frequent ones the kernel finds the distance by itself. The choice of
 * sampled switches does not affect durations: these come from the records.
 *
 * The kernel switches events of a thread together with it, which costs more than all else here. So with a
 * BPF program there is one event per processor: the program knows the wanted processes, and
 * enforces a limit by itself, half of the kernel's, which also counts switches of other processes.
 *
 * These samples have 16 KiB of stack: most threads that have just
 * left stay away long enough to read the rest from memory.
 */
#include "src/capture/switches.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum { MAX_STACK_BYTES = 16384, STACKS_A_SECOND = 1000, CLOCK_NS = 2000000 };

void switches_ask(struct event_set *set, enum capture_mode mode)
{
	if (mode == MODE_CPU)
		return;
	set->attr.context_switch = 1;
	if (mode == MODE_OFFCPU)
		set->attr.config = PERF_COUNT_SW_DUMMY;
}

void switches_init(struct event_set *set, const struct event_set *beside)
{
	long most = proc_number("/proc/sys/kernel/perf_event_max_sample_rate", STACKS_A_SECOND);
	struct perf_event_attr attr = beside->attr;

	attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	attr.freq = 1;
	attr.sample_freq = (uint64_t)MAX(MIN(most, (long)STACKS_A_SECOND), 1L);
	attr.sample_stack_user = MIN(attr.sample_stack_user, (uint32_t)MAX_STACK_BYTES);
	attr.exclude_kernel = 0;
	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.context_switch = 0;
	/* A timer wakes the reader: a wake-up at each switch would cost more than the switch. */
	attr.watermark = 1;
	attr.wakeup_watermark = 0;
	attr.disabled = attr.enable_on_exec = 0;
	attr.inherit = 1;
	attr.exclude_idle = 0;
	*set = (struct event_set){ .rings = beside->rings, .bpf = beside->bpf, .attr = attr, .at_switch = true };
}

int switches_start(struct event_set *set, const pid_t *pids, size_t n_pids, bool launch, bool system_wide)
{
	int r;

	if (system_wide)
		r = events_attach_wide(set, 0);
	else
		r = launch ? events_launch(set, pids[0]) : events_attach_all(set, pids, n_pids);
	if (r >= 0)
		return 1;
	if (r != -EACCES && r != -EPERM && r != -EMFILE && r != -ENFILE)
		return r;
	events_done(set);
	return 0;
}

int switches_clock(int epoll_fd, int *ret)
{
	const struct itimerspec spec = { .it_value.tv_nsec = CLOCK_NS, .it_interval.tv_nsec = CLOCK_NS };
	struct epoll_event event = { .events = EPOLLIN };
	CLEANUP(closep) int fd = -1;

	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0 || timerfd_settime(fd, 0, &spec, NULL) < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

void switches_clock_served(int clock)
{
	uint64_t n;

	if (clock >= 0 && read(clock, &n, sizeof n) < 0)
		return; /* the timer had not expired */
}
