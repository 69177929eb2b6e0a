/* SPDX-License-Identifier: MIT */
/* pidfd_set.c - see target.h.
 *
 * A pidfd stays readable after the end of its process, so each is closed at that event.
 * Source: pidfd_open(2), epoll(7).
 */
#include "src/target/target.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

enum { AT_ONCE = 64 };

void pidfd_set_done(struct pidfd_set *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		closep(&ends->pidfds[i]);
	free(ends->pidfds);
	closep(&ends->epoll);
	*ends = (struct pidfd_set){ .epoll = -1 };
}

/* Skip a process that has ended. */
static int watch(struct pidfd_set *ends, pid_t pid)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = ends->n };
	CLEANUP(closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);

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

bool pidfd_set_all(struct pidfd_set *ends)
{
	struct epoll_event events[AT_ONCE];
	int n = epoll_wait(ends->epoll, events, AT_ONCE, 0);

	for (int i = 0; i < n; i++) {
		closep(&ends->pidfds[events[i].data.u64]);
		ends->pidfds[events[i].data.u64] = -1;
		ends->n_left--;
	}
	return ends->n_left == 0;
}
