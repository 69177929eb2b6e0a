/* SPDX-License-Identifier: MIT */
/* cluster.h - the verbs of `probing cluster`. */
#ifndef PROBING_CLI_CLUSTER_H
#define PROBING_CLI_CLUSTER_H

#include "src/cli/cli.h"

extern const struct verb cluster_verb_backtrace;

#endif
