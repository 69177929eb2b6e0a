/* SPDX-License-Identifier: MIT */
/* stop.h - one thread stopped by ptrace(2). Private.
 *
 * PTRACE_SEIZE leaves a thread running, and lets go of it by itself when who traces it
 * ends, by whatever death. Whoever calls these should therefore be a thread that soon
 * ends: one that could not be stopped in time stays seized until then.
 */
#ifndef PROBING_BACKTRACE_STOP_H
#define PROBING_BACKTRACE_STOP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/machine.h"

struct stop {
	pid_t tid;
	int signal;        /* one that arrived, to be delivered when it is let go; 0: none */
	uint64_t since_ns; /* CLOCK_MONOTONIC, when it was seen to stand */
};

/* SIGCHLD, which tells of a stop, is waited for: blocked, and not ignored. Done before the
 * thread that stops others is started. */
void stop_prepare(void);

/*
 * stop_thread - stop one thread and wait until it stands.
 * Errors: -ESRCH it has ended; -EPERM; -ETIMEDOUT it does not get to where it can be
 * stopped, which is short where it sleeps in the kernel not to be woken.
 */
int stop_thread(pid_t pid, pid_t tid, struct stop *ret);

/* The two steps of it: from the first on, a signal for the thread makes it stand, too. */
int stop_seize(pid_t tid, struct stop *ret);
int stop_interrupt(pid_t pid, struct stop *stop);

/* Its registers. Errors: -ESRCH it was killed; -EOPNOTSUPP it runs code of another machine. */
int stop_registers(const struct stop *stop, struct regs *ret);

/*
 * stop_end - let it go on, as it was: also into a stop by SIGSTOP that it was in.
 * Returns for how many nanoseconds it stood.
 */
uint64_t stop_end(const struct stop *stop);

#endif
