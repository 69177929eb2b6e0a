/* SPDX-License-Identifier: MIT */
/* confined.h - a process of ours that has no privilege. */
#ifndef PROBING_BASE_CONFINED_H
#define PROBING_BASE_CONFINED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/call_filter.h"

struct confinement {
	const char *name; /* of the process, as ps shows it; at most 15 bytes */
	bool is_nobody;   /* of another user, where we may become one */
	int socket_type;  /* SOCK_STREAM or SOCK_SEQPACKET; 0: SOCK_STREAM */
	const struct call_table *tables;
	size_t n_tables;
	enum call_verdict otherwise;
	void (*run)(
		int socket,
		int filter_error); /* filter_error: 0, or why there is no filter. When it returns the process ends. */
};

/*
 * confined_start - fork a process without capabilities, and without a way to gain rights. It has no file but
 * /dev/null and one end of a socket, and all signals are blocked. Call it before there are threads: locks of other
 * threads are never released there.
 * @ret_socket: the other end; closed by the caller, which makes the process end.
 * Errors: of socketpair(2) and fork(2).
 */
int confined_start(const struct confinement *confinement, int *ret_socket, pid_t *ret_pid);

/* confined_is - whether confined_start() has started that process; also after its end, for the last 64 of them. */
bool confined_is(pid_t pid);

/* Lower a limit of the calling process permanently. */
void confined_limit(int resource, unsigned long long most);

#endif
