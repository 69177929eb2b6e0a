/* SPDX-License-Identifier: MIT */
/* wait_call.h - the object that a system call waits for: descriptors, a lock, a child. Source: section 2 of the
 * manual. */
#ifndef PROBING_BASE_WAIT_CALL_H
#define PROBING_BASE_WAIT_CALL_H

#include "base/proc.h"
#include "base/remote.h"

enum wait_kind {
	WAIT_UNKNOWN, /* or for time alone */
	WAIT_DESCRIPTORS,
	WAIT_FUTEX,
	WAIT_FILE_LOCK, /* of the one descriptor: flock(2), or a lock of fcntl(2) */
	WAIT_CHILD,
};

enum { WAIT_MAX_DESCRIPTORS = 8, WAIT_MAX_SEEN_DESCRIPTORS = 1024 };

struct wait_call {
	long number; /* of the system call; of an interrupted one that is restarted, the original number */
	enum wait_kind kind;
	int descriptors[WAIT_MAX_DESCRIPTORS];
	size_t n_descriptors; /* in the array; */
	size_t n_more;        /* and beside it, as far as they were counted */
	uint64_t futex;       /* address of the word; 0: none */
	uint32_t expected;    /* the value that the thread found in it */
	pid_t child;          /* as the process knows it; 0: any, or one of a group */
};

/*
 * wait_call_of - the object of a call's wait, from its arguments and the memory behind them.
 * @pid:    the calling process; 0: does not read an epoll instance's descriptors, and uses its own descriptor instead.
 * @remote: its memory; NULL: sets of descriptors stay empty.
 * Unreadable parts are omitted. Counts at most WAIT_MAX_SEEN_DESCRIPTORS descriptors of a set.
 */
void wait_call_of(const struct proc_call *call, pid_t pid, struct remote *remote, struct wait_call *ret);

/* wait_call_parse_epoll - the descriptors that the "fdinfo" of an epoll instance lists. Source: proc_pid_fdinfo(5). */
void wait_call_parse_epoll(const char *text, struct wait_call *ret);

/*
 * wait_call_mutex_owner - the owner of the pthread mutex that a thread waits for: its id in the process.
 * Returns 0 for anything but a mutex of the GNU C library, and for one without an owner field (priority inheritance).
 * The memory may only resemble a mutex: check that the process has such a thread.
 * Source: glibc 2.17 to 2.42, sysdeps/nptl/bits/struct_mutex.h, nptl/lowlevellock.h (__lll_lock_wait waits for the
 * value 2).
 */
pid_t wait_call_mutex_owner(const struct wait_call *call, struct remote *remote);

#endif
