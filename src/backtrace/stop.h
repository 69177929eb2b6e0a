/* SPDX-License-Identifier: MIT */
/* stop.h - one thread stopped by ptrace(2). Private.
 *
 * PTRACE_SEIZE leaves a thread running, and detaches automatically when the tracer ends,
 * for any reason. The caller should therefore be a thread that ends soon: a target that
 * could not be stopped in time stays seized until then.
 */
#ifndef PROBING_BACKTRACE_STOP_H
#define PROBING_BACKTRACE_STOP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/machine.h"

struct stop {
	pid_t tid;
	int signal;        /* one that arrived, to be delivered at the detach; 0: none */
	uint64_t since_ns; /* CLOCK_MONOTONIC, when it was found stopped */
};

/* Blocks SIGCHLD, which announces a stop, and makes sure that it is not ignored, so that it can be waited for. Call it
 * before the stopping thread is started. */
void stop_prepare(void);

/*
 * stop_thread - stop one thread and wait until it has stopped.
 * Errors: -ESRCH it has ended; -EPERM; -ETIMEDOUT it does not reach a point at which it can be
 * stopped; the timeout is short for an uninterruptible sleep in the kernel.
 */
int stop_thread(pid_t pid, pid_t tid, struct stop *ret);

/* Its two steps: after the first, a signal for the thread stops it, too. */
int stop_seize(pid_t tid, struct stop *ret);
int stop_interrupt(pid_t pid, struct stop *stop);

/* Its registers. Errors: -ESRCH it was killed; -EOPNOTSUPP it runs code of another machine. */
int stop_registers(const struct stop *stop, struct regs *ret);

/*
 * stop_end - continue it in its former state, including a stop by SIGSTOP.
 * Returns for how many nanoseconds it was stopped.
 */
uint64_t stop_end(const struct stop *stop);

#endif
