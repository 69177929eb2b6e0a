/* SPDX-License-Identifier: MIT */
/* verb_attach.c - arm the probes of a file in a running process. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/probes_use.h"

enum { OPTION_CONFIG = 0x200, OPTION_CHECK };

struct options {
	pid_t pid;
	const char *file;
	bool only_checks;
};

static const struct argp_option option_list[] = {
	{ "config", OPTION_CONFIG, "FILE", 0, "Arm the probes of this YAML file", 0 },
	{ "check", OPTION_CHECK, NULL, 0, "Only check the file; needs no process", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_CONFIG:
		if (options->file)
			argp_error(state, "one --config at a time: %s?", argument);
		options->file = argument;
		return 0;
	case OPTION_CHECK:
		options->only_checks = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_take_pid(state, argument, &options->pid);
		return 0;
	case ARGP_KEY_END:
		if (!options->file)
			argp_error(state, "which probes? Give --config FILE; probing inject loads the agent alone");
		if (!options->pid && !options->only_checks)
			argp_error(state, "in which process? Give its PID");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID",
	.doc = "Arm probes in a running Python process: time functions by name, watch variables, set its sampling. "
	       "Loads the agent first if the process has none, and replaces earlier probes. The tables "
	       "python.function_time, python.function_call and python.variables show the results; probing detach "
	       "disarms all.\v"
	       "The file:\n"
	       "  functions: [train.step, model.Net.forward]  # time these\n"
	       "  variables: [loss@train.step]                # watch this local variable, or VARIABLE@MODULE\n"
	       "  interval: 0.5                               # seconds between two reads of variables [1]\n"
	       "  sampling: {sample_rate: 0.01}               # keys of probing config: sample_rate, retention_days\n"
	       "  torch: on                                   # time the forward pass of torch's modules [off]\n"
	       "\n"
	       "Examples:\n"
	       "  probing attach 4242 --config probes.yaml\n"
	       "  probing 4242 'SELECT func, calls, total_ns / 1e6 AS ms FROM python.function_time'\n"
	       "  probing attach --check --config probes.yaml\n",
};

static int read_probes(const char *path, struct probes *ret)
{
	CLEANUP(freep) char *text = NULL;
	char why[PROBES_WHY_BYTES];
	size_t n_bytes;
	int r = read_file(path, PROBES_MAX_BYTES + 1, &text, &n_bytes);

	if (r < 0)
		return cli_fail(cli_status(r), "%s cannot be read: %s", path, strerror(-r));
	r = probes_parse(text, n_bytes, why, ret);
	if (r == -EINVAL)
		return cli_fail(EXIT_BAD_DATA, "%s:%s", path, why);
	return r < 0 ? cli_fail(cli_status(r), "%s cannot be read: %s", path, strerror(-r)) : EXIT_OK;
}

static int attach(pid_t pid, const struct probes *probes)
{
	struct agent_talk talk;
	int status = agent_get(pid, &talk);

	if (status != EXIT_OK)
		return status;
	status = probes_arm(pid, &talk, probes);
	for (size_t i = 0; i < probes->n_assignments && status == EXIT_OK; i++)
		status = agent_configure(pid, &talk, probes->assignments[i]);
	agent_talk_end(&talk);
	return status;
}

static int run_attach(int argc, char **argv)
{
	struct options options = { 0 };
	struct probes probes;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = read_probes(options.file, &probes);
	if (status != EXIT_OK)
		return status;
	if (options.only_checks)
		printf("%s: %zu functions, %zu variables\n", options.file, probes.n_functions, probes.n_variables);
	else
		status = attach(options.pid, &probes);
	if (status == EXIT_OK && !options.only_checks)
		printf("process %d has probes on %zu functions and %zu variables\n", (int)options.pid,
		       probes.n_functions, probes.n_variables);
	probes_done(&probes);
	return status;
}

const struct verb verb_attach = {
	.name = "attach",
	.summary = "time functions and watch variables in a running process",
	.argp = &argp,
	.run = run_attach,
};
