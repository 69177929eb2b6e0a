/* SPDX-License-Identifier: MIT */
/* python.h - the agent's interpreter, by functions that are looked up at run time. Private.
 *
 * The build needs no header of Python, and no release is compiled in: the functions have had the same signature
 * since 3.6.
 */
#ifndef PROBING_AGENT_PYTHON_H
#define PROBING_AGENT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "src/agent/protocol.h"
#include "src/config/config.h"

/* What the interpreter exports, and the pointer that gets its address; NULL where an optional one is missing. */
struct python_name {
	const char *name;
	void *to;
	bool is_optional;
};

/* python_look_up - NULL, or the name of the first one that is missing. Any thread; not in a forked child, where a lost
 * thread of the parent may hold the loader's lock. */
const char *python_look_up(const struct python_name *names, size_t n);

/* python_find - look up its functions. Returns NULL, or a clause that names a missing one. Any thread. */
const char *python_find(void);

/* "3.11.2"; static. */
const char *python_version(void);

/* Whether it is new enough for the package `probing`: 3.8. */
bool python_has_package(void);

/* Whether it can run code: it is initialised, and does not end. */
bool python_is_running(void);

/* python_look_at_caller - note that this thread runs Python code, and its interpreter therefore runs, where CPython denies that. */
void python_look_at_caller(void);

/* python_is_free_threaded - whether threads run the interpreter at once, and its lock is none. After python_find(). Any thread. */
bool python_is_free_threaded(void);

/*
 * python_prepare - make sure that the interpreter has a lock: up to 3.6 a program without threads has none, and only
 * its main thread can create it, between two instructions.
 * @is_wanted: called every 10 ms; false ends the wait.
 * Returns false if is_wanted() ended it.
 */
bool python_prepare(bool (*is_wanted)(void));

/* Have the main thread call a function between two of its instructions. False: there are too many already. Any thread.
 * */
bool python_call_soon(int (*function)(void *));

/*
 * Whether this is a forked child whose interpreter does not run yet, although it calls queued functions: up to 3.6 it
 * calls threading._after_fork(), and drops the states of other threads afterwards. Between enter and leave.
 */
bool python_is_forking(void);

/* Take the interpreter's lock, and give it back. It may never be had, and at the interpreter's end the calling thread
 * may end in it. */
int python_enter(void);
void python_leave(int state);

/* Give the lock back for a while, from within. */
void *python_pause(void);
void python_resume(void *paused);

/* Callbacks of an evaluation, between enter and leave. */
struct python_side {
	void (*write)(int stream, const char *text, size_t n_bytes); /* receives the code's output */
	void (*arm)(bool has_probes);                                /* probes were armed, or disarmed */
	/*
	 * The code runs from true to false; python_interrupt() is allowed only in between, otherwise the agent's own
	 * code would fail. Returns whether python_interrupt() was called in between: its exception may be pending.
	 */
	bool (*allow_interrupts)(bool allowed);
};

/*
 * python_evaluate - run code. Between enter and leave.
 * @ret_text: to be freed; may be NULL.
 */
void python_evaluate(const char *code, size_t n_bytes, const struct python_side *in, enum outcome *ret, char **ret_text,
		     size_t *ret_bytes);

/*
 * python_offer_package - have imports find the package `probing` in the agent, if it is not imported yet and not installed
 * (package.py). With the interpreter's lock. python_evaluate() does it, too.
 */
void python_offer_package(void);

/*
 * python_apply - have the modules of keys that are set apply them (struct config_key, module), as the program begins. With
 * the interpreter's lock. Refusals go to stderr, a line each.
 */
void python_apply(const struct config *config);

/* Code for python_evaluate() that does it for one key. It evaluates to nothing, or to a refusal. To be freed; NULL: no memory. */
char *python_apply_code(const struct config *config, unsigned key);

/* In a forked child, discard the output of the parent's evaluation: it has no client there. */
void python_forget_evaluation(void);

/*
 * Which thread this is to the interpreter; raise KeyboardInterrupt in that one. Between enter and leave. It is never
 * taken back by PyThreadState_SetAsyncExc(NULL): in CPython 3.12 that leaves all threads on the slow path of the
 * evaluation loop for ever.
 */
unsigned long python_thread(void);
void python_interrupt(unsigned long thread);

#endif
