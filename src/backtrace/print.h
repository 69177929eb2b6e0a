/* SPDX-License-Identifier: MIT */
/* print.h - what the two ways of printing share. Private. */
#ifndef PROBING_BACKTRACE_PRINT_H
#define PROBING_BACKTRACE_PRINT_H

#include "src/backtrace/backtrace.h"

/* What a state letter of /proc means, "sleeping"; "unknown". */
const char *print_state(char state);

/* Why a thread was not stopped, in a few words; NULL: it was. */
const char *print_reason(enum backtrace_stop stop);

/* What a lock is called, "threading.RLock"; NULL: unknown. */
const char *print_lock(enum backtrace_lock lock);

/* Whether what Python calls a thread is what the kernel does, as far as that keeps it. */
bool print_is_same_name(const char *kernel, const char *python);

#endif
