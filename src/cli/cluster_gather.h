/* SPDX-License-Identifier: MIT */
/* cluster_gather.h - answers of other machines, and of readers of ranks here, gathered into one cluster. */
#ifndef PROBING_CLI_CLUSTER_GATHER_H
#define PROBING_CLI_CLUSTER_GATHER_H

#include "src/cli/cluster_hosts.h"

/*
 * gather_hosts - ask all hosts "probing cluster WORDS", and read their documents. A host that fails is one with a problem.
 * Errors: -ENOMEM; what running commands reports.
 */
int gather_hosts(const struct cluster_options *options, const char *const *words, struct cluster *cluster);

/* gather_find - add this machine and its ranks, not read yet. -ENOMEM; what opening /proc reports. */
int gather_find(const struct cluster_options *options, struct cluster *cluster);

/*
 * gather_run - read each rank that did not fail by a process "probing WORDS" of its own.
 * @words: end with NULL; "%p" is the PID.
 * @take:  reads the answer of a rank: 0, -ENOMEM, or a negative errno for an answer that makes no sense.
 * Errors: -ENOMEM; what running commands reports.
 */
typedef int gather_take(struct cluster *cluster, struct cluster_rank *rank, const struct command *command);
int gather_run(const struct cluster_options *options, const char *const *words, gather_take *take,
	       struct cluster *cluster);
/*
 * gather_collectives - add the last collective of each process group to the ranks that were read and have the agent. One that
 * does not answer stays as it was. -ENOMEM; what running commands reports.
 */
int gather_collectives(const struct cluster_options *options, struct cluster *cluster);
/* gather_find() and gather_run(). */
int gather_ranks(const struct cluster_options *options, const char *const *words, gather_take *take,
		 struct cluster *cluster);

/* Hosts with another version of probing, on stderr. */
void gather_say_versions(const struct cluster *cluster);

/* Processes that may be ranks, and may not be read, on stderr. */
void gather_say_hidden(const struct cluster *cluster);

/* The exit status for a cluster of which this many ranks were read: the first one that was not says why none was. */
int gather_status(const struct cluster *cluster);

#endif
