/* SPDX-License-Identifier: MIT */
/* call.h - makes a stopped thread execute calls, and restores it. Private; one file per machine.
 *
 * Below the thread's stack and its red zone it writes a signal frame with the thread's state: registers, vector state,
 * signal mask. Each call returns into rt_sigreturn(2), which restores that frame. The thread therefore continues its
 * own work by itself if probing dies at any moment: the kernel detaches it when its tracer ends.
 *
 * Invariants:
 * - the frame is written before the registers change, and the registers before the signal mask;
 * - from any stop after that, detaching the thread leads to rt_sigreturn(2);
 * - the frame restarts an interrupted system call, as the kernel would.
 */
#ifndef PROBING_INJECT_CALL_H
#define PROBING_INJECT_CALL_H

#include "base/machine.h"
#include "src/inject/place.h"

enum { CALL_MAX_STATE = 16384 };

struct call {
	pid_t pid, tid;
	uint64_t system_call; /* addresses in libc: an instruction that makes one, and returns; */
	uint64_t restorer;    /* rt_sigreturn(2) */
	struct regs regs;     /* as it was stopped */
	struct place_call in; /* the interrupted system call */
	uint64_t frame;       /* where the frame begins; 0: not written yet */
	uint64_t status[MACHINE_STATUS_WORDS];
	uint8_t vectors[CALL_MAX_STATE];
	size_t n_vectors;
};

/* NULL if this machine is supported; else a clause that names the supported ones. */
const char *call_refusal(void);

/* call_find - the instructions that are needed, in code of libc. -ENOENT they are not in it. @code: n_bytes at
 * @address. */
int call_find(const uint8_t *code, size_t n_bytes, uint64_t address, struct call *call);

/* call_look - read a stopped thread's state. Errors: -ESRCH; -EOPNOTSUPP it runs code of another machine. */
int call_look(struct call *call);

/*
 * call_begin - write the frame.
 * Errors: -EAGAIN not now: its system call cannot be restarted, or it is in a restartable sequence; -EFAULT its
 * stack has no room; -EOPNOTSUPP; what ptrace(2) reports.
 */
int call_begin(struct call *call);

/*
 * call_system - one system call. Errors: -ECANCELED another event stopped the thread: it restores itself, and must be
 * detached; -ESRCH.
 * @ret: its result, a negative errno on failure.
 */
int call_system(struct call *call, long number, const uint64_t arguments[6], int64_t *ret);

/* call_function - one function with one argument, until the thread is about to restore itself. The last call. Errors:
 * as above. */
int call_function(struct call *call, uint64_t function, uint64_t argument);

/* ---- trace.c ---- */

/* trace_stop - seize a thread and wait for its stop. -ESRCH, -EPERM; -ETIMEDOUT; -EAGAIN a signal came, or it is
 * stopped already. */
int trace_stop(pid_t pid, pid_t tid);
/* trace_step - continue it to the next entry or exit of a system call. -ECANCELED: another event stopped it. */
int trace_step(pid_t pid, pid_t tid);
/* trace_end - detach it, with the signal that stopped it last, if any. */
void trace_end(pid_t tid);
/* Done once, before the first: blocks SIGCHLD, so that it can be waited for. */
void trace_prepare(void);

#endif
