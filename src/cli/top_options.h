/* SPDX-License-Identifier: MIT */
/* top_options.h - what was asked of probing top. */
#ifndef PROBING_CLI_TOP_OPTIONS_H
#define PROBING_CLI_TOP_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/capture/capture.h"
#include "src/top/top.h"

struct top_arguments {
	pid_t pid;
	char **command;     /* NULL: attach to pid */
	mode_t mode;        /* of output; 0: not asked for */
	const char *output; /* where the command's output goes; NULL: nowhere */
	struct capture_options capture;
	struct top_options top;
	double delay_s;    /* between two refreshes */
	unsigned n_frames; /* end after so many; 0: do not */
	unsigned n_rows;   /* of each, in batches */
	bool batch, exit, async, subprocesses;
};

/* Fills a struct top_arguments, whose defaults are set before; checked as a whole. Strings are argv's. */
extern const struct argp top_argp;

#endif
