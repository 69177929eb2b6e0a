/* SPDX-License-Identifier: MIT */
/* processes.h - the run, the host and the rank of each process of a recording, for columns of `sample`. Private. */
#ifndef PROBING_STORE_PROCESSES_H
#define PROBING_STORE_PROCESSES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- process_runs.c: of a merged recording ---- */

struct process_runs;

/* Whether a recording is a merged one: it has the table run_process. */
bool process_runs_are_there(sqlite3 *db);

/* process_runs_load - @ret: ended with process_runs_free(). Errors: -ENOMEM; negative errno of reading. */
int process_runs_load(sqlite3 *db, struct process_runs **ret);
void process_runs_free(struct process_runs *runs);

/*
 * process_runs_find - the run that a process belonged to at a time, in seconds since 1970; -1: the recording does not have
 * the process. A process of several runs is in one at a time; between two of them it counts for the earlier one.
 */
int64_t process_runs_find(const struct process_runs *runs, int64_t pid, double time);

/* ---- process_ranks.c ---- */

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
