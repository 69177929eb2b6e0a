/* SPDX-License-Identifier: MIT */
/* pidfd_set.c - see target.h.
 *
 * A pidfd stays readable after the end of its process, so each is closed at that event.
 * A folder of /proc that is open stays the process': after its end nothing can be read in it, whoever has its number then.
 * Source: pidfd_open(2), epoll(7), proc(5).
 */
#include "src/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/util.h"

enum { AT_ONCE = 64, LOOK_NS = 100000000 };

#define OF_TIMER UINT64_MAX /* an event's number */

void pidfd_set_done(struct pidfd_set *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		closep(&ends->pidfds[i]);
	free(ends->pidfds);
	closep(&ends->epoll);
	if (ends->is_polled)
		closep(&ends->timer);
	*ends = (struct pidfd_set){ .epoll = -1 };
}

/* The timer, once. */
static int start_looking(struct pidfd_set *ends)
{
	const struct itimerspec spec = { .it_value = { 0, LOOK_NS }, .it_interval = { 0, LOOK_NS } };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = OF_TIMER };

	if (ends->is_polled)
		return 0;
	ends->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ends->timer < 0)
		return -errno;
	ends->is_polled = true;
	if (timerfd_settime(ends->timer, 0, &spec, NULL) < 0 ||
	    epoll_ctl(ends->epoll, EPOLL_CTL_ADD, ends->timer, &event) < 0)
		return -errno;
	return 0;
}

/*
 * Whether a process has ended, by its folder. One that its parent has not waited for has, too, but not a main thread that
 * has ended before others. Source: proc_pid_stat(5), state and num_threads.
 */
static bool has_ended(int folder)
{
	char text[512] = "", state = 'X';
	CLEANUP(closep) int fd = openat(folder, "stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	const char *behind = n > 0 ? strrchr(text, ')') : NULL;
	int n_threads = 1;

	if (n < 0 && errno != ENOENT && errno != ESRCH)
		return false;
	if (!behind)
		return true;
	(void)sscanf(behind, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &state,
		     &n_threads);
	return state == 'X' || (state == 'Z' && n_threads <= 1);
}

static int watch_folder(struct pidfd_set *ends, pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	ends->pidfds[ends->n++] = fd;
	ends->n_left++;
	return start_looking(ends);
}

/* Skip a process that has ended. */
static int watch(struct pidfd_set *ends, pid_t pid)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = ends->n };
	CLEANUP(closep) int fd = ends->is_polled ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);

	if (ends->is_polled || (fd < 0 && (errno == EPERM || errno == ENOSYS)))
		return watch_folder(ends, pid);
	if (fd < 0)
		return errno == ESRCH ? 0 : -errno;
	if (epoll_ctl(ends->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	ends->pidfds[ends->n++] = TAKE_FD(fd);
	ends->n_left++;
	return 0;
}

int pidfd_set_open(const pid_t *pids, size_t n_pids, struct pidfd_set *ret)
{
	CLEANUP(pidfd_set_done) struct pidfd_set ends = { .epoll = epoll_create1(EPOLL_CLOEXEC) };
	int r = 0;

	if (ends.epoll < 0)
		return -errno;
	ends.pidfds = calloc(n_pids, sizeof *ends.pidfds);
	if (!ends.pidfds)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < n_pids; i++)
		r = watch(&ends, pids[i]);
	if (r >= 0 && ends.n_left == 0)
		r = -ESRCH;
	if (r < 0)
		return r;
	*ret = ends;
	ends = (struct pidfd_set){ .epoll = -1 };
	return 0;
}

int pidfd_set_add(struct pidfd_set *ends, pid_t pid)
{
	size_t n_before = ends->n;
	int *pidfds = realloc(ends->pidfds, (ends->n + 1) * sizeof *pidfds);
	int r;

	if (!pidfds)
		return -ENOMEM;
	ends->pidfds = pidfds;
	r = watch(ends, pid);
	return r < 0 ? r : ends->n > n_before ? 0 : -ESRCH;
}

static void leave(struct pidfd_set *ends, size_t index)
{
	closep(&ends->pidfds[index]);
	ends->pidfds[index] = -1;
	ends->n_left--;
}

static void look_at_all(struct pidfd_set *ends)
{
	uint64_t expirations;

	(void)!read(ends->timer, &expirations, sizeof expirations);
	for (size_t i = 0; i < ends->n; i++)
		if (ends->pidfds[i] >= 0 && has_ended(ends->pidfds[i]))
			leave(ends, i);
}

bool pidfd_set_all(struct pidfd_set *ends)
{
	struct epoll_event events[AT_ONCE];
	int n = epoll_wait(ends->epoll, events, AT_ONCE, 0);

	for (int i = 0; i < n; i++)
		if (events[i].data.u64 == OF_TIMER)
			look_at_all(ends);
		else
			leave(ends, events[i].data.u64);
	return ends->n_left == 0;
}
