/* SPDX-License-Identifier: MIT */
/* pidfd_set.h - waiting until the last of some processes has ended. */
#ifndef PROBING_CLI_PIDFD_SET_H
#define PROBING_CLI_PIDFD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pidfd_set {
	int epoll; /* readable when a process has ended; -1: not open */
	int *pidfds;
	size_t n, n_left;
};

/*
 * pidfd_set_open - watch processes.
 * @ret: ended with pidfd_set_done(). Errors: -ESRCH all have ended; -ENOMEM; what epoll and pidfd_open(2) report.
 */
int pidfd_set_open(const pid_t *pids, size_t n_pids, struct pidfd_set *ret);
void pidfd_set_done(struct pidfd_set *ends);

/* pidfd_set_add - one more. Errors: -ESRCH it has ended; as pidfd_set_open(). */
int pidfd_set_add(struct pidfd_set *ends, pid_t pid);

/* Call it when epoll is readable: whether all have ended. */
bool pidfd_set_all(struct pidfd_set *ends);

#endif
