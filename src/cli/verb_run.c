/* SPDX-License-Identifier: MIT */
/* verb_run.c - start a command with the agent in its Python processes.
 *
 * probing becomes the command: nothing of it remains. PYTHONPATH provides the start hook, as a sitecustomize that then
 * runs the program's own (python/start), so that the package need not be installed for the command's interpreter.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"
#include "src/cli/extension.h"

static const char start_file[] = "start/sitecustomize.py";

struct options {
	bool recursive;
	char **command;
	struct assignments given;
};

enum { KEY_RECURSIVE = 0x200 };

static const struct argp_option option_list[] = {
	{ "recursive", KEY_RECURSIVE, NULL, 0, "Load the agent into Python processes that the command starts, too", 0 },
	ASSIGNMENT_OPTION_ROW,
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_RECURSIVE:
		options->recursive = true;
		return 0;
	case 'D':
		assignments_take(&options->given, state, argument);
		return 0;
	case ARGP_KEY_ARGS:
		options->command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->command)
			argp_error(state, "the command is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "COMMAND [ARGUMENT...]",
	.doc = "Start a command with the agent in it, as PROBING=1 does where the package is installed; with "
	       "--recursive as PROBING=2. A value of PROBING in the environment wins. Interpreters started with -I, -E "
	       "or -S run without the agent.\v"
	       "Examples:\n"
	       "  probing run python3 train.py --epochs 1\n"
	       "  probing launch -r torchrun --nproc-per-node 2 train.py\n",
};

static int set_mode(const struct options *options)
{
	const char *given = getenv("PROBING");
	CLEANUP(freep) char *value = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&value, &n_bytes);

	if (!out)
		return -ENOMEM;
	fputs(given && given[0] && !options->recursive ? given : options->recursive ? "2" : "1", out);
	for (size_t i = 0; i < options->given.n; i++)
		fprintf(out, ",%s", options->given.items[i]);
	return fclose(out) != 0 || setenv("PROBING", value, 1) < 0 ? -ENOMEM : 0;
}

static int set_environment(const struct options *options, const char *library, char *start)
{
	const char *before = getenv("PYTHONPATH");
	CLEANUP(freep) char *path = NULL;
	int r = set_mode(options);

	if (r < 0)
		return r;
	*strrchr(start, '/') = '\0';
	if (asprintf(&path, "%s%s%s", start, before && before[0] ? ":" : "", before && before[0] ? before : "") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return setenv("PYTHONPATH", path, 1) < 0 || setenv("PROBING_AGENT", library, 1) < 0 ? -ENOMEM : 0;
}

static int run_run(int argc, char **argv)
{
	CLEANUP(freep) char *library = agent_path(), *start = library_path(start_file, "../python");
	struct options options = { 0 };

	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	if (!library || !start)
		return cli_fail(EXIT_FAILED, "%s was not found beside this program: install probing again",
				library ? start_file : AGENT_FILE);
	if (set_environment(&options, library, start) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	execvp(options.command[0], options.command);
	return cli_fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s cannot be executed: %s",
			options.command[0], strerror(errno));
}

const struct verb verb_run = {
	.name = "run",
	.aliases = "launch",
	.summary = "start a command with the agent in it",
	.argp = &argp,
	.run = run_run,
};
