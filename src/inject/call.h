/* SPDX-License-Identifier: MIT */
/* call.h - a stopped thread makes calls for us, and puts itself back. Private; one file per machine.
 *
 * Below the thread's stack, and its red zone, goes a signal frame with all that it was: registers, vector state, signal mask.
 * Each call that it is made to do returns into rt_sigreturn(2), which restores that frame. The thread therefore goes on with
 * its own work by itself whatever happens to us, and at whatever moment: the kernel lets go of it when its tracer ends.
 *
 * Invariants:
 * - the frame is written before the registers are changed, the registers before the signal mask;
 * - whatever stop the thread is in after that, letting go of it leads to rt_sigreturn(2);
 * - a system call that was interrupted is begun again by the frame, as the kernel would have done it.
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
	struct place_call in; /* what it was stopped in */
	uint64_t frame;       /* where the frame begins; 0: not written yet */
	uint64_t status[MACHINE_STATUS_WORDS];
	uint8_t vectors[CALL_MAX_STATE];
	size_t n_vectors;
};

/* Whether this machine's calls are known; else a clause that says what is. */
const char *call_refusal(void);

/* call_find - the instructions that are needed, in code of libc. -ENOENT they are not in it. @code: n_bytes at @address. */
int call_find(const uint8_t *code, size_t n_bytes, uint64_t address, struct call *call);

/* call_look - read what a stopped thread is. Errors: -ESRCH; -EOPNOTSUPP it runs code of another machine. */
int call_look(struct call *call);

/*
 * call_begin - write the frame.
 * Errors: -EAGAIN not at this moment: its system call cannot be begun again, or it is in a restartable sequence; -EFAULT its
 * stack has no room; -EOPNOTSUPP; what ptrace(2) reports.
 */
int call_begin(struct call *call);

/*
 * call_system - one system call. Errors: -ECANCELED something else happened to the thread: it puts itself back, and must be
 * let go; -ESRCH.
 * @ret: what it returned, a negative errno on failure.
 */
int call_system(struct call *call, long number, const uint64_t arguments[6], int64_t *ret);

/* call_function - one function of one argument, until the thread is about to restore itself. The last one. Errors: as above. */
int call_function(struct call *call, uint64_t function, uint64_t argument);

/* ---- trace.c ---- */

/* trace_stop - seize a thread and wait until it stands. -ESRCH, -EPERM; -ETIMEDOUT; -EAGAIN a signal came, or it is stopped anyway. */
int trace_stop(pid_t pid, pid_t tid);
/* trace_step - let it go on to the next system call's beginning or end. -ECANCELED: it stands because of something else. */
int trace_step(pid_t pid, pid_t tid);
/* trace_end - let it go, with the signal that it was stopped by last, if any. */
void trace_end(pid_t tid);
/* Done once, before the first: SIGCHLD is waited for. */
void trace_prepare(void);

#endif
