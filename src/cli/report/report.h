/* SPDX-License-Identifier: MIT */
/* report.h - the sections of `probing report` that read tables of their own. */
#ifndef PROBING_CLI_REPORT_H
#define PROBING_CLI_REPORT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/cli/view.h"
#include "src/report/report.h"

/* ---- collectives.c: which rank has not come to which collective, by the dumps of a Flight Recorder ---- */

/*
 * collectives_summary - of the tables comm_flight*.
 * @ret: ended with report_collectives_done(), on failure, too.
 * Returns 1, or 0: the recording has no dump of a Flight Recorder; negative errno of reading.
 */
int collectives_summary(sqlite3 *db, struct report_collectives *ret);

/* ---- gpu.c: sums of the GPU activity ---- */

/*
 * gpu_summary - of the tables gpu_*.
 * @ret: ended with report_gpu_done(), on failure, too.
 * Returns 1, or 0: the recording has no activity with times and no summary of it; negative errno of reading.
 */
int gpu_summary(sqlite3 *db, struct report_gpu *ret);

/* ---- timeline.c: --timeline ---- */

/*
 * timeline_print - on stdout. @path: NULL: probing.db in this folder. @view: its times and PIDs select.
 * Returns 0, or prints a message and returns an exit status: as cli_open_recording(); there are no metrics (EXIT_NO_INPUT).
 */
int timeline_print(const char *path, const struct view *view, bool is_ascii);

/* ---- torch_modules.c ---- */

/*
 * torch_modules_print - on stdout. @path: NULL: probing.db in this folder; a number: a process, whose rows are read as they are.
 * @view: its PIDs and, of a recording, its times select. Returns 0, or prints a message and returns an exit status: as
 * endpoint_open(); there are no such rows (EXIT_NO_INPUT).
 */
int torch_modules_print(const char *path, const struct view *view, const struct report_options *options);

/* Whether a recording has rows of torch_trace. */
bool torch_modules_are_there(sqlite3 *db);

/* ---- nameless.c: advice for functions without a name, if they matter ---- */

/*
 * nameless_print - "58.0 % of self time is in functions without a name", and the remedy for each module.
 * Prints nothing below 5 %, or without a remedy.
 * @options:   of the preceding report: columns and show_interpreter.
 * @recording: its file, for the command that resolves them; NULL: the profile has no file.
 */
void nameless_print(const struct profile *profile, const struct report_options *options, const char *recording,
		    FILE *out);

#endif
