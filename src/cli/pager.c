/* SPDX-License-Identifier: MIT */
/* pager.c - see pager.h.
 *
 * The pager has the terminal until its user quits it, and so outlives everything that ends this process: exit(3), a signal, a
 * write to a pager that is gone. Each way out closes the pipe and waits. Otherwise shell and pager would both read the keys.
 */
#include "src/cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"

extern char **environ;

enum { MAX_PATH = 4096 };

static struct {
	bool is_allowed, is_forbidden, was_tried;
	pid_t owner; /* this process: a child of ours inherits the handlers, and has no pager */
	volatile pid_t pid;
} pager;

void pager_allow(void)
{
	pager.is_allowed = true;
}

void pager_forbid(void)
{
	pager.is_forbidden = true;
}

bool pager_is_on(void)
{
	return pager.pid > 0;
}

/* In signal handlers, too. */
static void close_and_wait(void)
{
	pid_t pid = pager.pid;

	if (pid <= 0 || getpid() != pager.owner)
		return;
	pager.pid = 0;
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void end_at_exit(void)
{
	if (!pager_is_on())
		return;
	fflush(stdout); /* a failure is a pager that is gone: on_signal() ends the process */
	close_and_wait();
}

/* POLLERR on a pipe: nobody reads it any more. Source: pipe_poll() in fs/pipe.c, Linux 6.1. */
static bool is_gone(void)
{
	struct pollfd output = { .fd = STDOUT_FILENO };

	return pager_is_on() && poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

static struct sigaction ends[NSIG]; /* how a signal ended the process before; zeros: by default */

static void on_signal(int number)
{
	bool was_quit = number == SIGPIPE && is_gone();

	close_and_wait();
	if (was_quit)
		_exit(EXIT_OK);
	sigaction(number, &ends[number], NULL);
	raise(number);
}

static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	struct sigaction before;

	for (size_t i = 0; i < N_ELEMENTS(signals); i++) {
		bool is_known = sigaction(signals[i], NULL, &before) == 0;

		if (is_known && before.sa_flags & (int)SA_RESETHAND) /* it removes files, and ends the process */
			ends[signals[i]] = before;
		else if (signals[i] != SIGPIPE && !(is_known && before.sa_handler == SIG_DFL))
			continue;
		sigaction(signals[i], &(struct sigaction){ .sa_handler = on_signal }, NULL);
	}
}

/* Whether the shell would find the program of a command. One that needs the shell's syntax is taken to be there. */
static bool is_there(const char *command)
{
	size_t n = strcspn(command, " \t");
	const char *folders = getenv("PATH");
	char path[MAX_PATH];

	if (strcspn(command, "|&;<>()$`\\\"'*?[#~=%\n") < n)
		return true;
	if (memchr(command, '/', n)) {
		snprintf(path, sizeof path, "%.*s", (int)n, command);
		return access(path, X_OK) == 0;
	}
	for (size_t n_folder; folders && *folders; folders += n_folder + (folders[n_folder] == ':')) {
		n_folder = strcspn(folders, ":");
		snprintf(path, sizeof path, "%.*s/%.*s", (int)n_folder, folders, (int)n, command);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* NULL: none. */
static const char *command_of_user(void)
{
	const char *command = getenv("PROBING_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	command += strspn(command, " \t");
	return !*command || strcmp(command, "cat") == 0 || !is_there(command) ? NULL : command;
}

static bool is_terminal_for_it(void)
{
	const char *kind = getenv("TERM");

	return isatty(STDOUT_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

/* Whether both descriptors are of one file, as a terminal's are. */
static bool are_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int run(const char *command, int ends[2], pid_t *ret)
{
	char *words[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;
	int r;

	if (!getenv("LESS"))
		setenv("LESS", "FRX", 1);
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	if (r == 0)
		r = posix_spawn(ret, "/bin/sh", &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

void pager_start(void)
{
	const char *command;
	pid_t pid;
	int ends[2];

	if (!pager.is_allowed || pager.is_forbidden || pager.was_tried || !is_terminal_for_it())
		return;
	pager.was_tried = true;
	command = command_of_user();
	if (!command || atexit(end_at_exit) != 0 || pipe2(ends, O_CLOEXEC) < 0)
		return;
	fflush(stdout);
	cli_keep_terminal();
	if (run(command, ends, &pid) < 0) {
		close(ends[0]);
		close(ends[1]);
		return;
	}
	pager.owner = getpid();
	pager.pid = pid;
	catch_signals();
	if (are_same(STDERR_FILENO, STDOUT_FILENO))
		dup2(ends[1], STDERR_FILENO);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[0]);
	close(ends[1]);
}
