/* SPDX-License-Identifier: MIT */
/* process_ranks.h - the host and the rank of each process of a recording, for columns of `sample`. Private. */
#ifndef PROBING_STORE_PROCESS_RANKS_H
#define PROBING_STORE_PROCESS_RANKS_H

#include <sqlite3.h>
#include <stdint.h>

struct process_rank {
	const char *host;         /* NULL: unknown. Borrowed */
	int64_t rank, local_rank; /* -1: none */
};

struct process_ranks;

/*
 * process_ranks_load - all processes of a recording; an older one has hosts of its runs, and no ranks.
 * @ret: ended with process_ranks_free(). Errors: -ENOMEM; negative errno of reading.
 */
int process_ranks_load(sqlite3 *db, struct process_ranks **ret);
void process_ranks_free(struct process_ranks *ranks);

/* process_ranks_find - NULL: the recording does not have this process. */
const struct process_rank *process_ranks_find(const struct process_ranks *ranks, int64_t pid);

#endif
