/* SPDX-License-Identifier: MIT */
/* verb_detach.c - end the agent in a process. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"

enum { BYE_MS = 20000 };

static error_t parse(int key, char *argument, struct argp_state *state)
{
	pid_t *pid = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		cli_take_pid(state, argument, pid);
		return 0;
	case ARGP_KEY_END:
		cli_require_pid(state, *pid);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "PID",
	.doc = "End the agent's threads in a process, and close its socket. The library stays mapped, unused.\v"
	       "Examples:\n"
	       "  probing detach 4242\n",
};

static int send_detach(pid_t pid, struct agent_talk *talk)
{
	struct message message;
	int r;

	r = agent_send(talk, MESSAGE_DETACH, 0, NULL, 0);
	if (r >= 0)
		r = agent_receive(talk, BYE_MS, &message);
	if (r < 0)
		return cli_fail(cli_status(r), "the agent in process %d does not answer: %s", (int)pid, strerror(-r));
	if (message.kind != MESSAGE_BYE)
		return cli_fail(EXIT_FAILED, "the agent in process %d continues: %.*s", (int)pid, (int)message.n_text,
				message.text);
	printf("the agent in process %d has ended\n", (int)pid);
	return EXIT_OK;
}

static int find(pid_t pid, struct agent_state *ret)
{
	CLEANUP(freep) char *path = agent_path();
	char text[1024];
	int r = path ? inject_find(pid, path, ret) : -ENOENT;

	if (r == -ESRCH)
		return cli_fail(EXIT_NO_INPUT, "there is no process %d, or it has just ended", (int)pid);
	if (r == -ENOENT || (r >= 0 && ret->status != AGENT_ARMED))
		return cli_fail(EXIT_FAILED, "process %d has no agent", (int)pid);
	if (r == -EXDEV)
		return cli_fail(
			EXIT_FAILED,
			"another version of the agent is in process %d: only that version's probing can detach it",
			(int)pid);
	if (r >= 0)
		return EXIT_OK;
	backtrace_explain(pid, text, sizeof text);
	return cli_fail(cli_status(r), "%s", text);
}

static int run_detach(int argc, char **argv)
{
	struct agent_state state;
	struct agent_talk talk;
	pid_t pid = 0;
	int status;

	cli_parse(&argp, argc, argv, 0, &pid);
	status = find(pid, &state);
	if (status == EXIT_OK)
		status = agent_open(pid, &state, &talk);
	if (status != EXIT_OK)
		return status;
	status = send_detach(pid, &talk);
	agent_talk_end(&talk);
	return status;
}

const struct verb verb_detach = {
	.name = "detach",
	.summary = "end the agent in a process",
	.argp = &argp,
	.run = run_detach,
};
