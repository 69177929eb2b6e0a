/* ends.h - waiting until the last of some processes has ended. */
#ifndef PROBING_CLI_ENDS_H
#define PROBING_CLI_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ends {
	int epoll; /* readable when one of them has ended; -1: not open */
	int *pidfds;
	size_t n, n_left;
};

/*
 * ends_open - watch processes.
 * @ret: ended with ends_done(). Errors: -ESRCH all have ended; -ENOMEM; what epoll and pidfd_open(2) report.
 */
int ends_open(const pid_t *pids, size_t n_pids, struct ends *ret);
void ends_done(struct ends *ends);

/* ends_add - one more. Errors: -ESRCH it has ended; as ends_open(). */
int ends_add(struct ends *ends, pid_t pid);

/* To be asked when epoll is readable: whether none of them is left. */
bool ends_all(struct ends *ends);

#endif
