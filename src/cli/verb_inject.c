/* SPDX-License-Identifier: MIT */
/* verb_inject.c - load the agent into a running process. */
#include <string.h>

#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"

enum { OPTION_WAIT = 0x200, OPTION_FOLLOW, OPTION_METHOD, OPTION_TRUST };

struct options {
	pid_t pid;
	double wait_s;
	uint32_t agent;
	enum inject_method method;
	bool trusts_filter;
	struct assignments given;
};

static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "Load it into this process; PID alone says the same", 0 },
	{ "wait", OPTION_WAIT, "TIME", 0, "Wait this long for a thread at a safe place [5s]", 0 },
	ASSIGNMENT_OPTION_ROW,
	{ "follow-forks", OPTION_FOLLOW, NULL, 0, "Give children that the process forks an agent of their own", 0 },
	{ "method", OPTION_METHOD, "METHOD", 0,
	  "Load it by this method: interpreter (Python 3.14 and later run a script), thread (a stopped thread is used), or auto: "
	  "the first that works [auto]",
	  0 },
	{ "trust-filter", OPTION_TRUST, NULL, 0,
	  "Load it although the process has a seccomp filter that you may not read; the filter must not end the process for the "
	  "agent's system calls",
	  0 },
	{ 0 },
};

static enum inject_method parse_method(struct argp_state *state, const char *word)
{
	static const char *const names[] = {
		[INJECT_AUTO] = "auto",
		[INJECT_BY_INTERPRETER] = "interpreter",
		[INJECT_BY_THREAD] = "thread",
	};

	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		if (strcmp(word, names[i]) == 0)
			return (enum inject_method)i;
	argp_error(state, "--method is auto, interpreter or thread, not %s", word);
	return INJECT_AUTO;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
	case ARGP_KEY_ARG:
		cli_take_pid(state, argument, &options->pid);
		return 0;
	case OPTION_WAIT:
		options->wait_s = cli_parse_duration(state, argument, "--wait", 0, 3600);
		return 0;
	case OPTION_METHOD:
		options->method = parse_method(state, argument);
		return 0;
	case OPTION_TRUST:
		options->trusts_filter = true;
		return 0;
	case 'D':
		assignments_take(&options->given, state, argument);
		return 0;
	case OPTION_FOLLOW:
		options->agent |= AGENT_FOLLOW_FORKS;
		return 0;
	case ARGP_KEY_END:
		cli_require_pid(state, options->pid);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID",
	.doc = "Load the agent into a running Python process, for eval. Python 3.14 and later load it between two "
	       "instructions. Elsewhere probing uses a thread at a safe place for about a millisecond. That thread "
	       "restores itself even if probing ends.\v"
	       "Examples:\n"
	       "  probing inject 4242\n"
	       "  probing 4242 inject -D eval=off\n"
	       "  probing detach 4242\n",
};

static int run_inject(int argc, char **argv)
{
	struct options options = { .wait_s = 5 };
	struct inject_options how;
	struct inject_result result;
	struct agent_talk talk;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	/* Must hold from the start; other settings follow when the agent answers. */
	if (!config_is_on(&options.given.config, &config_eval))
		options.agent |= AGENT_NO_EVAL;
	how = (struct inject_options){
		.agent = options.agent,
		.patience_ms = (unsigned)(options.wait_s * 1000),
		.method = options.method,
		.trusts_filter = options.trusts_filter,
	};
	status = agent_put_by(options.pid, &how, &result);
	if (status != EXIT_OK)
		return status;
	status = agent_open(options.pid, &result.state, &talk);
	if (status != EXIT_OK)
		return status;
	for (size_t i = 0; i < options.given.n && status == EXIT_OK; i++)
		status = agent_configure(options.pid, &talk, options.given.items[i]);
	agent_talk_end(&talk);
	if (status != EXIT_OK)
		return status;
	if (result.was_there)
		printf("process %d has the agent already\n", (int)options.pid);
	else if (result.method == INJECT_BY_INTERPRETER)
		printf("the agent is in process %d (its Python loaded it)\n", (int)options.pid);
	else
		printf("the agent is in process %d (a thread was used for %.1f ms, after %u tries)\n", (int)options.pid,
		       (double)result.stopped_ns / 1e6, result.n_tries);
	return EXIT_OK;
}

const struct verb verb_inject = {
	.name = "inject",
	.aliases = "in i",
	.summary = "load the agent into a running Python process",
	.argp = &argp,
	.run = run_inject,
};
