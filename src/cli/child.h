/* SPDX-License-Identifier: MIT */
/* child.h - the command that record starts. */
#ifndef PROBING_CLI_CHILD_H
#define PROBING_CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int gate;    /* written to: the child may exec */
	int failure; /* read from: errno of a failed exec; closed by a successful one */
};

/*
 * child_find - whether a command can be found and run, as execvp(3) would.
 * Errors: -ENOENT; -EACCES not executable.
 */
int child_find(const char *command);

/*
 * child_fork - start a process that waits right before its exec.
 * @mask: its signal mask.
 * Errors: what pipe2(2) and fork(2) report.
 */
int child_fork(char **argv, const sigset_t *mask, struct child *ret);

/* Let it exec. Returns 0 once the exec has succeeded, else its negative errno. */
int child_release(struct child *child);

/* Give up before the release: it ends, unseen. */
void child_abandon(struct child *child);

#endif
