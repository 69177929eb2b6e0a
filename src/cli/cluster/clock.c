/* SPDX-License-Identifier: MIT */
/* clock.c - probing cluster clock: for probing itself, how far the clock of another machine is ahead.
 *
 * With --local it answers: the time for each line on stdin. With a command it asks: the command runs the other side, over ssh
 * or whatever --ssh names, so that all exchanges use one connection, and only the first one waits for its start.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/cluster/hosts.h"
#include "src/http/http.h"

extern char **environ;

enum { N_EXCHANGES = 16, MAX_ANSWERS = 1000, LINE_BYTES = 32, HTTP_MS = 10000 };

struct options {
	struct cluster_options cluster;
	int first; /* index of the command's first word; 0: none */
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	if (key != ARGP_KEY_ARG)
		return cluster_options_parse(key, argument, state, &options->cluster);
	options->first = state->next - 1;
	state->next = state->argc;
	return 0;
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[-- COMMAND...]",
	.doc = "For probing cluster record: measure how far the clock of another machine is ahead.",
};

/* ---- Answer ---- */

static int answer_all(void)
{
	char line[LINE_BYTES];

	for (unsigned i = 0; i < MAX_ANSWERS && fgets(line, sizeof line, stdin); i++)
		if (printf("%" PRIu64 "\n", realtime_ns()) < 0 || fflush(stdout) != 0)
			return cli_fail_write("-", -errno);
	return EXIT_OK;
}

/* ---- Ask ---- */

struct other {
	pid_t pid;
	FILE *to, *from;
	int wait_status;
};

static void other_done(struct other *other)
{
	if (other->to)
		fclose(TAKE(other->to));
	if (other->from)
		fclose(TAKE(other->from));
	if (other->pid > 0)
		waitpid(other->pid, &other->wait_status, 0);
	other->pid = 0;
}

/* Its stderr is ours, and so is its process group: commands_run() ends both. */
static int other_start(char **argv, struct other *ret)
{
	posix_spawn_file_actions_t actions;
	int to[2], from[2], r;

	if (pipe2(to, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(from, O_CLOEXEC) < 0) {
		r = -errno;
		close(to[0]);
		close(to[1]);
		return r;
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0) {
		r = posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
		r = r ? r : posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
		r = r ? r : posix_spawnp(&ret->pid, argv[0], &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(to[0]);
	close(from[1]);
	ret->to = fdopen(to[1], "w");
	ret->from = fdopen(from[0], "r");
	return r != 0 ? -r : ret->to && ret->from ? 0 : -ENOMEM;
}

/* One question; -EPIPE: the other side has ended. */
static int exchange(struct other *other, struct clock_exchange *ret)
{
	char line[LINE_BYTES];

	ret->asked_ns = (int64_t)realtime_ns();
	if (fputs("?\n", other->to) < 0 || fflush(other->to) != 0)
		return -EPIPE;
	if (!fgets(line, sizeof line, other->from))
		return -EPIPE;
	ret->answered_ns = (int64_t)realtime_ns();
	return clock_parse(line, &ret->theirs_ns);
}

static int ask_time(char **argv)
{
	CLEANUP(other_done) struct other other = { 0 };
	struct clock_exchange exchanges[N_EXCHANGES];
	struct clock_offset offset;
	int r = other_start(argv, &other);

	signal(SIGPIPE, SIG_IGN);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "%s cannot be started: %s", argv[0], strerror(-r));
	for (size_t i = 0; i < N_EXCHANGES && r >= 0; i++)
		r = exchange(&other, &exchanges[i]);
	other_done(&other);
	/* Its own last line on stderr, which is ours, is the reason. */
	if (r == -EPIPE && WIFEXITED(other.wait_status) && WEXITSTATUS(other.wait_status) != 0)
		return EXIT_FAILED;
	if (r == -EPIPE)
		return cli_fail(EXIT_FAILED, "it does not answer with its time");
	if (r < 0 || !clock_offset_of(exchanges, N_EXCHANGES, &offset))
		return cli_fail(EXIT_FAILED, "its answer is not a time");
	printf("%" PRId64 " %" PRId64 "\n", offset.offset_ns, offset.error_ns);
	return EXIT_OK;
}

/* ---- Ask over HTTPS ---- */

static int exchange_over_http(struct http *http, const struct http_request *request, struct clock_exchange *ret)
{
	struct http_answer answer;
	int r;

	ret->asked_ns = (int64_t)realtime_ns();
	r = http_send(http, request, &answer);
	ret->answered_ns = (int64_t)realtime_ns();
	if (r < 0)
		return cli_fail(EXIT_FAILED, "%s", http_error(http));
	if (answer.status != 200)
		return cli_fail(EXIT_FAILED,
				answer.status == 401 ? "it refuses the token" : "its answer is not a time");
	return clock_parse(answer.body, &ret->theirs_ns) < 0 ? cli_fail(EXIT_FAILED, "its answer is not a time")
							     : EXIT_OK;
}

/* The connection stays open: the first exchange alone waits for TLS. */
static int ask_over_http(const struct cluster_options *options)
{
	CLEANUP(http_closep) struct http *http = NULL;
	CLEANUP(http_forgetp) char *bearer = NULL;
	struct clock_exchange exchanges[N_EXCHANGES];
	struct clock_offset offset;
	char url[HTTP_MAX_URL];
	const char *headers[2] = { NULL };
	struct http_request request = { .method = "GET", .url = url, .headers = headers, .max_answer = LINE_BYTES };
	int status = cluster_open_http(options, HTTP_MS, &http, &bearer);

	headers[0] = bearer;
	if (snprintf(url, sizeof url, "%s/clock", options->hosts.words[0]) >= (int)sizeof url)
		return cli_fail(EXIT_USAGE, "the name of the host is too long");
	for (size_t i = 0; i < N_EXCHANGES && status == EXIT_OK; i++)
		status = exchange_over_http(http, &request, &exchanges[i]);
	if (status == EXIT_OK && !clock_offset_of(exchanges, N_EXCHANGES, &offset))
		return cli_fail(EXIT_FAILED, "its answer is not a time");
	if (status == EXIT_OK)
		printf("%" PRId64 " %" PRId64 "\n", offset.offset_ns, offset.error_ns);
	return status;
}

static int run_cluster_clock(int argc, char **argv)
{
	struct options options = { 0 };
	int status;

	cluster_options_init(&options.cluster);
	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	if (options.cluster.is_local)
		status = answer_all();
	else if (options.cluster.hosts.n > 0)
		status = ask_over_http(&options.cluster);
	else if (options.first > 0)
		status = ask_time(argv + options.first);
	else
		status = cli_fail(EXIT_USAGE, "give the command that asks the other machine");
	cluster_options_done(&options.cluster);
	return status;
}

const struct verb cluster_verb_clock = {
	.name = "clock",
	.summary = NULL, /* for probing itself */
	.argp = &argp,
	.run = run_cluster_clock,
};
