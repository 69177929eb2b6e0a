/* SPDX-License-Identifier: MIT */
/* cluster_run.h - how every verb of probing cluster that asks ranks runs; a verb is a description. */
#ifndef PROBING_CLI_CLUSTER_RUN_H
#define PROBING_CLI_CLUSTER_RUN_H

#include "src/cli/cluster_hosts.h"

/* The options of a verb begin with their struct cluster_options, which stands for all of them. */
struct cluster_question {
	const struct argp *argp;
	bool has_tables; /* the cluster gets a database, unless this answers another machine */
	/* Contradictions that need more than argp; an exit status. NULL: none. */
	int (*check)(struct cluster_options *options);
	/* Read the ranks of this machine, or ask the hosts. Negative errno, or an exit status after its own message. */
	int (*here)(const struct cluster_options *options, struct cluster *cluster);
	int (*hosts)(const struct cluster_options *options, struct cluster *cluster);
	/* Print, for people; an exit status. Other machines get the document. */
	int (*show)(const struct cluster_options *options, struct cluster *cluster);
};

/* cluster_run - parse, read or ask, and show. @options: cluster_options_init() has set them up; ended here. Returns an exit status. */
int cluster_run(const struct cluster_question *question, struct cluster_options *options, int argc, char **argv);

#endif
