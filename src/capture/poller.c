/* SPDX-License-Identifier: MIT */
/* poller.c - poll ticks; see poller.h.
 *
 * Invariants:
 * 1. A thread's CPU time is read when the caller takes its sample, not when the tick
 *    begins: the caller reads its memory next.
 * 2. The weights of a thread's samples add up to its CPU time from the first tick to the last.
 *    Time after its last sample, and time of a thread that starts and ends between two ticks, is
 *    missing.
 * 3. A thread yields a sample when it is running, for all time since the last one. Its stack
 *    while it sleeps is not the one that used time, and it sleeps most of the time. Time left over at
 *    its end, or at the end of the recording, has no stack.
 * 4. An event of a process (a fork, an exec) comes before a sample that shows it.
 * 5. Lists are read when the kernel has given a number to a new thread since, and now and then
 *    anyway, for a container may show another's number. A tick without lists costs one
 *    read for each thread.
 * 6. A pause begins with a last tick, and ends with one that only reads the list of threads, and their
 *    times: time used in between is in no sample.
 * 7. With idle threads, each yields a sample at each tick, which weighs the time
 *    since its last one, and none at its first tick; 2 and 3 do not hold then.
 */
#include "src/capture/poller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/util.h"
#include "src/capture/poll_pace.h"
#include "src/capture/poll_tasks.h"

enum { LIST_ANYWAY_NS = 100000000 };

struct pending {
	struct capture_event event;
	char name[POLL_NAME_BYTES]; /* name for CAPTURE_COMM */
};

struct poller {
	struct poll_pace pace;
	struct poll_tasks tasks;
	int timer, loadavg;
	pid_t newest; /* at the last list; 0: unknown */
	/* Start times of the last two lists: a thread that is new on the last list started after the earlier one. */
	uint64_t listed_ns, listed_before_ns;
	bool awaits_exec;

	/* The current poll tick. */
	bool is_looking, is_last;
	uint64_t began_ns;
	size_t process, thread; /* position in the tick */

	struct pending *pending; /* [first, n_pending) are not yet delivered */
	size_t first, n_pending, pending_allocated;
	struct pending out;

	bool no_children, idle; /* as in struct capture_options */
	bool stopped, has_ended;
	bool paused, stock_is_due; /* stock_is_due: the next tick ends a pause */
	bool is_stocktaking;       /* the current tick ends a pause */
	bool lists_again;          /* at the end of the current tick */
	uint64_t n_samples, n_threads;
};

/* ---- Pending events ---- */

static struct pending *put(struct poller *poller, enum capture_event_type type, pid_t pid, pid_t tid)
{
	struct pending *pending;

	if (grow(&poller->pending, poller->n_pending, &poller->pending_allocated, sizeof *poller->pending) < 0)
		return NULL;
	pending = &poller->pending[poller->n_pending++];
	pending->event = (struct capture_event){ .type = type, .time_ns = monotonic_ns(), .pid = pid, .tid = tid };
	return pending;
}

static bool take_pending(struct poller *poller, struct capture_event *ret)
{
	if (poller->first == poller->n_pending) {
		poller->first = poller->n_pending = 0;
		return false;
	}
	poller->out = poller->pending[poller->first++];
	*ret = poller->out.event;
	if (ret->type == CAPTURE_COMM)
		ret->comm.name = poller->out.name;
	return true;
}

static int put_name(struct poller *poller, pid_t pid, pid_t tid, const char *name, bool is_exec)
{
	struct pending *pending = put(poller, CAPTURE_COMM, pid, tid);

	if (!pending)
		return -ENOMEM;
	snprintf(pending->name, sizeof pending->name, "%s", name);
	pending->event.comm.is_exec = is_exec;
	return 0;
}

static int put_sample(struct poller *poller, pid_t pid, pid_t tid, uint64_t weight, unsigned cpu, bool is_elsewhere)
{
	struct pending *pending = put(poller, CAPTURE_SAMPLE, pid, tid);

	if (!pending)
		return -ENOMEM;
	pending->event.sample = (struct sample){
		.time_ns = pending->event.time_ns,
		.pid = pid,
		.tid = tid,
		.cpu = cpu,
		.weight = weight,
		.is_polled = true,
		.is_elsewhere = is_elsewhere,
	};
	poller->n_samples++;
	return 0;
}

/* ---- Lists ---- */

/* Report a new process as a fork, and as an exec if it already runs another program. */
static int tell_fork(struct poller *poller, const struct poll_process *parent, struct poll_process *child)
{
	struct pending *pending = put(poller, CAPTURE_FORK, child->pid, child->pid);
	struct poll_stat stat;

	if (!pending)
		return -ENOMEM;
	pending->event.fork.parent_pid = parent->pid;
	pending->event.fork.parent_tid = parent->pid;
	if (poll_tasks_stat(child->pid, child->pid, &stat) < 0)
		return 0;
	child->image = stat.image;
	if (stat.image == 0 || stat.image == parent->image)
		return 0;
	return put_name(poller, child->pid, child->pid, stat.name, true);
}

/* The orphan's parent is unknown: report it as a child of the command that has executed another program. */
static int tell_orphan(struct poller *poller, struct poll_process *orphan)
{
	struct pending *pending = put(poller, CAPTURE_FORK, orphan->pid, orphan->pid);
	struct poll_stat stat;

	if (!pending)
		return -ENOMEM;
	pending->event.fork.parent_pid = pending->event.fork.parent_tid = poller->tasks.command;
	if (poll_tasks_stat(orphan->pid, orphan->pid, &stat) < 0)
		return 0;
	orphan->image = stat.image;
	return put_name(poller, orphan->pid, orphan->pid, stat.name, true);
}

static int list_orphans(struct poller *poller)
{
	struct poll_tasks *tasks = &poller->tasks;
	size_t n_before = tasks->n;
	int r;

	r = poll_tasks_adopt_orphans(tasks);
	for (size_t i = n_before; r >= 0 && i < tasks->n; i++)
		r = tell_orphan(poller, &tasks->processes[i]);
	return r;
}

/* Also visits processes that this loop itself appends. */
static int list_all(struct poller *poller)
{
	struct poll_tasks *tasks = &poller->tasks;
	int r;

	poll_tasks_begin_listing(tasks, poller->began_ns);
	r = list_orphans(poller);
	for (size_t i = 0; r >= 0 && i < tasks->n; i++) {
		size_t n_before = tasks->n;

		r = poll_tasks_list(tasks, i);
		if (r == -ESRCH)
			r = 0; /* reading its threads detects the end */
		if (r >= 0 && !poller->no_children)
			r = poll_tasks_adopt(tasks, i, false);
		for (size_t k = n_before; r >= 0 && k < tasks->n; k++)
			r = tell_fork(poller, &tasks->processes[i], &tasks->processes[k]);
	}
	poll_tasks_end_listing(tasks);
	return r;
}

/* The newest thread's TID; 0: unknown. */
static pid_t read_newest(const struct poller *poller)
{
	char text[128];
	pid_t newest = 0;
	ssize_t n;

	n = poller->loadavg >= 0 ? pread(poller->loadavg, text, sizeof text - 1, 0) : 0;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return poll_parse_loadavg(text, &newest) < 0 ? 0 : newest;
}

/*
 * A thread that was skipped, since it had not run when it was last looked at, may be the one that has forked. So the end of
 * the tick, when all have been looked at, lists again: a child that lives shortly is not found later.
 */
static int list_if_new(struct poller *poller)
{
	pid_t newest = read_newest(poller);
	bool is_new = newest == 0 || newest != poller->newest;
	int r;

	poller->lists_again = false;
	if (!is_new && poller->began_ns - poller->listed_ns < LIST_ANYWAY_NS)
		return 0;
	r = list_all(poller);
	poller->lists_again = is_new && poller->tasks.has_skipped;
	poller->newest = newest;
	poller->listed_before_ns = poller->listed_ns;
	poller->listed_ns = poller->began_ns;
	return r;
}

/* ---- A poll tick ---- */

static int begin(struct poller *poller)
{
	poller->is_looking = true;
	poller->is_last = poller->stopped || poller->paused;
	poller->is_stocktaking = poller->stock_is_due;
	poller->stock_is_due = false;
	poller->process = poller->thread = 0;
	poller->began_ns = monotonic_ns();
	return list_if_new(poller);
}

/* Zeros disarm the timer while paused. */
static int arm(const struct poller *poller)
{
	struct itimerspec spec = {
		.it_value = {
			(time_t)(poller->pace.next_ns / 1000000000u),
			(long)(poller->pace.next_ns % 1000000000u),
		},
	};

	if (poller->paused)
		spec = (struct itimerspec){ 0 };
	return timerfd_settime(poller->timer, TFD_TIMER_ABSTIME, &spec, NULL) < 0 ? -errno : 0;
}

static int end(struct poller *poller)
{
	poller->is_looking = poller->is_stocktaking = false;
	poller->has_ended = poller->is_last;
	poll_pace_looked(&poller->pace, poller->began_ns, monotonic_ns());
	return arm(poller);
}

/* Detect an exec or a changed thread name. */
static int follow(struct poller *poller, struct poll_process *process, struct poll_thread *thread,
		  const struct poll_stat *stat)
{
	bool is_exec = stat->image != 0 && process->image != 0 && stat->image != process->image;
	bool is_renamed = strcmp(stat->name, thread->name) != 0;

	if (stat->image != 0)
		process->image = stat->image;
	poller->awaits_exec &= !is_exec;
	memcpy(thread->name, stat->name, sizeof thread->name);
	if (is_exec)
		return put_name(poller, process->pid, process->pid, stat->name, true);
	if (is_renamed && thread->n_samples > 0)
		return put_name(poller, process->pid, thread->tid, stat->name, false);
	return 0;
}

static int settle(struct poller *poller, pid_t pid, struct poll_thread *thread, unsigned cpu, bool is_elsewhere)
{
	uint64_t weight = thread->owed_ns;

	thread->owed_ns = 0;
	if (weight == 0 || poller->awaits_exec)
		return 0;
	thread->n_samples++;
	return put_sample(poller, pid, thread->tid, weight, cpu, is_elsewhere);
}

/* Sample a thread that has used CPU time since the last tick. */
static int look_at(struct poller *poller, struct poll_process *process, struct poll_thread *thread, uint64_t used_ns)
{
	struct poll_stat stat;
	bool runs;
	int r;

	r = poll_tasks_stat(process->pid, thread->tid, &stat);
	if (r < 0)
		return 0; /* lose_thread() reports it at the next read */
	r = follow(poller, process, thread, &stat);
	if (r < 0)
		return r;
	runs = poll_tasks_runs(&poller->tasks, process->pid, thread, used_ns, stat.state);
	/* An ended thread cannot be sampled running later. */
	if (!runs && !strchr("ZX", stat.state) && !poller->is_last)
		return 0;
	return settle(poller, process->pid, thread, stat.cpu, !runs);
}

/* Sample a thread whether it runs or not. */
static int look_anyway(struct poller *poller, struct poll_process *process, struct poll_thread *thread)
{
	uint64_t now_ns = monotonic_ns(), since_ns = thread->met_ns;
	struct poll_stat stat;
	int r;

	r = poll_tasks_stat(process->pid, thread->tid, &stat);
	if (r < 0 || strchr("ZX", stat.state))
		return 0;
	r = follow(poller, process, thread, &stat);
	if (r < 0)
		return r;
	thread->met_ns = now_ns;
	thread->owed_ns = since_ns != 0 && !poller->is_stocktaking ? now_ns - since_ns : 0;
	return settle(poller, process->pid, thread, stat.cpu, false);
}

static int lose_thread(struct poller *poller, struct poll_process *process)
{
	struct poll_thread thread = process->threads[poller->thread];
	int r;

	r = settle(poller, process->pid, &thread, 0, true);
	/* At a first sample after the end, nobody can read the thread's name any more: report it. */
	if (r >= 0 && thread.n_samples == 1 && thread.name[0] != '\0')
		r = put_name(poller, process->pid, thread.tid, thread.name, false);
	poll_tasks_remove_thread(&poller->tasks, process, poller->thread);
	return r >= 0 && put(poller, CAPTURE_EXIT, process->pid, thread.tid) ? 0 : -ENOMEM;
}

static int visit(struct poller *poller, struct poll_process *process)
{
	struct poll_thread *thread = &process->threads[poller->thread];
	uint64_t used_ns, weight;
	int r;

	r = poll_tasks_used(&poller->tasks, process->pid, thread, &used_ns);
	if (r == -ESRCH)
		return lose_thread(poller, process);
	poller->thread++;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (poller->idle)
		return look_anyway(poller, process, thread);
	/* A reopened file may belong to another thread with the same TID. */
	weight = used_ns > thread->used_ns ? used_ns - thread->used_ns : 0;
	if (poller->is_stocktaking)
		weight = 0;
	if (thread->is_new)
		weight = MIN(weight, monotonic_ns() - poller->listed_before_ns);
	thread->is_new = false;
	thread->used_ns = used_ns;
	thread->owed_ns += weight;
	if (weight == 0 && !(poller->is_last && thread->owed_ns > 0))
		return 0;
	return look_at(poller, process, thread, weight);
}

/* A process without threads may have executed another program from a thread that is not listed yet. */
static int leave(struct poller *poller)
{
	struct poll_process *process = &poller->tasks.processes[poller->process];
	int r = 0;

	poller->thread = 0;
	if (process->n == 0)
		r = poll_tasks_list(&poller->tasks, poller->process);
	if (r == -ENOMEM)
		return r;
	if (process->n > 0)
		poller->process++;
	else
		poll_tasks_remove(&poller->tasks, poller->process);
	return 0;
}

static int step(struct poller *poller)
{
	struct poll_process *process;

	if (poller->process == poller->tasks.n && poller->lists_again) {
		poller->lists_again = false;
		return list_all(poller);
	}
	if (poller->process == poller->tasks.n)
		return end(poller);
	process = &poller->tasks.processes[poller->process];
	return poller->thread < process->n ? visit(poller, process) : leave(poller);
}

static bool is_due(const struct poller *poller)
{
	return poller->stopped || poller->paused ? !poller->has_ended : monotonic_ns() >= poller->pace.next_ns;
}

int poller_next(struct poller *poller, struct capture_event *ret)
{
	while (!take_pending(poller, ret)) {
		int r;

		if (!poller->is_looking && !is_due(poller))
			return 0;
		r = poller->is_looking ? step(poller) : begin(poller);
		if (r < 0)
			return r;
	}
	return 1;
}

/* ---- Start and stop ---- */

static void poller_freep(struct poller **poller)
{
	poller_free(*poller);
}

static int poller_new(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct poller **ret)
{
	CLEANUP(poller_freep) struct poller *poller = NULL;
	int r;

	poller = calloc(1, sizeof *poller);
	if (!poller)
		return -ENOMEM;
	poller->timer = -1;
	poller->paused = options->paused;
	poller->has_ended = options->paused;
	poller->no_children = options->no_children;
	poller->idle = options->idle;
	poller->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	poll_tasks_init(&poller->tasks);
	r = poll_pace_init(&poller->pace, options->hz, monotonic_ns());
	if (r < 0)
		return r;
	poller->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (poller->timer < 0)
		return -errno;
	for (size_t i = 0; r >= 0 && i < n_pids; i++)
		r = poll_tasks_add(&poller->tasks, pids[i], 0);
	if (r >= 0)
		r = arm(poller);
	if (r < 0)
		return r;
	*ret = TAKE(poller);
	return 0;
}

/* Existing CPU time and children precede the recording: note and ignore them. -ESRCH: the process has ended. */
static int take_stock_of(struct poller *poller, size_t index)
{
	struct poll_process *process = &poller->tasks.processes[index];
	struct poll_stat stat;
	int r;

	r = poll_tasks_list(&poller->tasks, index);
	if (r >= 0)
		r = poll_tasks_adopt(&poller->tasks, index, true);
	if (r < 0)
		return r;
	for (size_t i = 0; i < process->n; i++) {
		process->threads[i].is_new = false;
		(void)poll_tasks_used(&poller->tasks, process->pid, &process->threads[i], &process->threads[i].used_ns);
	}
	if (poll_tasks_stat(process->pid, process->pid, &stat) == 0)
		process->image = stat.image;
	poller->n_threads += process->n;
	return process->n > 0 ? 0 : -ESRCH;
}

static int take_stock(struct poller *poller)
{
	int r;

	poller->newest = read_newest(poller);
	poller->listed_ns = poller->listed_before_ns = monotonic_ns();
	for (size_t i = 0; i < poller->tasks.n;) {
		r = take_stock_of(poller, i);
		if (r == -ESRCH)
			poll_tasks_remove(&poller->tasks, i);
		else if (r < 0)
			return r;
		else
			i++;
	}
	return poller->tasks.n > 0 ? 0 : -ESRCH;
}

int poller_attach(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct poller **ret)
{
	CLEANUP(poller_freep) struct poller *poller = NULL;
	int r;

	r = poller_new(options, pids, n_pids, &poller);
	if (r >= 0)
		r = take_stock(poller);
	if (r < 0)
		return r;
	*ret = TAKE(poller);
	return 0;
}

int poller_add(struct poller *poller, pid_t pid)
{
	size_t index = poller->tasks.n;
	int r;

	for (size_t i = 0; i < poller->tasks.n; i++)
		if (poller->tasks.processes[i].pid == pid)
			return 0;
	r = poll_tasks_add(&poller->tasks, pid, 0);
	if (r < 0)
		return r;
	r = take_stock_of(poller, index);
	if (r < 0)
		poll_tasks_remove(&poller->tasks, index);
	return r;
}

/* Orphaned descendants become our children instead of init's, so that the poller finds them. Source: prctl(2). */
static void follow_orphans(struct poller *poller, pid_t command)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
		poller->tasks.command = command;
}

int poller_launch(const struct capture_options *options, pid_t child, struct poller **ret)
{
	struct poller *poller;
	int r;

	r = poller_attach(options, &child, 1, &poller);
	if (r < 0)
		return r;
	poller->awaits_exec = poller->tasks.processes[0].image != 0;
	if (!options->no_children)
		follow_orphans(poller, child);
	*ret = poller;
	return 0;
}

void poller_free(struct poller *poller)
{
	if (!poller)
		return;
	if (poller->tasks.command != 0)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	closep(&poller->timer);
	closep(&poller->loadavg);
	poll_tasks_done(&poller->tasks);
	free(poller->pending);
	free(poller);
}

pid_t poller_take_orphan(struct poller *poller)
{
	struct task_set *orphans = &poller->tasks.new_orphans;
	pid_t pid = orphans->n > 0 ? orphans->tids[0] : 0;

	if (pid != 0)
		task_set_remove(orphans, pid);
	return pid;
}

int poller_fd(const struct poller *poller)
{
	return poller->timer;
}

void poller_pause(struct poller *poller)
{
	poller->paused = true;
	poller->has_ended = false;
}

int poller_resume(struct poller *poller)
{
	poller->paused = poller->has_ended = false;
	poller->stock_is_due = true;
	poll_pace_resume(&poller->pace, monotonic_ns());
	poller->newest = 0;
	return arm(poller);
}

void poller_stop(struct poller *poller)
{
	poller->has_ended = poller->has_ended &&
			    poller->paused; /* after a pause at the end, no time is left to account */
	poller->stopped = true;
}

void poller_read_counts(const struct poller *poller, struct capture_counts *ret)
{
	*ret = (struct capture_counts){
		.samples = poller->n_samples,
		.n_threads = poller->n_threads,
		.poll_ticks = poller->pace.n_looks,
		.skipped_ticks = poller->pace.n_lost,
		.longest_period_ns = poller->pace.longest_ns,
	};
}
