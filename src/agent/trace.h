/* SPDX-License-Identifier: MIT */
/* trace.h - times calls of functions, and appends a row for each: the part of python/probing/_trace.py in C. Private.
 *
 * The package finds it as sys._probing_rings[1], a tuple of builtins:
 *
 *   begin(append, rows, span)  rows go to the ring of that append() (rows.h); rows is the namespace of probing._rows, whose
 *                              _step they have, and span the context variable of the innermost span
 *   codes(list)                time these: (code, name, whether calls of it may be suspended) each
 *   end()                      append no row any more
 *   start(code, offset), leave(code, offset, value), unwind(code, offset, exception)
 *                              callbacks of sys.monitoring for PY_START, PY_RETURN and PY_UNWIND (CPython 3.12)
 *   timed(name, function)      a callable that calls the function and appends its row (before 3.12)
 *   variable(frame, name)      of a running function, without a dictionary of all of them; NameError (from 3.12 on)
 *
 * A row is (operation_name, duration_ms, step, span, tid, error), in this order.
 */
#ifndef PROBING_AGENT_TRACE_H
#define PROBING_AGENT_TRACE_H

#include <stdint.h>

/* trace_builtins - the tuple, a new reference; NULL: the interpreter lacks a function, or has no memory. With its lock. */
void *trace_builtins(void);

/* Number of this thread, as gettid(2) has it. Any thread. */
int64_t trace_thread_id(void);

/* In a forked child: no call is timed there. */
void trace_fork(void);

#endif
