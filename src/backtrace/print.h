/* SPDX-License-Identifier: MIT */
/* print.h - declarations that the text and the JSON output share. Private. */
#ifndef PROBING_BACKTRACE_PRINT_H
#define PROBING_BACKTRACE_PRINT_H

#include "src/backtrace/backtrace.h"

/* The word for a state letter of /proc, "sleeping"; "unknown". */
const char *print_state(char state);

/* Why a thread was not stopped, in a few words; NULL: it was. */
const char *print_reason(enum backtrace_stop stop);

/* The name of a kind of lock, "threading.RLock"; NULL: unknown. */
const char *print_lock(enum backtrace_lock lock);

/* Whether Python's name of a thread equals the kernel's, up to the kernel's limit of length. */
bool print_is_same_name(const char *kernel, const char *python);

#endif
