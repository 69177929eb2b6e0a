/* SPDX-License-Identifier: MIT */
/* nameless.h - advice for functions without a name, if they matter. */
#ifndef PROBING_CLI_NAMELESS_H
#define PROBING_CLI_NAMELESS_H

#include <stdio.h>

#include "src/report/report.h"

/*
 * nameless_print - "58.0 % of self time is in functions without a name", and the remedy for each module.
 * Prints nothing below 5 %, or without a remedy.
 * @options:   of the preceding report: columns and show_interpreter.
 * @recording: its file, for the command that resolves them; NULL: the profile has no file.
 */
void nameless_print(const struct profile *profile, const struct report_options *options, const char *recording,
		    FILE *out);

#endif
