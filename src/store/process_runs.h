/* SPDX-License-Identifier: MIT */
/* process_runs.h - the run of each process of a merged recording, for a column of `sample`. Private. */
#ifndef PROBING_STORE_PROCESS_RUNS_H
#define PROBING_STORE_PROCESS_RUNS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
