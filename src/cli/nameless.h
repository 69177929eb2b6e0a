/* SPDX-License-Identifier: MIT */
/* nameless.h - what gives names to functions that have none, where these matter. */
#ifndef PROBING_CLI_NAMELESS_H
#define PROBING_CLI_NAMELESS_H

#include <stdio.h>

#include "src/report/report.h"

/*
 * nameless_print - "58.0 % of self time is in functions without a name", and what to do for each module.
 * Nothing where that is below 5 %, or where nothing can be done.
 * @options:   of the report that it follows: columns and show_interpreter.
 * @recording: its file, for the command that names them; NULL: the profile is of none.
 */
void nameless_print(const struct profile *profile, const struct report_options *options, const char *recording,
		    FILE *out);

#endif
