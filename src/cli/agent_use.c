/* SPDX-License-Identifier: MIT */
/* agent_use.c - see agent_use.h. */
#include "src/cli/agent_use.h"

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/capture/capture.h"
#include "src/cli/cli.h"
#include "src/cli/extension.h"
#include "src/cli/older_probing.h"
#include "src/cli/target_errors.h"

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
	if (r < 0)
		return fail(pid, r, ret->why);
	if (!ret->was_there && ret->state.options & AGENT_NO_ROWS && !cli_is_quiet())
		cli_say("probing: the agent in process %d drops rows, because a seccomp filter would end the process for "
			"writing them\n",
			(int)pid);
	return EXIT_OK;
}

int agent_put(pid_t pid, unsigned wait_ms, uint32_t options, struct inject_result *ret)
{
	const struct inject_options how = { .agent = options, .patience_ms = wait_ms };

	return agent_put_by(pid, &how, ret);
}

/* Returns an exit status, with a message. */
static int check(pid_t pid, unsigned parts, bool is_trusted)
{
	char why[INJECT_WHY_BYTES];
	int r = inject_check(pid, parts, is_trusted, why);

	if (r < 0 && why[0])
		return cli_fail(cli_status(r), "%s", why);
	return r < 0 ? cli_fail(cli_status(r), "the threads of process %d cannot be read: %s", (int)pid, strerror(-r))
		     : EXIT_OK;
}

int agent_open(pid_t pid, const struct agent_state *state, struct agent_talk *ret)
{
	struct agent_talk talk;
	struct message message;
	int fd, r = check(pid, INJECT_TALK, true);

	if (r != EXIT_OK)
		return r;
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

/* The part of the agent that an assignment switches on, of enum inject_part; 0: none. */
static unsigned part_of(const char *assignment)
{
	struct config config = { 0 };
	int key = config_find(assignment, strcspn(assignment, "="));
	char ignored[CONFIG_MAX_WHY];
	const char *text;

	if (key < 0 || config_assign(&config, assignment, ignored) < 0 || !config.values[key].is_set)
		return 0;
	text = config_text(&config, config_keys[key]);
	if (strcmp(text, "off") == 0 || strcmp(text, "0") == 0)
		return 0;
	return config_keys[key] == &config_crash ? INJECT_CRASH : config_keys[key]->module ? INJECT_ROWS : 0;
}

int agent_configure(pid_t pid, struct agent_talk *talk, const char *assignment)
{
	unsigned parts = part_of(assignment);
	struct agent_state state = { 0 };
	struct message message;
	int r = parts ? check(pid, parts, agent_look(pid, &state) >= 0 && state.options & AGENT_TRUSTS_FILTER)
		      : EXIT_OK;

	if (r != EXIT_OK)
		return r;
	r = agent_send(talk, MESSAGE_CONFIGURE, 0, assignment, strlen(assignment));
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

static pid_t own_pid(pid_t pid)
{
	CLEANUP(freep) char *status = NULL;
	pid_t own;

	if (proc_read(pid, "status", 1 << 16, &status, NULL) < 0 || proc_status_own_pid(status, &own, NULL) < 0)
		return pid;
	return own;
}

/* By the names that an agent takes, for its memory has the name but may not be read; others in its network may have the first. */
static int connect_by_usual_names(pid_t pid, int *ret)
{
	struct agent_state state = { 0 };
	int number = (int)own_pid(pid), r = -ECONNREFUSED;

	for (unsigned i = 0; r == -ECONNREFUSED && i < AGENT_MAX_NAMES; i++) {
		agent_format_socket(state.socket, number, i);
		r = agent_connect(pid, &state, ret);
	}
	return r;
}

int agent_find_socket(pid_t pid, int *ret)
{
	struct agent_state state = { 0 };
	char why[INJECT_WHY_BYTES] = "";
	int r = agent_look(pid, &state);
	bool is_unseen = r == -EPERM || r == -EACCES || r == -ENOSYS;

	if (r >= 0 || is_unseen)
		r = inject_check(pid, INJECT_TALK | INJECT_SAMPLE, state.options & AGENT_TRUSTS_FILTER, why);
	if (r == -EPERM && why[0]) {
		snprintf(target_agent_why(), CAPTURE_WHY_BYTES, "%s", why);
		return -EBUSY;
	}
	if (r < 0)
		return r;
	return is_unseen ? connect_by_usual_names(pid, ret) : agent_connect(pid, &state, ret);
}
