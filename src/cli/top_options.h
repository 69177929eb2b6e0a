/* SPDX-License-Identifier: MIT */
/* top_options.h - the options of probing top. */
#ifndef PROBING_CLI_TOP_OPTIONS_H
#define PROBING_CLI_TOP_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/capture/capture.h"
#include "src/cli/view.h"
#include "src/top/top.h"

enum { TOP_FLEET_WINDOW_S = 60 }; /* hosts send their samples about that often */

struct top_arguments {
	pid_t pid;
	const char *address; /* of a fleet; NULL: a process is shown */
	struct view view;    /* of a fleet */
	bool has_window;     /* an option has set top.window_s */
	char **command;      /* NULL: attach to pid */
	mode_t mode;         /* of output; 0: default */
	const char *output;  /* file for the command's output; NULL: discard it */
	struct capture_options capture;
	struct top_options top;
	double delay_s;    /* between two refreshes */
	unsigned n_frames; /* end after so many; 0: do not */
	unsigned n_rows;   /* of each, in batches */
	bool batch, exit, async, subprocesses;
};

/* Fills a struct top_arguments with preset defaults; checks it as a whole. Strings are argv's. */
extern const struct argp top_argp;

#endif
