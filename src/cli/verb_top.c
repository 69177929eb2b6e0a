/* SPDX-License-Identifier: MIT */
/* verb_top.c - probing top: from the arguments to the restored terminal.
 *
 * As when recording, permission and arguments are checked first; the screen is opened last,
 * so that errors appear on an unchanged terminal, and closed
 * before the last message.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"
#include "src/cli/target_errors.h"
#include "src/cli/top/top.h"
#include "src/target/target.h"

enum { DEFAULT_HZ = 99, DEFAULT_ROWS = 20, DEFAULT_WINDOW_S = 5 };

static const char use_instead[] = "use --batch, or `probing record` and `probing report`";

/* The command as text. NULL: out of memory. */
static char *words_of(char **command)
{
	char *text = NULL;

	for (char **word = command; *word; word++) {
		char *longer;
		int n = asprintf(&longer, "%s%s%s", text ? text : "", text ? " " : "", *word);

		free(text);
		if (n < 0)
			return NULL;
		text = longer;
	}
	return text;
}

static int fail_store(int error)
{
	return cli_fail(cli_status(error), "no file for the samples can be created in $TMPDIR, /tmp or /dev/shm: %s",
			strerror(-error));
}

/* Open everything that reads; the capture is open already. */
static int open_session(struct top_session *session)
{
	const struct top_arguments *arguments = session->arguments;
	int r;

	if (!session->command)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = top_new(&arguments->top, monotonic_ns(), &session->top);
	if (r >= 0)
		r = top_watch_new(session->pid, &session->watch);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	session->pipeline_options = (struct pipeline_options){ .async = arguments->async,
							       .take_sample = top_take,
							       .take_data = session->top };
	r = top_start_pipeline(session);
	return r < 0 ? fail_store(r) : EXIT_OK;
}

/* ---- The screen ---- */

/* Check before anything starts. */
static int check_terminal(const struct top_arguments *arguments)
{
	const char *kind = getenv("TERM");

	if (arguments->batch)
		return EXIT_OK;
	if (!isatty(STDOUT_FILENO))
		return cli_fail(EXIT_USAGE, "standard output is not a terminal: %s", use_instead);
	if (!kind || !kind[0] || strcmp(kind, "dumb") == 0)
		return cli_fail(EXIT_USAGE, "the terminal type \"%s\" (TERM) does not support full-screen output: %s",
				kind ? kind : "", use_instead);
	return EXIT_OK;
}

/* Read keys from standard input if it is a terminal, else from the terminal itself. */
static int open_keys(void)
{
	return isatty(STDIN_FILENO) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open("/dev/tty", O_RDONLY | O_CLOEXEC);
}

static int open_screen(struct top_session *session)
{
	const char *kind = getenv("TERM");
	int r;

	if (session->arguments->batch)
		return EXIT_OK;
	session->keys = open_keys();
	if (session->keys < 0)
		return cli_fail(EXIT_USAGE, "there is no terminal to read keys from: %s", use_instead);
	r = screen_open(session->keys, STDOUT_FILENO, cli_colour(STDOUT_FILENO), &session->screen);
	if (r == -EOPNOTSUPP)
		return cli_fail(
			EXIT_USAGE,
			"the terminal type \"%s\" (TERM) is unknown, or does not support full-screen output: %s", kind,
			use_instead);
	return r < 0 ? cli_fail(EXIT_FAILED, "the terminal cannot be drawn on: %s", strerror(-r)) : EXIT_OK;
}

/* ---- A process, or a command ---- */

/* The main process comes first. Returns an exit status. */
static int find_processes(const struct top_arguments *arguments, struct targets *ret)
{
	pid_t pid = arguments->pid;
	struct target_options options = { .pids = &pid, .n_pids = 1, .descendants = arguments->subprocesses };
	int status = target_find(&options, ret);

	free(options.uids);
	return status;
}

static int attach(struct top_session *session)
{
	const struct top_arguments *arguments = session->arguments;
	CLEANUP(targets_done) struct targets targets = { 0 };
	int r, status, python_error = 0;
	char python[64];

	session->pid = arguments->pid;
	status = find_processes(arguments, &targets);
	if (status != EXIT_OK)
		return status;
	r = capture_attach_all(&arguments->capture, targets.pids, targets.n, &session->capture);
	if (r < 0)
		return target_fail_capture(r, arguments->pid);
	status = target_check_memory(arguments->pid);
	if (status != EXIT_OK)
		return status;
	session->command = proc_text(arguments->pid, "cmdline", 4096);
	status = open_session(session);
	if (status != EXIT_OK)
		return status;
	r = pipeline_attach(session->pipeline, arguments->pid, python, sizeof python, &python_error);
	for (size_t i = 0; (r >= 0 || r == -ESRCH) && i < targets.n; i++)
		r = MIN(pipeline_join(session->pipeline, targets.pids[i]), 0);
	if (r < 0 && r != -ESRCH)
		return target_fail_capture(r, arguments->pid);
	r = capture_begin(session->capture); /* now that the maps of all processes have been read */
	return r < 0 ? cli_fail(EXIT_FAILED, "not enough memory") : EXIT_OK;
}

/* The screen and the keys use the terminal, so the command gets other streams. */
static int open_output(const struct top_arguments *arguments)
{
	return new_file_open_log(arguments->output ? arguments->output : "/dev/null", arguments->mode);
}

/* Fork with other standard streams, and restore ours afterwards. */
static int fork_quietly(const struct top_arguments *arguments, const sigset_t *mask, struct child *ret)
{
	CLEANUP(closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CLEANUP(closep) int out = open_output(arguments);
	int before[3], r = null < 0 || out < 0 ? MIN(out, -EIO) : 0;

	if (out < 0)
		return out;
	fflush(NULL);
	for (int fd = 0; fd < 3; fd++)
		before[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	for (int fd = 0; fd < 3 && r >= 0; fd++)
		r = dup2(fd == 0 ? null : out, fd) < 0 ? -errno : 0;
	if (r >= 0)
		r = child_fork(arguments->command, mask, ret);
	for (int fd = 0; fd < 3; fd++) {
		if (before[fd] < 0)
			close(fd);
		else
			dup2(before[fd], fd);
		closep(&before[fd]);
	}
	return r;
}

/* Everything between fork and exec; on failure, the caller abandons the child. */
static int start(struct top_session *session, struct child *child)
{
	const struct top_arguments *arguments = session->arguments;
	int r, status;

	r = capture_launch(&arguments->capture, child->pid, &session->capture);
	if (r < 0)
		return target_fail_capture(r, child->pid);
	status = capture_source(session->capture) == SOURCE_POLL ? target_check_memory(child->pid) : EXIT_OK;
	if (status != EXIT_OK)
		return status;
	session->command = words_of(arguments->command);
	status = open_session(session);
	if (status != EXIT_OK)
		return status;
	if (pipeline_expect(session->pipeline, child->pid) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = child_release(child);
	return r < 0 ? target_fail_command(arguments->command[0], r) : EXIT_OK;
}

static int launch(struct top_session *session, const sigset_t *mask)
{
	const struct top_arguments *arguments = session->arguments;
	struct child child;
	int r, status;

	r = child_find(arguments->command[0]);
	if (r < 0)
		return target_fail_command(arguments->command[0], r);
	r = fork_quietly(arguments, mask, &child);
	if (r < 0 && arguments->output)
		return cli_fail_open(arguments->output, r);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(-r));
	session->pid = child.pid;
	session->is_child = true;
	status = start(session, &child);
	if (status != EXIT_OK)
		child_abandon(&child);
	return status;
}

/* ---- The end ---- */

static void close_session(struct top_session *session)
{
	screen_close(TAKE(session->screen));
	pipeline_free(TAKE(session->pipeline));
	capture_free(TAKE(session->capture));
	top_watch_free(TAKE(session->watch));
	top_free(TAKE(session->top));
	free(TAKE(session->command));
	closep(&session->keys);
}

/* Called after closing the screen. */
static int finish(struct top_session *session)
{
	if (session->end_command)
		kill(session->pid, SIGTERM);
	if (session->error < 0 && session->write_failed)
		return cli_fail_write("-", session->error);
	if (session->error < 0)
		return cli_fail(cli_status(session->error), "the live view stopped: %s", strerror(-session->error));
	return session->signal > 0 && session->signal != SIGINT ? 128 + session->signal : EXIT_OK;
}

/* ---- A fleet ---- */

static int show_fleet(struct top_arguments *arguments, struct top_session *session)
{
	struct top_fleet *fleet = NULL;
	int status = top_fleet_open(arguments, session, &fleet);

	if (!arguments->has_window)
		arguments->top.window_s = TOP_FLEET_WINDOW_S;
	if (status == EXIT_OK && top_new(&arguments->top, monotonic_ns(), &session->top) < 0)
		status = cli_fail(EXIT_FAILED, "not enough memory");
	if (status == EXIT_OK)
		status = open_screen(session);
	if (status == EXIT_OK) {
		top_run(session);
		screen_close(TAKE(session->screen));
		status = session->error < 0 && !session->write_failed ? top_fleet_fail(fleet, session->error)
								      : finish(session);
	}
	top_fleet_close(fleet);
	return status;
}

static int run_top(int argc, char **argv)
{
	struct top_arguments arguments = {
		.capture = { .hz = DEFAULT_HZ, .stack_bytes = SAMPLE_STACK_BYTES },
		.top = { .window_s = DEFAULT_WINDOW_S },
		.delay_s = 1,
		.n_rows = DEFAULT_ROWS,
	};
	struct top_session session = { .arguments = &arguments, .keys = -1 };
	sigset_t mask;
	int status;

	cli_parse(&top_argp, argc, argv, ARGP_IN_ORDER, &arguments);
	arguments.capture.connect_agent = agent_find_socket;
	arguments.capture.agent_why = target_agent_why();
	arguments.top.is_child = arguments.command != NULL;
	arguments.top.is_interactive = !arguments.batch;
	status = check_terminal(&arguments);
	if (status != EXIT_OK)
		return status;
	top_block_signals(&mask);
	if (arguments.address) {
		status = show_fleet(&arguments, &session);
		close_session(&session);
		view_done(&arguments.view);
		return status;
	}
	status = arguments.command ? launch(&session, &mask) : attach(&session);
	if (status == EXIT_OK)
		status = open_screen(&session);
	if (status == EXIT_OK) {
		top_run(&session);
		screen_close(TAKE(session.screen));
		status = finish(&session);
	}
	close_session(&session);
	return status;
}

const struct verb verb_top = {
	.name = "top",
	.aliases = NULL,
	.target = "--pid",
	.summary = "show the time of a process or a command live",
	.argp = &top_argp,
	.run = run_top,
};
