/* SPDX-License-Identifier: MIT */
/* load.h - recordings become rows of a matrix: the runs (runs.c), and their samples (load.c). */
#ifndef PROBING_COMPARE_LOAD_H
#define PROBING_COMPARE_LOAD_H

#include "src/compare/compare.h"

/* The run of a process. */
struct run_of_pid {
	int64_t pid, run;
};

/* The recorded runs of one file, as they were added to compare->runs. */
struct file_runs {
	size_t first, n;         /* in compare->runs */
	int64_t *numbers;        /* by run: column run */
	struct run_of_pid *pids; /* sorted by pid; none: all processes belong to the only run */
	size_t n_pids, pids_allocated;
};
void file_runs_done(struct file_runs *runs);

/*
 * runs_read - add rows for all runs of a file, recorded ones first, then those that were only timed.
 * Errors: -EDOM, with why in at least 256 bytes; -EBADMSG; -ENOMEM.
 */
int runs_read(struct compare *compare, enum side side, const char *name, sqlite3 *db, struct file_runs *ret, char *why);
/* runs_add_steps - a run for some steps of a file. Errors: -EBADMSG; -ENOMEM. */
int runs_add_steps(struct compare *compare, const char *name, const struct compare_steps *steps, sqlite3 *db);
/* runs_add_rank - a run for a rank of a job. -ENOMEM. */
int runs_add_rank(struct compare *compare, const struct compare_rank *rank);
void runs_done(struct compare_run *run);

#endif
