/* SPDX-License-Identifier: MIT */
/* target_errors.h - why a process or command cannot be sampled, as a sentence. */
#ifndef PROBING_CLI_TARGET_ERRORS_H
#define PROBING_CLI_TARGET_ERRORS_H

#include <sys/types.h>

/* Of capture_attach() and capture_launch(). Returns an exit status. */
int target_fail_capture(int error, pid_t pid);

/* Of child_find() and child_release(). Returns an exit status. */
int target_fail_command(const char *command, int error);

/*
 * target_check_memory - whether memory may be read, a right of its own beside sampling: Yama's
 * ptrace_scope restricts only that. Returns 0, or prints a message and returns an exit status.
 */
int target_check_memory(pid_t pid);

/* Where the reason goes if an agent refuses: struct capture_options, agent_why. target_fail_capture() prints it. */
char *target_agent_why(void);

#endif
