/* SPDX-License-Identifier: MIT */
/* ranks.h - the ranks of distributed jobs on this machine. */
#ifndef PROBING_CLI_RANKS_H
#define PROBING_CLI_RANKS_H

#include "src/cluster/cluster.h"

/* Selection by the user. All zero: every rank on this machine. */
struct rank_selection {
	char *pattern; /* a part of the command line, or a glob of it; NULL: any */
	pid_t *pids;   /* these processes; owned */
	size_t n_pids, pids_allocated;
	pid_t launcher; /* it and its descendants; 0: any */
	char *job;      /* ranks of this job alone; NULL: any */
};

struct local_rank {
	pid_t pid, parent;
	struct rank_identity identity;
};

/*
 * ranks_find - the processes that are ranks now, in no order. A rank is the first Python process with its number: the
 * workers of its data loader inherit its environment, and a launcher may have a number of another kind.
 * With a selection, and if no selected process has a rank: all of them.
 * @ret: free(3) ends it; at most CLUSTER_MAX_RANKS.
 * @ret_hidden: processes that look like Python by their command line, and whose environment may not be read: they may be
 *   ranks.
 * Errors: -ENOMEM; what opening /proc reports.
 */
int ranks_find(const struct rank_selection *selection, struct local_rank **ret, size_t *ret_n, size_t *ret_hidden);

#endif
