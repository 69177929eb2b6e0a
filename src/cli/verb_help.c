/* SPDX-License-Identifier: MIT */
/* verb_help.c - probing help [VERB]. */
#include <string.h>

#include "src/cli/cli.h"

static int help_on(const char *name)
{
	const struct verb *verb = verb_find(name);
	char full_name[64], near[256];
	char *arguments[] = { full_name, "--help", NULL };

	if (verb) {
		snprintf(full_name, sizeof full_name, "probing %s", verb->name);
		return verb->run(2, arguments);
	}
	verb_suggest(name, near, sizeof near);
	if (near[0])
		return cli_fail(EXIT_USAGE, "there is no verb %s; did you mean %s?", name, near);
	return cli_fail(EXIT_USAGE, "there is no verb %s; see probing --help", name);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	const char **name = state->input;

	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (*name)
		argp_error(state, "one verb at a time");
	*name = argument;
	return 0;
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "[VERB]",
	.doc = "Show the help of a verb, or list all verbs.",
};

static int run_help(int argc, char **argv)
{
	const char *name = NULL;

	cli_parse(&argp, argc, argv, 0, &name);
	if (name)
		return help_on(name);
	cli_help(stdout);
	return EXIT_OK;
}

const struct verb verb_help = {
	.name = "help",
	.summary = "show the help of a verb",
	.run = run_help,
};
