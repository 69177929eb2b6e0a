/* SPDX-License-Identifier: MIT */
/* waits.h - the object that a thread of a backtrace waits for. Private. */
#ifndef PROBING_BACKTRACE_WAITS_H
#define PROBING_BACKTRACE_WAITS_H

#include "base/descriptor.h"
#include "src/backtrace/backtrace.h"
#include "src/backtrace/target.h"

/*
 * backtrace_wait_read - the system call that a thread sleeps in, and the object of the wait. Stops no thread.
 * @sockets: of the process, read on first use.
 * @ret:     ended with backtrace_wait_done(); call NULL if nothing is known. -ENOMEM.
 */
int backtrace_wait_read(struct target *target, struct sockets *sockets, pid_t tid, struct backtrace_wait *ret);
void backtrace_wait_done(struct backtrace_wait *wait);

/* Whether the thread, which has these registers, still is in that wait. */
bool backtrace_wait_is_of(const struct backtrace_wait *wait, const struct regs *regs);

/*
 * backtrace_find_holders - find the owners of locks that threads wait for.
 * @tids: all threads of the process.
 */
void backtrace_find_holders(struct backtrace *backtrace, struct target *target, const pid_t *tids, size_t n_tids);

#endif
