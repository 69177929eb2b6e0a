/* SPDX-License-Identifier: MIT */
/* defaults.c - see record.h. */
#include "src/cli/record/record.h"

#include <stdlib.h>

#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"

/* Get the configuration of the target's agent; false for several targets, or without an agent. */
static bool find_config(const struct record_options *options, struct config *ret)
{
	struct agent_state state;

	if (options->targets.n_pids != 1 || agent_look(options->targets.pids[0], &state) < 0)
		return false;
	*ret = state.config;
	return true;
}

/* Also validate the environment's value if the process's own overrides it. */
static bool find_number(struct argp_state *state, const struct config *config, const struct config_key *key,
			double *ret)
{
	const char *text = getenv(key->variable);
	bool is_given = text && text[0];
	char what[128];

	if (is_given) {
		snprintf(what, sizeof what, "%s (in the environment)", key->variable);
		*ret = cli_parse_number(state, text, what, key->low, key->high);
	}
	return (config && config_number(config, key, ret)) || is_given;
}

void record_defaults(struct argp_state *state, struct record_options *options)
{
	static const double day_ns = 86400e9;
	struct config config;
	const struct config *found = find_config(options, &config) ? &config : NULL;
	double value;

	options->quiet |= cli_is_quiet();
	if (!options->hz_given && options->capture.count == 0 && !options->event_name &&
	    find_number(state, found, &config_sample_rate, &value))
		options->capture.hz = 1 / value;
	/* Modes without retention have no default limit. */
	if (options->pipeline.limits.keep_ns == 0 && options->capture.mode == MODE_CPU &&
	    find_number(state, found, &config_retention_days, &value))
		options->pipeline.limits.keep_ns = (uint64_t)(value * day_ns);
}
