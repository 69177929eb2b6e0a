/* SPDX-License-Identifier: MIT */
/* pager.h - long text on a terminal goes through the user's pager, as git and systemctl show theirs. */
#ifndef PROBING_CLI_PAGER_H
#define PROBING_CLI_PAGER_H

#include <stdbool.h>

/*
 * pager_allow - the verb prints text for people: pager_start() may start a pager. Without this call, it does not.
 * pager_forbid - of --no-pager, and of output that must reach its end; for the whole process.
 */
void pager_allow(void);
void pager_forbid(void);

/*
 * pager_start - start the pager, if it is allowed, once, before the first byte of output.
 * Standard output must be a terminal, and TERM not "dumb". The command is PROBING_PAGER, else PAGER, else less; "" and
 * "cat" are none. It gets LESS=FRX if LESS is not set: it ends by itself where the text fits on the screen.
 * From then on standard output and, if it is the same terminal, standard error are a pipe to it. The process waits for
 * its end in exit(3). If its user quits it early, the process ends with EXIT_OK at its next write.
 * If no pager can be started, output goes to the terminal as it is.
 */
void pager_start(void);

/* Whether standard output is a pipe to the pager, so that the reader is on a terminal. */
bool pager_is_on(void);

#endif
