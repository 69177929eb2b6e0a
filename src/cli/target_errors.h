/* SPDX-License-Identifier: MIT */
/* target_errors.h - the processes that a verb samples, with a sentence where that fails. */
#ifndef PROBING_CLI_TARGET_ERRORS_H
#define PROBING_CLI_TARGET_ERRORS_H

#include <sys/types.h>

#include "src/target/target.h"

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

/* target_find - targets_find() with a message. Returns an exit status; @ret as targets_find() has it. */
int target_find(struct target_options *options, struct targets *ret);

/* target_print_refused - print on stderr which processes are left out; nothing if there are none. @done: "recorded". */
void target_print_refused(const struct targets *targets, const char *done);

/* target_open_control - control_open() with a message. Returns an exit status; @ret as control_open() has it. */
int target_open_control(const char *paths, struct control *ret);

#endif
