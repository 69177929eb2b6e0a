/* SPDX-License-Identifier: MIT */
/* probes_use.h - arm probes in a process, and read what they have seen. */
#ifndef PROBING_CLI_PROBES_USE_H
#define PROBING_CLI_PROBES_USE_H

#include <stddef.h>
#include <sys/types.h>

#include "src/cli/agent_eval.h"
#include "src/probes/probes.h"

/*
 * probes_arm - replace the probes of a process by those of a file.
 * @talk: with its agent.
 * Returns an exit status, after having said what was wrong; notes of the process go to stderr.
 */
int probes_arm(pid_t pid, struct agent_talk *talk, const struct probes *probes);

/*
 * probes_read - the rows of a table, as live_options.probes wants them.
 * @why: n_why bytes; on failure a sentence.
 * Errors: -ENOENT no agent, or no probe is armed; -EIO it does not answer; -EPERM, -EACCES, -ESRCH, -ENOMEM.
 */
int probes_read(pid_t pid, const char *table, char **ret, size_t *ret_bytes, char *why, size_t n_why);

#endif
