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

/* Have the main thread call a function between two of its instructions, if there is room for one more. Any thread. */
void python_call_soon(int (*function)(void *));

/* Take the interpreter's lock, and give it back. It may never be had, and at the interpreter's end the calling thread may end in it. */
int python_enter(void);
void python_leave(int state);

/* Give the lock back for a while, from within. */
void *python_pause(void);
void python_resume(void *paused);

/*
 * python_evaluate - run code. Between enter and leave.
 * @write: takes the code's output as it comes, between enter and leave.
 * @ret_text: to be freed; may be NULL.
 */
typedef void python_write(int stream, const char *text, size_t n_bytes);
void python_evaluate(const char *code, size_t n_bytes, python_write *write, enum outcome *ret, char **ret_text,
		     size_t *ret_bytes);

/* Which thread this is to the interpreter; raise KeyboardInterrupt in that one, or take it back. Between enter and leave. */
unsigned long python_thread(void);
void python_interrupt(unsigned long thread, bool on);

#endif
