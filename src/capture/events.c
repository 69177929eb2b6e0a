/* SPDX-License-Identifier: MIT */
/* events.c - opening perf events; see events.h.
 *
 * Inherited events can be mapped only if they are bound to a CPU, and rings
 * cannot be shared between CPUs. So each thread gets one event per CPU,
 * redirected to that CPU's ring. Threads and processes that a covered thread
 * creates inherit its events, with the ids of these.
 *
 * Attaching races with the target's creating threads: a thread that is created
 * after the list was read, and before its creator got its events, inherits
 * nothing (or the events of some CPUs only). So the list is read again until it
 * shows nothing new. A thread that appears then may just as well have
 * inherited everything; it gets events of its own all the same, called late,
 * and the reader of the records finds the redundant ones (see
 * dup_events.c) and closes them. No thread is missed and none counts twice.
 *
 * Threads of the first list cannot have inherited anything: they existed before
 * the first event.
 *
 * With a BPF program that filters samples by process (capture.c) there is another way: one
 * event per processor. It is used if there would be too many events, since the result is the
 * same except for other records of foreign processes.
 *
 * Features that the kernel or our rights do not allow are given up only while no event is
 * open yet, so that all events are alike: first the kernel's side of the
 * samples, then (Linux before 6.0) the count of losses per event, then (before 5.13) that
 * children do not inherit: capture.c drops their samples.
 */
#include "src/capture/events.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/decode.h"
#include "src/capture/switch_rate.h"

enum {
	MAX_WAKEUPS_HZ = 20,       /* if samples need not be read at once ... */
	MIN_WAKEUPS = 4,           /* ... but wake up when this fraction of a ring may be full */
	BESIDE_STACK_BYTES = 4096, /* size of a sample without its stack, with its Python frames: mostly less */
	MAX_HZ = 100000,           /* the kernel silently raises shorter periods */
	MAX_STACK_BYTES = 65528,
	/*
	 * A program that only creates threads would keep us listing for ever. After this many lists, new threads most
	 * likely inherited the event.
	 */
	MAX_LISTS = 8,
	/* Opening more events takes longer than the missed samples are worth. */
	MAX_EVENTS = 4096,
};

/* New threads, in the order of the list. */
struct task_list {
	pid_t *tids;
	size_t n, allocated;
};

static void task_list_done(struct task_list *list)
{
	free(list->tids);
}

/*
 * With PERF_SAMPLE_PERIOD, the kernel samples each software event instead of every Nth one. Source:
 * perf_swevent_event(), kernel/events/core.c, Linux 6.12.
 */
static int set_period(struct perf_event_attr *attr, const struct capture_options *options)
{
	if (options->event && options->event->kind != EVENT_CLOCK && options->count > 0) {
		attr->sample_period = options->count;
		if (options->count > 1)
			attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
		return options->count <= INT64_MAX ? 0 : -EINVAL;
	}
	if (!(options->hz >= 0.001 && options->hz <= MAX_HZ)) /* false for NaN */
		return -EINVAL;
	if (options->event && options->event->kind != EVENT_CLOCK) {
		attr->freq = 1;
		attr->sample_freq = MAX((uint64_t)options->hz, 1u);
	} else {
		attr->sample_period = (uint64_t)(1e9 / options->hz);
	}
	return 0;
}

static void leave_kernel_out(struct perf_event_attr *attr)
{
	attr->exclude_kernel = 1;
	attr->sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
}

static void set_event(struct event_set *set, const struct sampled_event *event)
{
	set->attr.type = event->type;
	set->attr.config = event->config;
	if (event->kind == EVENT_TRACEPOINT)
		set->attr.sample_type |= PERF_SAMPLE_RAW;
	set->is_clock = event->kind == EVENT_CLOCK;
	set->in_kernel = event->in_kernel;
}

int events_init(struct event_set *set, const struct capture_options *options, const struct perf_rings *rings)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = RECORD_SAMPLE_TYPE_KERNEL,
		.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.inherit = 1,
		.exclude_hv = 1,
		.exclude_callchain_user = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_regs_user = machine_perf_regs_mask,
		.sample_stack_user = (uint32_t)options->stack_bytes,
	};
	int r;

	if (options->stack_bytes % 8 != 0 || options->stack_bytes > MAX_STACK_BYTES)
		return -EINVAL;
	r = set_period(&attr, options);
	if (r < 0)
		return r;
	/* Wake up at each sample to read live memory right after it; otherwise use the ring's watermark. */
	if (options->no_wakeup)
		attr.watermark = 1;
	else
		attr.wakeup_events = 1;
	if (options->no_kernel)
		leave_kernel_out(&attr);
	attr.disabled = options->paused;
	attr.inherit_thread = options->no_children; /* Linux 5.13 */
	*set = (struct event_set){ .rings = rings, .attr = attr, .is_clock = true, .is_paused = options->paused };
	if (options->event)
		set_event(set, options->event);
	return 0;
}

void events_wake_rarely(struct event_set *set)
{
	uint64_t often_enough = 1000000000u / MAX_WAKEUPS_HZ / MAX(1u, set->attr.sample_period);
	uint64_t fitting = set->rings->ring_bytes / MIN_WAKEUPS / (set->attr.sample_stack_user + BESIDE_STACK_BYTES);

	if (!set->attr.watermark)
		set->attr.wakeup_events = (uint32_t)MAX(1u, MIN(often_enough, fitting));
}

static void close_events(struct event_set *set)
{
	for (size_t i = 0; i < set->n_fds; i++)
		close(set->fds[i]);
	for (size_t i = 0; i < set->n_late; i++)
		closep(&set->late[i].fd);
	set->n_fds = set->n_late = set->n_opened = 0;
}

void events_done(struct event_set *set)
{
	close_events(set);
	free(set->fds);
	free(set->late);
	task_set_done(&set->covered);
	*set = (struct event_set){ 0 };
}

/* After a failed open, request less. Returns whether to try again. */
static bool give_in(struct event_set *set, int error)
{
	if (set->n_opened > 0)
		return false;
	if ((error == EACCES || error == EPERM) && !set->attr.exclude_kernel && !set->in_kernel && !set->at_switch) {
		leave_kernel_out(&set->attr);
		return true;
	}
	if (error == EINVAL && events_count_losses(set)) {
		set->attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
		return true;
	}
	if (error == EINVAL && set->attr.inherit_thread) {
		set->attr.inherit_thread = 0;
		return true;
	}
	return false;
}

/* Open one event and redirect it to its CPU's ring. */
static int open_event(struct event_set *set, pid_t tid, const struct perf_ring *ring, int *ret)
{
	CLEANUP(closep) int fd = -1;
	int r;

	do {
		fd = (int)syscall(SYS_perf_event_open, &set->attr, tid, (int)ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	} while (fd < 0 && give_in(set, errno));
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
		return -errno;
	if (set->bpf) {
		r = bpf_source_attach(set->bpf, fd, set->at_switch);
		if (r < 0)
			return r;
	}
	set->n_opened++;
	*ret = TAKE_FD(fd);
	return 0;
}

static int add_first(struct event_set *set, pid_t tid, const struct perf_ring *ring)
{
	int r;

	r = grow(&set->fds, set->n_fds, &set->fds_allocated, sizeof *set->fds);
	if (r < 0)
		return r;
	r = open_event(set, tid, ring, &set->fds[set->n_fds]);
	if (r < 0)
		return r;
	set->n_fds++;
	return 0;
}

static int add_late(struct event_set *set, pid_t tid, const struct perf_ring *ring)
{
	CLEANUP(closep) int fd = -1;
	uint64_t id;
	int r;

	r = grow(&set->late, set->n_late, &set->late_allocated, sizeof *set->late);
	if (r < 0)
		return r;
	r = open_event(set, tid, ring, &fd);
	if (r < 0)
		return r;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return -errno;
	set->late[set->n_late++] = (struct late_event){ .id = id, .fd = TAKE_FD(fd) };
	return 0;
}

int events_cover(struct event_set *set, pid_t tid, bool late)
{
	bool any = false;

	for (size_t i = 0; i < set->rings->n; i++) {
		const struct perf_ring *ring = &set->rings->ring[i];
		int r;

		r = late ? add_late(set, tid, ring) : add_first(set, tid, ring);
		if (r == -ESRCH)
			break; /* the thread has ended */
		if (r < 0)
			return r;
		any = true;
	}
	set->n_threads += any;
	return 0;
}

/* List the new threads of all processes; *ret_n_gone counts processes that have ended. */
static int gather(struct event_set *set, const pid_t *pids, size_t n_pids, struct task_list *list, size_t *ret_n_gone)
{
	int r = 0;

	for (size_t p = 0; r >= 0 && p < n_pids; p++) {
		CLEANUP(freep) pid_t *tids = NULL;
		size_t n = 0;

		r = proc_tasks(pids[p], &tids, &n);
		if (r == -ESRCH) {
			++*ret_n_gone;
			r = 0;
		}
		for (size_t i = 0; r >= 0 && i < n; i++) {
			r = task_set_add(&set->covered, tids[i]);
			if (r > 0)
				r = grow(&list->tids, list->n, &list->allocated, sizeof *list->tids) ?: 1;
			if (r > 0)
				list->tids[list->n++] = tids[i];
		}
	}
	return r;
}

/*
 * List all threads once and open events for the new ones. Read all lists before opening the first event: one process
 * may have started another.
 */
static int cover_lists(struct event_set *set, const pid_t *pids, size_t n_pids, bool late, size_t *ret_n_new)
{
	CLEANUP(task_list_done) struct task_list list = { 0 };
	size_t n_gone = 0;
	int r;

	r = gather(set, pids, n_pids, &list, &n_gone);
	for (size_t i = 0; r >= 0 && i < list.n; i++)
		r = events_cover(set, list.tids[i], late);
	if (r < 0)
		return r;
	*ret_n_new = list.n;
	return n_gone < n_pids ? 0 : -ESRCH;
}

static int attach_threads(struct event_set *set, const pid_t *pids, size_t n_pids)
{
	size_t n_new = 0;
	int r;

	r = cover_lists(set, pids, n_pids, false, &n_new);
	for (int i = 1; r >= 0 && n_new > 0 && i < MAX_LISTS; i++)
		r = cover_lists(set, pids, n_pids, true, &n_new);
	/* If the target ended just now, its rings still hold samples. */
	if (r < 0 && !(r == -ESRCH && set->n_threads > 0))
		return r;
	return set->n_threads > 0 ? 0 : -ESRCH;
}

int events_add(struct event_set *set, pid_t pid)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0, n_new = 1;
	int r;

	r = proc_tasks(pid, &tids, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		task_set_remove(&set->covered, tids[i]); /* the kernel may reuse the TID */
	set->attr.disabled = set->is_paused;
	for (int i = 0; r >= 0 && n_new > 0 && i < MAX_LISTS; i++)
		r = cover_lists(set, &pid, 1, true, &n_new);
	return r;
}

/* Open events for everything that runs on each processor. */
static int attach_wide(struct event_set *set, size_t n_threads)
{
	int r = 0;

	close_events(set);
	set->system_wide = true;
	set->attr.inherit = 0;
	set->attr.exclude_idle = 1;
	set->attr.disabled = 0; /* the BPF program filters instead */
	for (size_t i = 0; i < set->rings->n && r >= 0; i++)
		r = add_first(set, -1, &set->rings->ring[i]);
	set->n_threads = n_threads;
	return r;
}

int events_attach_wide(struct event_set *set, size_t n_threads)
{
	struct perf_event_attr attr = set->attr;
	int r;

	r = attach_wide(set, n_threads);
	if (r < 0) {
		close_events(set);
		set->attr = attr;
		set->system_wide = false;
	}
	return r;
}

int events_count_threads(const pid_t *pids, size_t n_pids, size_t *ret)
{
	size_t n_threads = 0, n_gone = 0;

	for (size_t i = 0; i < n_pids; i++) {
		CLEANUP(freep) pid_t *tids = NULL;
		size_t n = 0;
		int r;

		r = proc_tasks(pids[i], &tids, &n);
		if (r < 0 && r != -ESRCH)
			return r;
		n_gone += r == -ESRCH;
		n_threads += r < 0 ? 0 : n;
	}
	*ret = n_threads;
	return n_gone < n_pids ? 0 : -ESRCH;
}

/* A tracepoint's BPF program must not filter: it would hide events from other listeners. */
static bool may_be_wide(const struct event_set *set)
{
	return set->bpf && set->attr.type != PERF_TYPE_TRACEPOINT;
}

int events_attach_all(struct event_set *set, const pid_t *pids, size_t n_pids)
{
	size_t n_threads;
	int r;

	r = events_count_threads(pids, n_pids, &n_threads);
	if (r < 0)
		return r;
	if (may_be_wide(set) && (n_threads * set->rings->n > MAX_EVENTS || switch_rate_is_high(pids, n_pids)))
		return attach_wide(set, n_threads);
	r = attach_threads(set, pids, n_pids);
	return r == -EMFILE && may_be_wide(set) ? attach_wide(set, n_threads) : r;
}

int events_launch(struct event_set *set, pid_t child)
{
	int r;

	set->attr.disabled = 1;
	set->attr.enable_on_exec = !set->is_paused;
	r = events_cover(set, child, false);
	if (r < 0)
		return r;
	return set->n_threads > 0 ? 0 : -ESRCH;
}

/* Inherited events follow. ioctl(2) fails only on file descriptors that are no events. */
static void switch_all(const struct event_set *set, unsigned long request)
{
	for (size_t i = 0; i < set->n_fds; i++)
		ioctl(set->fds[i], request, 0);
	for (size_t i = 0; i < set->n_late; i++)
		if (set->late[i].fd >= 0)
			ioctl(set->late[i].fd, request, 0);
}

void events_stop(struct event_set *set)
{
	switch_all(set, PERF_EVENT_IOC_DISABLE);
}

void events_pause(struct event_set *set)
{
	set->is_paused = true;
	switch_all(set, PERF_EVENT_IOC_DISABLE);
}

void events_resume(struct event_set *set)
{
	set->is_paused = false;
	switch_all(set, PERF_EVENT_IOC_ENABLE);
}

bool events_have_kernel(const struct event_set *set)
{
	return !set->attr.exclude_kernel;
}

unsigned events_format(const struct event_set *set)
{
	return (set->attr.sample_type & PERF_SAMPLE_CALLCHAIN ? RECORD_HAS_CHAIN : 0) |
	       (set->attr.sample_type & PERF_SAMPLE_RAW ? RECORD_HAS_RAW : 0) |
	       (set->attr.sample_type & PERF_SAMPLE_PERIOD ? 0 : RECORD_WITHOUT_PERIOD);
}

uint64_t events_weight(const struct event_set *set)
{
	return set->attr.sample_type & PERF_SAMPLE_PERIOD ? 0 : set->attr.sample_period;
}

bool events_count_losses(const struct event_set *set)
{
	return set->attr.read_format & PERF_FORMAT_LOST;
}

struct event_values {
	uint64_t value, id, lost;
};

/* read(2) fails only for a buffer that is too small; this one fits read_format. */
static struct event_values values_of(int fd)
{
	struct event_values values = { 0 };

	return read(fd, &values, sizeof values) >= (ssize_t)offsetof(struct event_values, lost)
		       ? values
		       : (struct event_values){ 0 };
}

/*
 * The kernel counts losses of inherited events at their parent, and losses of redirected events at themselves. A
 * retired event lost only duplicates.
 */
uint64_t events_lost(const struct event_set *set)
{
	uint64_t n = 0;

	for (size_t i = 0; i < set->n_fds; i++)
		n += values_of(set->fds[i]).lost;
	for (size_t i = 0; i < set->n_late; i++)
		if (set->late[i].fd >= 0)
			n += values_of(set->late[i].fd).lost;
	return n;
}

/* Skip late events: until they are retired they may count the same time twice. Too little is better than too much. */
uint64_t events_used(const struct event_set *set)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; set->is_clock && !set->system_wide && i < set->n_fds; i++)
		sum_ns += values_of(set->fds[i]).value;
	return sum_ns;
}

static struct late_event *find_late(const struct event_set *set, uint64_t id)
{
	size_t low = 0, high = set->n_late;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->late[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->n_late && set->late[low].id == id ? &set->late[low] : NULL;
}

bool events_retire(struct event_set *set, uint64_t id)
{
	struct late_event *late = find_late(set, id);

	if (!late)
		return false;
	closep(&late->fd);
	late->fd = -1;
	return true;
}

bool events_is_retired(const struct event_set *set, uint64_t id)
{
	const struct late_event *late = find_late(set, id);

	return late && late->fd < 0;
}
