/* SPDX-License-Identifier: MIT */
/* worker.h - the agent's thread that runs Python code, one evaluation at a time. Private.
 *
 *            submit          takes the lock        ends         take_result
 *   JOB_NONE ──────► JOB_QUEUED ──────► JOB_RUNNING ──► JOB_DONE ──────► JOB_NONE
 *                        │ cancel            │ abandon
 *                        ▼                   ▼
 *                     JOB_NONE         continues, without a listener
 *
 * The worker waits for the interpreter's lock outside of our locks, since that may take forever. All functions but
 * worker_start() and worker_take_turn() are for the listening thread, and never wait for the interpreter.
 */
#ifndef PROBING_AGENT_WORKER_H
#define PROBING_AGENT_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/agent/protocol.h"

enum job_phase { JOB_NONE, JOB_QUEUED, JOB_RUNNING, JOB_DONE };

/* worker_start - make the thread, by one that has the process' own files. Negative errno. */
int worker_start(void);

/*
 * worker_take_turn - have the worker take the interpreter's lock once, without a job. Any thread. From CPython 3.9 to
 * 3.12 the main thread sees a call from another thread's queue only after it has waited for the lock: a thread that
 * computes would never see it. Source: COMPUTE_EVAL_BREAKER in Python/ceval.c of 3.9, Python/ceval_gil.c of 3.12.
 */
void worker_take_turn(void);

/* In a forked child, which has no thread of ours. */
void worker_reset(void);

/* @code: taken over, from malloc(3). False: there is an evaluation already; the code is the caller's still. */
bool worker_submit(char *code, size_t n_bytes);
enum job_phase worker_phase(void);
bool worker_has_died(void); /* as the interpreter has ended; one that has not begun yet has not */
bool worker_cancel(void);   /* false: it runs already, or has ended */
bool worker_interrupt(
	void); /* KeyboardInterrupt, when the lock can be had; false: there is no thread for it, ask again */
void worker_abandon(void);

/* Up to @room bytes of the code's new output, of one stream; 0: none. */
size_t worker_take_output(int *ret_stream, char *to, size_t room);

/* Of JOB_DONE, once its output has been taken. @ret_text: to be freed; may be NULL. */
void worker_take_result(enum outcome *ret, char **ret_text, size_t *ret_bytes);

/* worker_stop - end the thread; false: it runs code, and was left alone. */
bool worker_stop(void);

#endif
