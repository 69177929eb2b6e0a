/* SPDX-License-Identifier: MIT */
/* poll_tasks.c - reads /proc for polling; see poll_tasks.h.
 *
 * A thread's file is kept open if descriptors allow it: reading costs a third then, and the
 * kernel reports the end of that very thread, even if its number is reused.
 *
 * A thread that is on a CPU has been put on one once more than it has left one: "schedstat" and
 * "status" count both. A runnable thread that is not on a CPU was preempted if it
 * has not waited for anything since the last tick; and it was working then, rather than just woken, if it
 * has run for a while. If it has waited, the order is unknown, and it is skipped; but on the
 * only CPU there is, which we use, it would never be sampled otherwise.
 *
 * A thread that has not run has no new children. It may get those of a thread that has ended, or, as the main thread of
 * a subreaper, those of a process that has ended (find_new_reaper(), kernel/exit.c, Linux 6.18).
 *
 * CPU time comes in nanoseconds from "schedstat"; kernels without CONFIG_SCHED_INFO have ticks
 * only. For a running thread both are as of the scheduler's last tick.
 */
#include "src/capture/poll_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/confined.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/capture/children.h"

enum {
	TEXT_BYTES = 4096,
	KEPT_DESCRIPTORS = 64, /* reserved for everything else that a recording opens */
	MAX_PROCESSES = 1 << 16,
	MAX_RUNS_BETWEEN = 100,
	AT_WORK_NS = 250000,
	TASK_FOLDER_LINKS = 2, /* of /proc/PID/task, besides one for each thread */
};

#define SURE_AGAIN_NS UINT64_C(5000000000)

static int read_fd(int fd, char text[TEXT_BYTES])
{
	ssize_t n = pread(fd, text, TEXT_BYTES - 1, 0);

	if (n < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	text[n] = '\0';
	return n > 0 ? 0 : -ESRCH;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

static void task_path(pid_t pid, pid_t tid, const char *file, char to[64])
{
	snprintf(to, 64, "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
}

static int read_path(const char *path, char text[TEXT_BYTES])
{
	CLEANUP(closep) int fd = open_file(path);

	return fd < 0 ? fd : read_fd(fd, text);
}

void poll_tasks_init(struct poll_tasks *tasks)
{
	struct rlimit limit;
	char text[TEXT_BYTES];
	uint64_t used_ns, n_runs;
	cpu_set_t cpus;

	*tasks = (struct poll_tasks){ .by_ticks = true, .is_sure = true };
	/* This thread has run, so 0 means that the kernel does not count. */
	if (read_path("/proc/thread-self/schedstat", text) == 0 && poll_parse_schedstat(text, &used_ns, &n_runs) == 0 &&
	    used_ns > 0)
		tasks->by_ticks = false;
	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		tasks->has_one_cpu = CPU_COUNT(&cpus) == 1;
	tasks->without_children = !children_are_listed();
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 * KEPT_DESCRIPTORS)
		tasks->most_open = (size_t)limit.rlim_cur - 2 * KEPT_DESCRIPTORS;
}

static void close_thread(struct poll_tasks *tasks, struct poll_thread *thread)
{
	if (thread->fd < 0)
		return;
	close(TAKE_FD(thread->fd));
	tasks->n_open--;
}

static void process_done(struct poll_tasks *tasks, struct poll_process *process)
{
	for (size_t i = 0; i < process->n; i++)
		close_thread(tasks, &process->threads[i]);
	free(process->threads);
}

void poll_tasks_done(struct poll_tasks *tasks)
{
	for (size_t i = 0; i < tasks->n; i++)
		process_done(tasks, &tasks->processes[i]);
	free(tasks->processes);
	task_set_done(&tasks->ignored);
	task_set_done(&tasks->still_ignored);
	task_set_done(&tasks->orphans);
	task_set_done(&tasks->new_orphans);
	*tasks = (struct poll_tasks){ 0 };
}

int poll_tasks_add(struct poll_tasks *tasks, pid_t pid, pid_t parent_pid)
{
	int r;

	r = grow(&tasks->processes, tasks->n, &tasks->allocated, sizeof *tasks->processes);
	if (r < 0)
		return r;
	tasks->processes[tasks->n++] = (struct poll_process){ .pid = pid, .parent_pid = parent_pid };
	return 0;
}

/* Index of the first thread whose TID is not below tid. */
static size_t lower_bound(const struct poll_process *process, pid_t tid)
{
	size_t low = 0, high = process->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int open_time(const struct poll_tasks *tasks, pid_t pid, pid_t tid)
{
	char path[64];

	task_path(pid, tid, tasks->by_ticks ? "stat" : "schedstat", path);
	return open_file(path);
}

static int add_thread(struct poll_tasks *tasks, struct poll_process *process, pid_t tid)
{
	size_t i = lower_bound(process, tid);
	struct poll_thread thread = { .tid = tid, .fd = -1, .is_new = true, .has_run = true };
	int r;

	if (i < process->n && process->threads[i].tid == tid)
		return 0;
	r = grow(&process->threads, process->n, &process->allocated, sizeof *process->threads);
	if (r < 0)
		return r;
	if (tasks->n_open < tasks->most_open) {
		thread.fd = open_time(tasks, process->pid, tid);
		if (thread.fd == -ESRCH)
			return 0;
		tasks->n_open += thread.fd >= 0;
		thread.fd = MAX(thread.fd, -1);
	}
	memmove(process->threads + i + 1, process->threads + i, (process->n - i) * sizeof *process->threads);
	process->threads[i] = thread;
	process->n++;
	return 0;
}

void poll_tasks_begin_listing(struct poll_tasks *tasks, uint64_t now_ns)
{
	tasks->is_sure = now_ns >= tasks->sure_ns + SURE_AGAIN_NS;
	tasks->has_skipped = false;
	if (tasks->is_sure)
		tasks->sure_ns = now_ns;
}

/* Reading their numbers takes far longer. Source: proc_task_getattr(), fs/proc/base.c, Linux 6.18. */
static bool has_as_many_threads(const struct poll_process *process)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
	return stat(path, &st) == 0 && st.st_nlink == process->n + TASK_FOLDER_LINKS;
}

int poll_tasks_list(struct poll_tasks *tasks, size_t index)
{
	struct poll_process *process = &tasks->processes[index];
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;
	int r;

	if (!tasks->is_sure && has_as_many_threads(process))
		return 0;
	r = proc_tasks(process->pid, &tids, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = add_thread(tasks, process, tids[i]);
	return r;
}

/* ---- Children ---- */

static bool is_known(const struct poll_tasks *tasks, pid_t pid)
{
	for (size_t i = 0; i < tasks->n; i++)
		if (tasks->processes[i].pid == pid)
			return true;
	return false;
}

/* Unprivileged helper processes run our own program. */
static bool runs_our_program(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	return stat("/proc/self/exe", &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

static int take_orphan(struct poll_tasks *tasks, pid_t pid)
{
	int r;

	if (pid == tasks->command || task_set_has(&tasks->orphans, pid) || runs_our_program(pid) ||
	    confined_is(pid)) /* a zombie runs no program */
		return 0;
	r = task_set_add(&tasks->orphans, pid);
	if (r >= 0)
		r = task_set_add(&tasks->new_orphans, pid);
	if (r < 0 || is_known(tasks, pid) || tasks->n >= MAX_PROCESSES)
		return MIN(r, 0);
	return poll_tasks_add(tasks, pid, 0);
}

enum adoption { ADOPT, IGNORE, ADOPT_ORPHANS };

static int take_child(struct poll_tasks *tasks, pid_t pid, pid_t parent_pid, enum adoption how)
{
	int r;

	if (how == ADOPT_ORPHANS)
		return take_orphan(tasks, pid);
	if (how == IGNORE || task_set_has(&tasks->ignored, pid)) {
		r = task_set_add(how == IGNORE ? &tasks->ignored : &tasks->still_ignored, pid);
		return r < 0 ? r : 0;
	}
	if (is_known(tasks, pid) || tasks->n >= MAX_PROCESSES)
		return 0;
	return poll_tasks_add(tasks, pid, parent_pid);
}

static int take_children(struct poll_tasks *tasks, const struct task_set *children, pid_t parent_pid, enum adoption how)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < children->n; i++)
		r = take_child(tasks, children->tids[i], parent_pid, how);
	return r;
}

int poll_tasks_adopt(struct poll_tasks *tasks, size_t index, bool ignore)
{
	struct poll_process *process = &tasks->processes[index];
	bool all = tasks->is_sure || tasks->by_ticks || process->has_lost_threads;
	CLEANUP(task_set_done) struct task_set children = { 0 };
	int r = tasks->without_children ? children_search(process->pid, &children) : 0;

	if (!tasks->without_children)
		process->has_lost_threads = false;
	for (size_t i = 0; r >= 0 && !tasks->without_children && i < process->n; i++) {
		struct poll_thread *thread = &process->threads[i];

		if (!all && !thread->has_run && thread->tid != process->pid) {
			tasks->has_skipped = true;
			continue;
		}
		thread->has_run = false; /* before its children: what it starts meanwhile is read the next time */
		r = children_of_thread(process->pid, thread->tid, &children);
	}
	return r < 0 ? r : take_children(tasks, &children, process->pid, ignore ? IGNORE : ADOPT);
}

/* Orphans become children of the subreaper's main thread. Source: find_new_reaper(), kernel/exit.c. */
int poll_tasks_adopt_orphans(struct poll_tasks *tasks)
{
	CLEANUP(task_set_done) struct task_set children = { 0 };
	int r;

	if (tasks->command == 0)
		return 0;
	r = tasks->without_children ? children_search(getpid(), &children)
				    : children_of_thread(getpid(), getpid(), &children);
	return r < 0 ? r : take_children(tasks, &children, getpid(), ADOPT_ORPHANS);
}

void poll_tasks_end_listing(struct poll_tasks *tasks)
{
	if (!tasks->has_skipped) {
		task_set_done(&tasks->ignored);
		tasks->ignored = tasks->still_ignored;
		tasks->still_ignored = (struct task_set){ 0 };
	}
	task_set_done(&tasks->still_ignored);
}

/* ---- CPU time ---- */

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

int poll_tasks_used(struct poll_tasks *tasks, pid_t pid, struct poll_thread *thread, uint64_t *ret_ns)
{
	CLEANUP(closep) int opened = -1;
	struct poll_stat stat;
	char text[TEXT_BYTES];
	uint64_t n_runs = thread->n_runs;
	int r;

	if (thread->fd < 0) {
		opened = open_time(tasks, pid, thread->tid);
		if (opened < 0)
			return opened;
	}
	r = read_fd(thread->fd < 0 ? opened : thread->fd, text);
	if (r >= 0 && !tasks->by_ticks) {
		r = poll_parse_schedstat(text, ret_ns, &thread->n_runs);
		if (r < 0)
			return r;
		thread->has_run |= thread->n_runs != n_runs || *ret_ns != thread->ran_ns;
		thread->ran_ns = *ret_ns;
		return 0;
	}
	if (r >= 0)
		r = poll_parse_stat(text, &stat);
	if (r < 0)
		return r;
	*ret_ns = ticks_to_ns(stat.ticks);
	return 0;
}

int poll_tasks_stat(pid_t pid, pid_t tid, struct poll_stat *ret)
{
	char text[TEXT_BYTES], path[64];
	int r;

	task_path(pid, tid, "stat", path);
	r = read_path(path, text);
	return r < 0 ? r : poll_parse_stat(text, ret);
}

static int read_switches(pid_t pid, pid_t tid, uint64_t *ret_n_waits, uint64_t *ret_n_preempted)
{
	char text[TEXT_BYTES], path[64];
	int r;

	task_path(pid, tid, "status", path);
	r = read_path(path, text);
	return r < 0 ? r : poll_parse_status(text, ret_n_waits, ret_n_preempted);
}

bool poll_tasks_runs(const struct poll_tasks *tasks, pid_t pid, struct poll_thread *thread, uint64_t used_ns,
		     char state)
{
	uint64_t n_waits, n_preempted, n_left;
	bool was_pushed_off;

	if (tasks->by_ticks || read_switches(pid, thread->tid, &n_waits, &n_preempted) < 0)
		return state == 'R';
	was_pushed_off = (n_waits == thread->n_waits && used_ns >= AT_WORK_NS) ||
			 (n_preempted > thread->n_preempted && tasks->has_one_cpu);
	thread->n_waits = n_waits;
	thread->n_preempted = n_preempted;
	n_left = n_waits + n_preempted;
	/*
	 * The kernel may start to count at any time. The thread may have run between the two reads, but not that often.
	 */
	thread->is_uncounted |= thread->n_runs + MAX_RUNS_BETWEEN < n_left;
	return state == 'R' && (thread->is_uncounted || thread->n_runs > n_left || was_pushed_off);
}

void poll_tasks_remove_thread(struct poll_tasks *tasks, struct poll_process *process, size_t index)
{
	close_thread(tasks, &process->threads[index]);
	process->has_lost_threads = true;
	process->n--;
	memmove(process->threads + index, process->threads + index + 1,
		(process->n - index) * sizeof *process->threads);
}

void poll_tasks_remove(struct poll_tasks *tasks, size_t index)
{
	task_set_remove(&tasks->orphans, tasks->processes[index].pid);
	process_done(tasks, &tasks->processes[index]);
	tasks->n--;
	memmove(tasks->processes + index, tasks->processes + index + 1, (tasks->n - index) * sizeof *tasks->processes);
}
