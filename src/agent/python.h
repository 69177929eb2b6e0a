/* SPDX-License-Identifier: MIT */
/* python.h - the interpreter that the agent is in, by functions that are looked up when it runs. Private.
 *
 * No header of Python is needed to build this, and no release is compiled in: what is called has had the same form in
 * all of them since 3.6.
 */
#ifndef PROBING_AGENT_PYTHON_H
#define PROBING_AGENT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "src/agent/protocol.h"

/* python_find - look its functions up. Returns NULL, or a clause that says what is missing. Any thread. */
const char *python_find(void);

/* "3.11.2"; static. */
const char *python_version(void);

/* Whether code can be run in it: it has been initialised, and is not on its way out. */
bool python_is_running(void);

/*
 * python_prepare - see to it that there is a lock to be taken: up to 3.6 a program without threads has none, and only its
 * main thread can make it, between two of its instructions.
 * @is_wanted: asked every 10 ms; false ends the wait.
 * Returns false when it was not wanted any more.
 */
bool python_prepare(bool (*is_wanted)(void));

/* Have the main thread call a function between two of its instructions. False: there are too many already. Any thread. */
bool python_call_soon(int (*function)(void *));

/*
 * Whether this is a forked child whose interpreter does not run again yet, though it calls what is queued: up to 3.6 it calls
 * threading._after_fork(), and drops the states of other threads afterwards. Between enter and leave.
 */
bool python_is_forking(void);

/* Take the interpreter's lock, and give it back. It may never be had, and at the interpreter's end the calling thread may end in it. */
int python_enter(void);
void python_leave(int state);

/* Give the lock back for a while, from within. */
void *python_pause(void);
void python_resume(void *paused);

/* What an evaluation asks of the other side, between enter and leave. */
struct python_side {
	void (*write)(int stream, const char *text, size_t n_bytes); /* takes the code's output as it comes */
	/*
	 * The code runs from true to false; only then may python_interrupt() be called, or the agent's own code would fail.
	 * Returns whether it was called in between, so that what it raised may be pending.
	 */
	bool (*allow_interrupts)(bool allowed);
};

/*
 * python_evaluate - run code. Between enter and leave.
 * @ret_text: to be freed; may be NULL.
 */
void python_evaluate(const char *code, size_t n_bytes, const struct python_side *in, enum outcome *ret, char **ret_text,
		     size_t *ret_bytes);

/* In a forked child: nobody hears what an evaluation of the parent would print there. */
void python_forget_evaluation(void);

/*
 * Which thread this is to the interpreter; raise KeyboardInterrupt in that one. Between enter and leave. It is never taken back
 * by PyThreadState_SetAsyncExc(NULL): in CPython 3.12 that leaves all threads on the slow path of the evaluation loop for ever.
 */
unsigned long python_thread(void);
void python_interrupt(unsigned long thread);

#endif
