/* SPDX-License-Identifier: MIT */
/* record_defaults.h - default values of a recording's options: from the agent of the process, then from the
 * environment. */
#ifndef PROBING_CLI_RECORD_DEFAULTS_H
#define PROBING_CLI_RECORD_DEFAULTS_H

#include <argp.h>

#include "src/cli/record_options.h"

/*
 * record_defaults - fill in the rate and the retention: of one process the configuration of its agent, else
 * PROBING_SAMPLE_RATE and PROBING_RETENTION_DAYS; quiet by PROBING_LOGLEVEL. A value of the environment that is none
 * is a usage error.
 */
void record_defaults(struct argp_state *state, struct record_options *options);

#endif
