/* SPDX-License-Identifier: MIT */
/* verb_serve.c - recordings and processes over HTTP, until Ctrl-C. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/cli/python_program.h"
#include "src/export/export.h"
#include "src/serve/serve.h"

enum { OPTION_PORT = 0x200, OPTION_SOCKET, OPTION_TIMEOUT, OPTION_LIMIT, MAX_TARGETS = 64, MAX_COMMAND = 4096 };

struct options {
	const char *words[MAX_TARGETS];
	size_t n_words;
	struct serve_options serve;
	bool has_port;
};

static const struct argp_option option_list[] = {
	{ "port", OPTION_PORT, "PORT", 0, "Listen on this port of 127.0.0.1 (default: any free one)", 0 },
	{ "socket", OPTION_SOCKET, "PATH", 0, "Listen on a new unix socket instead, for your user only", 0 },
	{ "timeout", OPTION_TIMEOUT, "TIME", 0, "Cancel queries that take longer (default: 30s)", 0 },
	{ "limit", OPTION_LIMIT, "ROWS", 0, "Return at most ROWS rows of each result (default: 10000)", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_PORT:
		options->serve.port = (uint16_t)cli_parse_number(state, argument, "--port", 0, UINT16_MAX);
		options->has_port = true;
		return 0;
	case OPTION_SOCKET:
		options->serve.socket = argument;
		return 0;
	case OPTION_TIMEOUT:
		options->serve.timeout_s = cli_parse_duration(state, argument, "--timeout", 0.1, 3600);
		return 0;
	case OPTION_LIMIT:
		options->serve.max_rows = (uint64_t)cli_parse_number(state, argument, "--limit", 1, 1e9);
		return 0;
	case ARGP_KEY_ARG:
		if (options->n_words >= MAX_TARGETS)
			argp_error(state, "at most %d targets at a time", MAX_TARGETS);
		options->words[options->n_words++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (options->serve.socket && options->has_port)
			argp_error(state, "give --port or --socket, not both");
		if (options->n_words == 0)
			options->words[options->n_words++] = "probing.db";
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE|PID...]",
	.doc = "Show recordings (default: probing.db) and running processes in a browser, and answer HTTP requests of scripts, "
	       "on this machine only. Prints a link, whose token one browser can use once. Ctrl-C ends it. Nobody "
	       "can change a recording or run code in a process this way.\v"
	       "Examples:\n"
	       "  probing serve\n"
	       "  probing serve train.db 4242\n"
	       "  PROBING_AUTH_TOKEN=$(openssl rand -hex 16) probing serve 4242 --port 9922\n"
	       "  probing serve train.db --socket /run/user/1000/probing.sock\n"
	       "\n"
	       "With PROBING_AUTH_TOKEN (16 to 256 characters), requests may send Authorization: Bearer TOKEN; without it, the "
	       "token of the link is accepted there until a browser has opened the link. docs/serve.md describes the "
	       "requests.\n",
};

/* ---- Targets ---- */

static int fail_memory(void)
{
	return cli_fail(EXIT_FAILED, "not enough memory");
}

static int fill_process(const char *word, struct serve_target *ret)
{
	ret->pid = (pid_t)strtol(word, NULL, 10);
	ret->word = strdup(word);
	ret->command = proc_text(ret->pid, "cmdline", MAX_COMMAND);
	if (!ret->word || !ret->command)
		return fail_memory();
	if (!python_program(ret->pid, ret->python))
		ret->python[0] = '\0';
	ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	if (ret->pidfd < 0)
		return cli_fail(errno == ESRCH ? EXIT_NO_INPUT : EXIT_FAILED, "process %s cannot be served: %s", word,
				strerror(errno));
	return EXIT_OK;
}

/* The verbs that answer run in this folder too; a path from "/" is never taken for an option or for SQL. */
static int fill_recording(const char *word, struct serve_target *ret)
{
	ret->word = realpath(word, NULL);
	return ret->word ? EXIT_OK : cli_fail(cli_status(-errno), "%s cannot be opened: %s", word, strerror(errno));
}

/* One that cannot be asked now is an error at the start. */
static int fill_target(const char *word, struct serve_target *ret)
{
	struct endpoint endpoint;
	int status;

	*ret = (struct serve_target){ .name = word, .pidfd = -1 };
	status = endpoint_open(&word, 1, false, &endpoint);
	if (status == EXIT_OK)
		status = endpoint_finish(&endpoint, EXIT_OK);
	if (status != EXIT_OK)
		return status;
	return endpoint_is_process(word) ? fill_process(word, ret) : fill_recording(word, ret);
}

static void target_done(struct serve_target *target)
{
	free((char *)target->word);
	free((char *)target->command);
	if (target->pidfd >= 0)
		close(target->pidfd);
}

/* ---- Serving ---- */

static int read_token(const char **ret)
{
	const char *token = getenv("PROBING_AUTH_TOKEN");
	size_t n = token ? strlen(token) : 0;

	if (n > 0 && (n < SERVE_MIN_TOKEN || n > SERVE_MAX_TOKEN))
		return cli_fail(EXIT_USAGE, "PROBING_AUTH_TOKEN must have %d to %d characters", SERVE_MIN_TOKEN,
				SERVE_MAX_TOKEN);
	*ret = n > 0 ? token : NULL;
	return EXIT_OK;
}

static int fail_open(const struct options *options, int error)
{
	if (error == -EOPNOTSUPP)
		return cli_fail(EXIT_FAILED, "this probing was built without libmicrohttpd, which serve needs");
	if (error == -ENOPKG)
		return cli_fail(EXIT_FAILED,
				"libmicrohttpd, which serve needs, cannot be loaded: apt install libmicrohttpd12");
	if (error == -EADDRINUSE && options->serve.socket)
		return cli_fail(EXIT_NO_OUTPUT, "%s exists: remove it, or give another path", options->serve.socket);
	if (error == -EADDRINUSE)
		return cli_fail(EXIT_NO_OUTPUT, "port %u is in use: give another one, or none", options->serve.port);
	return cli_fail(EXIT_NO_OUTPUT, "%s cannot be opened: %s",
			options->serve.socket ? options->serve.socket : "the port", strerror(-error));
}

/* nohup(1): a signal that is blocked would be taken all the same. */
static bool is_ignored(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Those that are closed would become connections, and then the input or output of a command. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Signals are blocked before there are threads: only serve_run() takes them. */
static int serve(const struct options *options)
{
	CLEANUP(serve_closep) struct serve *serve = NULL;
	sigset_t ends;
	int r;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* the exit status of each command is read */
	fill_standard_descriptors();
	r = serve_open(&options->serve, &serve);
	if (r < 0)
		return fail_open(options, r);
	if (printf("%s\n", serve_link(serve)) < 0 || fflush(stdout) != 0)
		return cli_fail_write("-", -errno);
	cli_say("Ctrl-C ends it\n");
	r = serve_run(serve, &ends);
	return r < 0 ? cli_fail(EXIT_FAILED, "serving failed: %s", strerror(-r)) : EXIT_OK;
}

static int run_serve(int argc, char **argv)
{
	struct options options = {
		.serve = { .timeout_s = 30, .max_rows = 10000, .has_html = !export_diff_html_lacks() }
	};
	struct serve_target targets[MAX_TARGETS];
	size_t n = 0;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = read_token(&options.serve.token);
	while (status == EXIT_OK && n < options.n_words) {
		status = fill_target(options.words[n], &targets[n]);
		n++;
	}
	options.serve.targets = targets;
	options.serve.n_targets = n;
	if (status == EXIT_OK)
		status = serve(&options);
	for (size_t i = 0; i < n; i++)
		target_done(&targets[i]);
	return status;
}

const struct verb verb_serve = {
	.name = "serve",
	.summary = "show recordings and processes in a browser",
	.argp = &argp,
	.run = run_serve,
};
