/* SPDX-License-Identifier: MIT */
/* matching.h - processes that start while others are recorded, and are meant as well: --comm, --cmdline, --user. */
#ifndef PROBING_CLI_MATCHING_H
#define PROBING_CLI_MATCHING_H

#include "src/cli/targets.h"

struct matching;

/* matching_new - from what is running now on. @options: borrowed. -ENOMEM. */
int matching_new(const struct target_options *options, struct matching **ret);
void matching_free(struct matching *matching);

/*
 * matching_look - what has come since the last look. A process is judged at a few looks, for it may still become another
 * program; afterwards it costs nothing but its line in /proc.
 * @ret: those that match, and may be looked at; the caller ends it with targets_done(). May have been found before.
 * Errors: -ENOMEM; what opening /proc reports.
 */
int matching_look(struct matching *matching, struct targets *ret);

#endif
