/* SPDX-License-Identifier: MIT */
/* verb_help.c - probing help [VERB]; manual pages and scripts for completion. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/described.h"

enum { OPTION_MANUAL = 0x200, OPTION_COMPLETION, OPTION_WORDS };

struct options {
	const char *verb, *shell, *kind;
	bool manual;
};

static const struct argp_option option_list[] = {
	{ "man", OPTION_MANUAL, NULL, 0,
	  "Print the manual page of VERB, of probing, of its tables (schema) or of recordings (format), for 'man -l -'",
	  0 },
	{ "completion", OPTION_COMPLETION, "SHELL", 0,
	  "Print the script that completes command lines in bash, zsh or fish", 0 },
	{ "words", OPTION_WORDS, "KIND", 0,
	  "Print the words that an argument may be, for completion: verbs, topics, pids, names, events, formats, functions, tables",
	  0 },
	{ 0 },
};

static int fail_verb(const char *name)
{
	char near[256];

	verb_suggest(name, near, sizeof near);
	if (near[0])
		return cli_fail(EXIT_USAGE, "there is no verb %s; did you mean %s?", name, near);
	return cli_fail(EXIT_USAGE, "there is no verb %s; see probing --help", name);
}

static int help_on(const struct verb *verb)
{
	char full_name[64];
	char *arguments[] = { full_name, "--help", NULL };

	snprintf(full_name, sizeof full_name, "probing %s", verb->name);
	return verb->run(2, arguments);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	struct options *options = state->input;

	switch (key) {
	case OPTION_MANUAL:
		options->manual = true;
		return 0;
	case OPTION_COMPLETION:
		options->shell = shells[cli_parse_word(state, argument, "--completion", shells, N_ELEMENTS(shells))];
		return 0;
	case OPTION_WORDS:
		options->kind = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (options->verb)
			argp_error(state, "one verb at a time");
		options->verb = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[VERB|filters]",
	.doc = "Show the help of a verb, the options that choose samples (filters), or list all verbs.\v"
	       "Examples:\n"
	       "  probing help record\n"
	       "  probing help filters\n"
	       "  probing help record --man | man -l -\n"
	       "  source <(probing help --completion bash)\n"
	       "  probing help --completion fish > ~/.config/fish/completions/probing.fish\n",
};

static int finish(int r)
{
	if (r >= 0 && (fflush(stdout) != 0 || ferror(stdout)))
		return cli_fail_write("-", -errno);
	return r < 0 ? cli_fail(EXIT_FAILED, "%s", strerror(-r)) : EXIT_OK;
}

static int run_help(int argc, char **argv)
{
	struct options options = { 0 };
	const struct verb *verb;
	int r;

	cli_parse(&argp, argc, argv, 0, &options);
	verb = options.verb ? verb_find(options.verb) : NULL;
	if (options.verb && strcmp(options.verb, "filters") == 0 && !options.manual) {
		cli_help_filters();
		return EXIT_OK;
	}
	if (options.verb && !verb && options.manual) {
		r = manual_write_page(options.verb, stdout);
		if (r != -ENOENT)
			return finish(r);
	}
	if (options.verb && !verb)
		return fail_verb(options.verb);
	if (options.manual)
		return finish(manual_write(verb, stdout));
	if (options.shell)
		return finish(completion_write(options.shell, stdout));
	if (options.kind) {
		r = words_put(options.kind, stdout);
		return r == -ENOENT ? cli_fail(EXIT_NO_INPUT, "there are no words of the kind %s here", options.kind)
				    : finish(r);
	}
	if (verb)
		return help_on(verb);
	cli_begin_help();
	cli_help(stdout);
	return EXIT_OK;
}

const struct verb verb_help = {
	.name = "help",
	.summary = "show the help of a verb, its manual page, or a script for completion",
	.argp = &argp,
	.pages = true,
	.run = run_help,
};
