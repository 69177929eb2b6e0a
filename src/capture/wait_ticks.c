/* SPDX-License-Identifier: MIT */
/* wait_ticks.c - see wait_ticks.h.
 *
 * Invariants:
 * 1. What is reported of a thread as running, ready and blocked adds up to the time since its first tick.
 * 2. A blocked thread's counts are exact: the kernel brings them up to date as it leaves the processor. Those of a
 *    running one lag by up to a clock tick. So little time of a ready thread that is neither run nor delay counts as
 *    run, and the next ticks make up for it.
 * 3. An event's time is never before that of an earlier one of its thread.
 */
#include "src/capture/wait_ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum { LAG_NS = 8000000, MAX_OPEN = 256 };

struct waiting_thread {
	pid_t pid, tid;
	int fd; /* of its schedstat; -1: opened at each tick */
	bool is_found, is_agents;
	struct wait_count last;
};

struct looked_at {
	pid_t pid;
	uint64_t time_ns; /* of the last tick */
};

struct wait_ticks {
	struct waiting_thread *threads; /* in no order */
	size_t n, allocated, n_open;
	size_t next; /* where find() begins */
	struct looked_at *processes;
	size_t n_processes, processes_allocated;
	struct capture_event *events; /* [first, n_events) are not taken yet */
	size_t first, n_events, events_allocated;
};

/* ---- Accounting ---- */

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* How much of the time between two looks was blocked; the rest that is neither remains owed. */
static uint64_t blocked_ns(struct wait_count *last, const struct wait_count *now, uint64_t delay_ns)
{
	uint64_t all_ns = since(now->time_ns, last->time_ns);
	int64_t owed_ns = last->owed_ns + (int64_t)all_ns - (int64_t)since(now->run_ns, last->run_ns) -
			  (int64_t)since(now->delay_ns, last->delay_ns);
	int64_t ret = now->is_ready ? owed_ns - LAG_NS : owed_ns;

	if (now->is_ready && last->is_ready && now->n_runs == last->n_runs)
		ret = 0; /* it ran all the time, or waits for a processor now */
	ret = MAX(MIN(ret, (int64_t)(all_ns - delay_ns)), 0);
	last->owed_ns = owed_ns - ret;
	return (uint64_t)ret;
}

unsigned wait_steps(struct wait_count *last, const struct wait_count *now, struct wait_step ret[WAIT_MAX_STEPS])
{
	uint64_t all_ns = since(now->time_ns, last->time_ns);
	uint64_t all_delay_ns = last->late_delay_ns + since(now->delay_ns, last->delay_ns);
	uint64_t delay_ns = MIN(all_delay_ns, all_ns), late_delay_ns = all_delay_ns - delay_ns;
	bool was_ready = last->is_ready, is_same = now->n_runs == last->n_runs && now->run_ns == last->run_ns;
	uint64_t blocked, end = now->time_ns;
	unsigned n = 0;

	if (!was_ready && !now->is_ready && is_same)
		return 0; /* the same wait */
	blocked = blocked_ns(last, now, delay_ns);
	if (!was_ready) { /* the wait of before ends; until it has a processor again a thread counts as waiting */
		blocked += delay_ns;
		delay_ns = 0;
		ret[n++] = (struct wait_step){ end - (all_ns - blocked), false, false };
	}
	if (was_ready && now->is_ready && blocked > 0) {
		ret[n++] = (struct wait_step){ end - delay_ns - blocked, true, false };
		ret[n++] = (struct wait_step){ end - delay_ns, false, false };
	}
	if (was_ready && !now->is_ready)
		end -= blocked;
	if (delay_ns > 0) {
		ret[n++] = (struct wait_step){ end - delay_ns, true, true };
		ret[n++] = (struct wait_step){ end, false, false };
	}
	if (!now->is_ready)
		ret[n++] = (struct wait_step){ end, true, false };
	*last = (struct wait_count){
		now->time_ns, now->run_ns, now->delay_ns, now->n_runs, now->is_ready, last->owed_ns, late_delay_ns,
	};
	return n;
}

/* ---- Events ---- */

static struct capture_event *put(struct wait_ticks *ticks, enum capture_event_type type, uint64_t time_ns, pid_t pid,
				 pid_t tid)
{
	struct capture_event *event;

	if (grow(&ticks->events, ticks->n_events, &ticks->events_allocated, sizeof *ticks->events) < 0)
		return NULL;
	event = &ticks->events[ticks->n_events++];
	*event = (struct capture_event){ .type = type, .time_ns = time_ns, .pid = pid, .tid = tid };
	return event;
}

static int put_switch(struct wait_ticks *ticks, const struct waiting_thread *thread, const struct wait_step *step)
{
	struct capture_event *event = put(ticks, CAPTURE_SWITCH, step->time_ns, thread->pid, thread->tid);

	if (!event)
		return -ENOMEM;
	event->change.is_out = step->is_out;
	event->change.is_preempted = step->is_preempted;
	return 0;
}

static int put_steps(struct wait_ticks *ticks, struct waiting_thread *thread, const struct wait_count *now)
{
	struct wait_step steps[WAIT_MAX_STEPS];
	unsigned n = wait_steps(&thread->last, now, steps);
	int r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++)
		r = put_switch(ticks, thread, &steps[i]);
	return r;
}

bool wait_ticks_take(struct wait_ticks *ticks, struct capture_event *ret)
{
	if (ticks->first == ticks->n_events) {
		ticks->first = ticks->n_events = 0;
		return false;
	}
	*ret = ticks->events[ticks->first++];
	return true;
}

/* ---- The kernel's counts ---- */

/* Source: sched-stats.rst, "/proc/<pid>/schedstat", Linux 6.12. -ESRCH, -ENOSYS. */
static int read_counts(struct wait_ticks *ticks, struct waiting_thread *thread, struct wait_count *ret)
{
	char text[128], path[64];
	int fd = thread->fd;
	ssize_t n;

	if (fd < 0) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)thread->pid, (int)thread->tid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return errno == ENOENT ? -ESRCH : -ENOSYS;
	}
	n = pread(fd, text, sizeof text - 1, 0);
	ret->time_ns = monotonic_ns();
	if (thread->fd < 0 && ticks->n_open < MAX_OPEN && n > 0) {
		thread->fd = fd;
		ticks->n_open++;
	} else if (thread->fd < 0) {
		close(fd);
	}
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ret->run_ns, &ret->delay_ns, &ret->n_runs) == 3
		       ? 0
		       : -ENOSYS;
}

/* The state is read between two equal counts, or with the later ones. Its file costs more than the counts'. */
static int look_at(struct wait_ticks *ticks, struct waiting_thread *thread, bool is_new, struct wait_count *ret)
{
	const struct wait_count *last = &thread->last;
	struct proc_stat stat;
	int r;

	r = read_counts(ticks, thread, ret);
	if (r < 0)
		return r;
	if (!is_new && !last->is_ready && ret->n_runs == last->n_runs && ret->run_ns == last->run_ns) {
		ret->is_ready = false;
		return 0;
	}
	r = proc_stat_read(thread->pid, thread->tid, &stat);
	if (r < 0)
		return -ESRCH;
	if (strchr("ZX", stat.state) &&
	    thread->tid != thread->pid) /* a main thread stays until its process has ended */
		return -ESRCH;
	ret->is_ready = stat.state == 'R';
	return ret->is_ready ? 0 : read_counts(ticks, thread, ret); /* blocked: now they are exact */
}

/* ---- Threads ---- */

/* Lists of threads come in about the same order each time: it is mostly the next one. */
static struct waiting_thread *find(struct wait_ticks *ticks, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < ticks->n; i++) {
		struct waiting_thread *thread = &ticks->threads[(ticks->next + i) % ticks->n];

		if (thread->tid == tid && thread->pid == pid) {
			ticks->next = (size_t)(thread - ticks->threads) + 1;
			return thread;
		}
	}
	return NULL;
}

static void drop(struct wait_ticks *ticks, struct waiting_thread *thread)
{
	if (thread->fd >= 0) {
		close(thread->fd);
		ticks->n_open--;
	}
	*thread = ticks->threads[--ticks->n];
}

bool capture_is_agents(pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *name = NULL;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	return read_file(path, 64, &name, NULL) >= 0 &&
	       (strcmp(name, "probing-agent\n") == 0 || strcmp(name, "probing-worker\n") == 0);
}

/* When a thread started, or somewhat earlier: the kernel tells clock ticks. 0: unknown. Source: proc_pid_stat(5), starttime. */
static uint64_t start_of(pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *text = NULL;
	struct timespec boot;
	uint64_t ticks, start_ns, behind_ns;
	const char *rest;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (read_file(path, 4096, &text, NULL) < 0 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
		   &ticks) != 1)
		return 0;
	start_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	behind_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec - monotonic_ns();
	return since(start_ns, behind_ns);
}

/* @since_ns: 0: it is older than the recording; else its time counts from then on. */
static int meet(struct wait_ticks *ticks, pid_t pid, pid_t tid, uint64_t since_ns)
{
	struct waiting_thread *thread;
	struct capture_event *event;
	struct wait_count now = { 0 };
	uint64_t began_ns;
	int r;

	r = grow(&ticks->threads, ticks->n, &ticks->allocated, sizeof *ticks->threads);
	if (r < 0)
		return r;
	thread = &ticks->threads[ticks->n++];
	*thread = (struct waiting_thread){ .pid = pid, .tid = tid, .fd = -1, .is_found = true };
	thread->is_agents = capture_is_agents(pid, tid);
	if (thread->is_agents)
		return 0;
	r = look_at(ticks, thread, true, &now);
	if (r < 0) {
		drop(ticks, thread);
		return r == -ESRCH ? 0 : r;
	}
	thread->last = now;
	if (since_ns == 0)
		return 0;
	began_ns = MIN(MAX(since_ns, start_of(pid, tid)), now.time_ns);
	if (tid != pid) { /* the poller reports processes */
		event = put(ticks, CAPTURE_FORK, began_ns, pid, tid);
		if (!event)
			return -ENOMEM;
		event->fork.parent_pid = event->fork.parent_tid = pid;
	}
	thread->last = (struct wait_count){ .time_ns = began_ns, .is_ready = true };
	r = put_switch(ticks, thread, &(struct wait_step){ began_ns, false, false });
	return r < 0 ? r : put_steps(ticks, thread, &now);
}

static int part(struct wait_ticks *ticks, struct waiting_thread *thread, uint64_t time_ns)
{
	bool is_agents = thread->is_agents;
	pid_t pid = thread->pid, tid = thread->tid;
	int r = 0;

	if (!is_agents && !thread->last.is_ready)
		r = put_switch(ticks, thread, &(struct wait_step){ time_ns, false, false });
	drop(ticks, thread);
	if (r >= 0 && (is_agents || pid == tid))
		return 0; /* a process' end is the poller's to report */
	return r < 0 || !put(ticks, CAPTURE_EXIT, time_ns, pid, tid) ? -ENOMEM : 0;
}

static int see(struct wait_ticks *ticks, struct waiting_thread *thread)
{
	struct wait_count now = { 0 };
	int r;

	thread->is_found = true;
	if (thread->is_agents)
		return 0;
	r = look_at(ticks, thread, false, &now);
	if (r < 0) {
		thread->is_found = false;
		return r == -ESRCH ? 0 : r;
	}
	return put_steps(ticks, thread, &now);
}

static void forget(struct wait_ticks *ticks, pid_t pid)
{
	for (size_t i = ticks->n; i-- > 0;)
		if (ticks->threads[i].pid == pid)
			drop(ticks, &ticks->threads[i]);
	for (size_t i = ticks->n_processes; i-- > 0;)
		if (ticks->processes[i].pid == pid)
			ticks->processes[i] = ticks->processes[--ticks->n_processes];
}

/* When its last tick was; 0: this is the first. */
static int begin_tick(struct wait_ticks *ticks, pid_t pid, uint64_t now_ns, uint64_t *ret_last)
{
	struct looked_at *process;
	int r;

	for (size_t i = 0; i < ticks->n_processes; i++) {
		process = &ticks->processes[i];
		if (process->pid != pid)
			continue;
		*ret_last = process->time_ns;
		process->time_ns = now_ns;
		return 0;
	}
	r = grow(&ticks->processes, ticks->n_processes, &ticks->processes_allocated, sizeof *ticks->processes);
	if (r < 0)
		return r;
	ticks->processes[ticks->n_processes++] = (struct looked_at){ pid, now_ns };
	*ret_last = 0;
	return 0;
}

int wait_ticks_look(struct wait_ticks *ticks, pid_t pid)
{
	CLEANUP(freep) pid_t *tids = NULL;
	uint64_t now_ns = monotonic_ns(), last_ns;
	size_t n = 0;
	int r;

	r = proc_tasks(pid, &tids, &n);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* the poller reports its end */
	r = begin_tick(ticks, pid, now_ns, &last_ns);
	for (size_t i = 0; i < ticks->n; i++)
		if (ticks->threads[i].pid == pid)
			ticks->threads[i].is_found = false;
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct waiting_thread *thread = find(ticks, pid, tids[i]);

		r = thread ? see(ticks, thread) : meet(ticks, pid, tids[i], last_ns);
	}
	for (size_t i = ticks->n; i-- > 0 && r >= 0;)
		if (ticks->threads[i].pid == pid && !ticks->threads[i].is_found)
			r = part(ticks, &ticks->threads[i], now_ns);
	return r;
}

int wait_ticks_fork(struct wait_ticks *ticks, pid_t pid, uint64_t time_ns)
{
	uint64_t unused;
	int r;

	forget(ticks, pid);
	r = begin_tick(ticks, pid, time_ns, &unused);
	return r < 0 ? r : wait_ticks_look(ticks, pid); /* it may end soon */
}

int wait_ticks_leave(struct wait_ticks *ticks, pid_t pid, uint64_t time_ns)
{
	int r = 0;

	for (size_t i = ticks->n; i-- > 0 && r >= 0;)
		if (ticks->threads[i].pid == pid)
			r = part(ticks, &ticks->threads[i], time_ns);
	forget(ticks, pid);
	return r;
}

int wait_ticks_new(struct wait_ticks **ret)
{
	struct wait_ticks *ticks;
	uint64_t n_runs;

	if (proc_run_count(getpid(), gettid(), &n_runs) < 0)
		return -ENOSYS;
	ticks = calloc(1, sizeof *ticks);
	if (!ticks)
		return -ENOMEM;
	*ret = ticks;
	return 0;
}

void wait_ticks_free(struct wait_ticks *ticks)
{
	if (!ticks)
		return;
	for (size_t i = 0; i < ticks->n; i++)
		closep(&ticks->threads[i].fd);
	free(ticks->threads);
	free(ticks->processes);
	free(ticks->events);
	free(ticks);
}
