/* SPDX-License-Identifier: MIT */
/* compare_arguments.h - the compared recordings and the options of the comparison, for diff and check. */
#ifndef PROBING_CLI_COMPARE_ARGUMENTS_H
#define PROBING_CLI_COMPARE_ARGUMENTS_H

#include <argp.h>

#include "base/glob_list.h"
#include "src/cli/cli.h"
#include "src/cli/new_file_options.h"
#include "src/cli/view.h"
#include "src/compare/compare.h"

struct compare_arguments {
	struct glob_list files[N_SIDES]; /* as they were given: a file, a list with commas, a glob */
	struct view view;
	struct view_time base_since,
		base_until; /* of the base, instead of the view's; all zero: as the view has them */
	struct compare_options options;
	mode_t mode; /* of the written files; 0: default */
};

enum { KEY_COMPARE_PER = 0x700, KEY_COMPARE_MIN_SHARE, KEY_COMPARE_BASE_SINCE, KEY_COMPARE_BASE_UNTIL };

#define COMPARE_ARGUMENTS_OPTION_ROWS                                                                                         \
	CHMOD_OPTION_ROW,                                                                                                     \
		{ "normalize",                                                                                                \
		  KEY_COMPARE_PER,                                                                                            \
		  "WHAT",                                                                                                     \
		  0,                                                                                                          \
		  "Normalise by: run (default), wall (per second of wall time), samples (share of all samples), rest (ratio " \
		  "to all other code of the same run, independent of the machine's speed), or a counter of the table "        \
		  "counter",                                                                                                  \
		  0 },                                                                                                        \
	{                                                                                                                     \
		"min-change-share", KEY_COMPARE_MIN_SHARE, "PERCENT", 0,                                                      \
			"Ignore functions below PERCENT of the total on both sides (default: 1)", 0                           \
	}

void compare_arguments_init(struct compare_arguments *arguments);
void compare_arguments_done(struct compare_arguments *arguments);

/* One option of these, or of the view's; ARGP_ERR_UNKNOWN: it is neither. A mistake ends the process. */
error_t compare_arguments_parse(int key, char *argument, struct argp_state *state, struct compare_arguments *arguments);

/* compare_arguments_add - recordings of a side: the name of a file, else a list with commas of files and globs. */
void compare_arguments_add(struct compare_arguments *arguments, enum side side, const char *argument,
			   struct argp_state *state);

/*
 * compare_arguments_run - read all of them and compare. Returns 0, or prints a message and returns an exit status.
 * @ret: ended with compare_free().
 */
int compare_arguments_run(struct compare_arguments *arguments, struct compare **ret);

/* The last part of it: compare what was added. @why of errors is printed. */
int compare_arguments_compute(struct compare *compare);
/* Print why a recording cannot be compared; for return statements. */
int compare_arguments_fail(const char *path, int error, const char *why);

/* compare_arguments_write - write a file, or stdout (-), by put. Returns 0, or prints a message and returns an exit
 * status. */
int compare_arguments_write(const struct compare_arguments *arguments, const char *path, output_put *put,
			    const void *data);

#endif
