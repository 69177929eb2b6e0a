/* SPDX-License-Identifier: MIT */
/* cluster.h - the verbs of `probing cluster`. */
#ifndef PROBING_CLI_CLUSTER_H
#define PROBING_CLI_CLUSTER_H

#include "src/cli/cli.h"

extern const struct verb cluster_verb_backtrace;
extern const struct verb cluster_verb_attach;
extern const struct verb cluster_verb_flamegraph;
extern const struct verb cluster_verb_nodes;
extern const struct verb cluster_verb_query;
extern const struct verb cluster_verb_record;
extern const struct verb cluster_verb_report;
extern const struct verb cluster_verb_rows; /* for probing itself: without a summary, it is in no list */

#endif
