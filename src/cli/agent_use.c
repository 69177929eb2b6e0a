/* SPDX-License-Identifier: MIT */
/* agent_use.c - see agent_use.h. */
#include "src/cli/agent_use.h"

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/cli/cli.h"
#include "src/cli/extension.h"
#include "src/cli/older_probing.h"

enum {
	WELCOME_MS = 10000,
	CONFIGURE_MS = 60000, /* longer than the agent waits for the GIL */
};

void agent_refuse_key(struct argp_state *state, const char *word, const char *why)
{
	size_t n_name = strcspn(word, "=");
	const char *instead = config_find(word, n_name) < 0 ? older_key(word, n_name) : NULL;

	if (instead)
		argp_error(state, "there is no key %.*s: %s", (int)n_name, word, instead);
	else
		argp_error(state, "%s", why);
}

void assignments_take(struct assignments *given, struct argp_state *state, const char *assignment)
{
	char why[CONFIG_MAX_WHY];

	if (config_assign(&given->config, assignment, why) < 0)
		agent_refuse_key(state, assignment, why);
	if (given->n == N_ELEMENTS(given->items))
		argp_error(state, "each key once");
	given->items[given->n++] = assignment;
}

char *agent_path(void)
{
	return library_path(AGENT_FILE, "agent");
}

static int fail(pid_t pid, int error, const char *why)
{
	char text[1024];

	if (why[0])
		return cli_fail(cli_status(error), "%s", why);
	if (error == -ESRCH)
		return cli_fail(EXIT_NO_INPUT, "there is no process %d, or it has just ended", (int)pid);
	if (error == -EPERM || error == -EACCES) {
		backtrace_explain(pid, text, sizeof text);
		return cli_fail(EXIT_NOT_PERMITTED, "%s", text);
	}
	return cli_fail(cli_status(error), "loading the agent into process %d failed: %s", (int)pid, strerror(-error));
}

int agent_put_by(pid_t pid, const struct inject_options *options, struct inject_result *ret)
{
	CLEANUP(freep) char *path = agent_path();
	struct inject_options how = *options;
	int r;

	if (!path)
		return cli_fail(EXIT_FAILED,
				"the agent's library %s was not found beside this program: install probing again",
				AGENT_FILE);
	how.library = path;
	r = inject(pid, &how, ret);
	return r < 0 ? fail(pid, r, ret->why) : EXIT_OK;
}

int agent_put(pid_t pid, unsigned wait_ms, uint32_t options, struct inject_result *ret)
{
	const struct inject_options how = { .agent = options, .patience_ms = wait_ms };

	return agent_put_by(pid, &how, ret);
}

int agent_open(pid_t pid, const struct agent_state *state, struct agent_talk *ret)
{
	struct agent_talk talk;
	struct message message;
	int fd, r;

	r = agent_connect(pid, state, &fd);
	if (r == -EPERM)
		return cli_fail(EXIT_NOT_PERMITTED,
				"process %d is in a network namespace that you may not enter, and the agent listens "
				"there: run probing as root, or in that namespace (nsenter -n -t %d)",
				(int)pid, (int)pid);
	if (r < 0)
		return cli_fail(cli_status(r), "the agent in process %d cannot be reached: %s", (int)pid, strerror(-r));
	r = agent_talk_begin(fd, &talk);
	if (r >= 0)
		r = agent_send(&talk, MESSAGE_HELLO, 0, NULL, 0);
	if (r >= 0)
		r = agent_receive(&talk, WELCOME_MS, &message);
	if (r >= 0 && message.kind != MESSAGE_WELCOME)
		r = -EBADMSG;
	if (r < 0) {
		agent_talk_end(&talk);
		return cli_fail(cli_status(r), "the agent in process %d does not answer: %s", (int)pid, strerror(-r));
	}
	*ret = talk;
	return EXIT_OK;
}

int agent_configure(pid_t pid, struct agent_talk *talk, const char *assignment)
{
	struct message message;
	int r = agent_send(talk, MESSAGE_CONFIGURE, 0, assignment, strlen(assignment));

	if (r >= 0)
		r = agent_receive(talk, CONFIGURE_MS, &message);
	if (r >= 0 && message.kind == MESSAGE_REFUSED)
		return cli_fail(EXIT_FAILED, "process %d: %.*s", (int)pid, (int)message.n_text, message.text);
	if (r >= 0 && message.kind != MESSAGE_CONFIGURATION)
		r = -EBADMSG;
	return r < 0 ? cli_fail(cli_status(r), "the agent in process %d does not answer: %s", (int)pid, strerror(-r))
		     : EXIT_OK;
}

int agent_look(pid_t pid, struct agent_state *ret)
{
	CLEANUP(freep) char *path = agent_path();
	struct agent_state state;
	int r = path ? inject_find(pid, path, &state) : -ENOENT;

	if (r >= 0 && state.status != AGENT_ARMED)
		return -ENOENT;
	if (r >= 0)
		*ret = state;
	return r;
}

/* Its number in its own PID namespace is the last one. Source: proc_pid_status(5), NSpid. */
static pid_t own_pid(pid_t pid)
{
	CLEANUP(freep) char *status = NULL;
	const char *value = NULL, *last;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (read_file(path, 1 << 16, &status, NULL) >= 0)
		value = proc_status_value(status, "NSpid");
	if (!value)
		return pid;
	last = value;
	for (const char *at = value; *at && *at != '\n'; at++)
		if (*at == '\t')
			last = at + 1;
	return (pid_t)strtol(last, NULL, 10);
}

int agent_find_socket(pid_t pid, int *ret)
{
	struct agent_state state = { 0 };
	int r = agent_look(pid, &state);

	if (r == -EPERM || r == -EACCES || r == -ENOSYS) {
		snprintf(state.socket, sizeof state.socket, "probing-%d", (int)own_pid(pid));
		r = 0;
	}
	return r < 0 ? r : agent_connect(pid, &state, ret);
}
