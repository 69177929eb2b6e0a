/* SPDX-License-Identifier: MIT */
/* backtrace_format.h - why a process' backtrace is missing or incomplete. */
#ifndef PROBING_CLI_BACKTRACE_FORMAT_H
#define PROBING_CLI_BACKTRACE_FORMAT_H

#include <sys/types.h>

#include "src/backtrace/backtrace.h"

enum { SAY_BYTES = 1024 };

/* The process of a thread; 0: unknown. */
pid_t backtrace_process_of(pid_t tid);

/*
 * backtrace_print_failure - the sentence for an error of backtrace_take().
 * @to: SAY_BYTES.
 * Returns the exit status that fits.
 */
int backtrace_print_failure(const struct backtrace_options *look, int error, char *to);

/* Prints on stderr. @whose: prefix of each line, "process 12: " if there are several; "". */
void backtrace_print_shortcomings(const struct backtrace *backtrace, const char *whose);

#endif
