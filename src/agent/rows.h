/* SPDX-License-Identifier: MIT */
/* rows.h - rows that the program itself writes, by functions that the agent offers to Python code. Private.
 *
 * The package probing (python/probing/_rows.py) finds them as sys._probing_rings: a tuple of the builtin open(name,
 * n_rows, names, types, bytes), and of the builtins of trace.h and of torch.h, each or None. open() returns (append,
 * take, drop) for a ring, or a text that says why there is none. They never raise an exception of their own, and do
 * nothing once the agent has been detached.
 */
#ifndef PROBING_AGENT_ROWS_H
#define PROBING_AGENT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* rows_offer - put the builtins into sys, and hand them to the package if it is imported. With the interpreter's lock;
 * may be queued by python_call_soon(). Returns 0. */
int rows_offer(void *unused);

/* The same, unless it has been done. */
void rows_offer_once(void);

struct ring_value;

/*
 * rows_table_of - the table of an append() that open() has made; it lives as long as that. NULL: it is another object.
 * rows_append - append a row of a time (CLOCK_MONOTONIC), one value for each column; nothing where there is no agent any more. With the interpreter's lock.
 */
struct rows_table *rows_table_of(void *append);
void rows_append(struct rows_table *table, uint64_t time_ns, const struct ring_value *values);

/*
 * rows_number - a Python number as a value of a ring; RING_NULL: it is None, a text, or no number. False: Python has an exception that is not ours to
 * clear. With the interpreter's lock.
 */
bool rows_number(void *number, struct ring_value *ret);

/* In a forked child, which writes rows if its parent did, whether or not it has an agent: to rings of its own, each created
 * at its first row. */
void rows_fork(void);

#endif
