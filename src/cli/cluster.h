/* SPDX-License-Identifier: MIT */
/* cluster.h - the verbs of `probing cluster`. */
#ifndef PROBING_CLI_CLUSTER_H
#define PROBING_CLI_CLUSTER_H

#include "src/cli/cli.h"

/* All of them, NULL at the end; one without a summary is for probing itself, and in no list. */
extern const struct verb *const cluster_verbs[];

extern const struct verb cluster_verb_attach;
extern const struct verb cluster_verb_backtrace;
extern const struct verb cluster_verb_clock;
extern const struct verb cluster_verb_fetch;
extern const struct verb cluster_verb_flamegraph;
extern const struct verb cluster_verb_nodes;
extern const struct verb cluster_verb_query;
extern const struct verb cluster_verb_record;
extern const struct verb cluster_verb_report;
extern const struct verb cluster_verb_rows;

#endif
