/* SPDX-License-Identifier: MIT */
/* crash.h - the key probing.crash: a report on a fatal signal, or an uncaught exception. Private.
 *
 * While it is on, another process, `probing crash`, waits beside this one. On SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS
 * and SIGABRT the thread asks it for a report, and waits until that is written. Then the signal goes the way that it
 * would have gone: to the program's handler, or to the kernel, with the same status and core.
 */
#ifndef PROBING_AGENT_CRASH_H
#define PROBING_AGENT_CRASH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * crash_set - switch reports on or off. Called by the listening thread, which has a file table of its own.
 * @text: of the key; NULL, "off": off.
 * Returns NULL, or a clause that says why there are no reports.
 */
const char *crash_set(const char *text);

/* Whether crash_set() has been done for the start of the agent, and its clause ("" on success). Any thread. */
bool crash_is_set(const char **ret_why);

/*
 * crash_tell - have a report about an uncaught exception written, and wait for it. Any thread.
 * @text: its traceback. False: none.
 */
bool crash_tell(const char *text, size_t n_text);

/* In a forked child: its crashes are not reported. */
void crash_fork(void);

#endif
