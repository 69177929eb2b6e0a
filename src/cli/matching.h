/* SPDX-License-Identifier: MIT */
/* matching.h - processes that start while others are recorded, and are meant as well: --comm, --cmdline, --user. */
#ifndef PROBING_CLI_MATCHING_H
#define PROBING_CLI_MATCHING_H

#include "src/cli/targets.h"

struct matching;

/* matching_new - for processes that start from now on. @options: borrowed. -ENOMEM. */
int matching_new(const struct target_options *options, struct matching **ret);
void matching_free(struct matching *matching);

/*
 * matching_look - find new processes since the last call. Each process is judged in a few calls, because it may exec
 * another program; afterwards it costs only its line in /proc.
 * @ret: matching ones that may be sampled; the caller ends it with targets_done(). May contain ones found before.
 * Errors: -ENOMEM; what opening /proc reports.
 */
int matching_look(struct matching *matching, struct targets *ret);

#endif
