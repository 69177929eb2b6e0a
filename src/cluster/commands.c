/* SPDX-License-Identifier: MIT */
/* commands.c - many commands at once, each with a deadline.
 *
 * Each command is a process group of its own. Its deadline kills the group: ssh and what it has started locally end,
 * and a killed reader lets go of the process it has stopped. A command has ended when its outputs are closed and it is
 * reaped; a grandchild that keeps a pipe open lasts until the deadline, and the result of the command counts.
 * A Ctrl-C at the terminal does not reach groups of their own: a signal that ends this process ends them first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cluster/cluster.h"

extern char **environ;

enum { CHUNK = 1 << 16, MAX_COMPLAINT = 4096, REAP_MS = 20 };

struct running {
	struct command *command;
	pid_t pid;
	int fds[2]; /* its stdout and stderr; -1: closed */
	uint64_t started_ns, deadline_ns;
	size_t allocated, complaint_bytes;
};

struct runner {
	const struct commands_options *options;
	struct running *running;
	struct pollfd *polls;
	size_t n_running;
	uint64_t end_ns; /* of all; 0: none */
	size_t n_bytes;  /* of all outputs */
	int signals;     /* readable: a signal wants to end this process */
};

/* ---- Start ---- */

static int spawn_with(struct running *running, char **argv, int out, int complaint)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int r;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, complaint, STDERR_FILENO);
	r = r ? r : posix_spawnattr_setpgroup(&attributes, 0);
	r = r ? r : posix_spawnattr_setsigmask(&attributes, &none);
	r = r ? r : posix_spawnattr_setsigdefault(&attributes, &defaults);
	r = r ? r
	      : posix_spawnattr_setflags(&attributes,
					 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = r ? r : posix_spawnp(&running->pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(struct runner *runner, struct command *command)
{
	CLEANUP(closep) int out_read = -1;
	CLEANUP(closep) int out_write = -1;
	CLEANUP(closep) int complaint_read = -1;
	CLEANUP(closep) int complaint_write = -1;
	struct running running = { .command = command, .started_ns = monotonic_ns() };
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	out_read = ends[0];
	out_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	complaint_read = ends[0];
	complaint_write = ends[1];
	fcntl(out_read, F_SETFL, O_NONBLOCK);
	fcntl(complaint_read, F_SETFL, O_NONBLOCK);
	r = spawn_with(&running, command->argv, out_write, complaint_write);
	if (r < 0)
		return r;
	running.deadline_ns = running.started_ns + runner->options->each_ns;
	if (runner->end_ns != 0)
		running.deadline_ns = MIN(running.deadline_ns, runner->end_ns);
	running.fds[0] = TAKE_FD(out_read);
	running.fds[1] = TAKE_FD(complaint_read);
	runner->running[runner->n_running++] = running;
	return 0;
}

/* ---- Output ---- */

static void close_end(struct running *running, int i)
{
	if (running->fds[i] >= 0)
		close(TAKE_FD(running->fds[i]));
}

static int keep_output(struct runner *runner, struct running *running, const char *bytes, size_t n)
{
	const struct commands_options *options = runner->options;
	struct command *command = running->command;
	size_t needed = command->output_bytes + n + 1;

	runner->n_bytes += n;
	if (needed > options->max_bytes || (options->max_all_bytes > 0 && runner->n_bytes > options->max_all_bytes))
		return -E2BIG;
	if (needed > running->allocated) {
		size_t wanted = MAX(needed, running->allocated * 2);
		char *moved = realloc(command->output, wanted);

		if (!moved)
			return -ENOMEM;
		command->output = moved;
		running->allocated = wanted;
	}
	memcpy(command->output + command->output_bytes, bytes, n);
	command->output_bytes += n;
	command->output[command->output_bytes] = '\0';
	return 0;
}

/* Keep the end. */
static int keep_complaint(struct running *running, const char *bytes, size_t n)
{
	struct command *command = running->command;
	size_t kept;

	if (!command->complaint)
		command->complaint = calloc(1, MAX_COMPLAINT + 1);
	if (!command->complaint)
		return -ENOMEM;
	if (n > MAX_COMPLAINT) {
		bytes += n - MAX_COMPLAINT;
		n = MAX_COMPLAINT;
	}
	kept = MIN(running->complaint_bytes, MAX_COMPLAINT - n);
	memmove(command->complaint, command->complaint + running->complaint_bytes - kept, kept);
	memcpy(command->complaint + kept, bytes, n);
	running->complaint_bytes = kept + n;
	command->complaint[running->complaint_bytes] = '\0';
	return 0;
}

/* Read what is there from one end. */
static int take_output(struct runner *runner, struct running *running, int i)
{
	char bytes[CHUNK];
	ssize_t n = read(running->fds[i], bytes, sizeof bytes);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0) {
		close_end(running, i);
		return 0;
	}
	return i == 0 ? keep_output(runner, running, bytes, (size_t)n) : keep_complaint(running, bytes, (size_t)n);
}

/* ---- End ---- */

static void stop(struct running *running, int error)
{
	struct command *command = running->command;

	kill(-running->pid, SIGKILL);
	kill(running->pid, SIGKILL);
	if (waitpid(running->pid, &command->wait_status, 0) < 0)
		command->wait_status = -1;
	command->error = error;
}

static void remove_running(struct runner *runner, size_t i)
{
	struct running *running = &runner->running[i];

	close_end(running, 0);
	close_end(running, 1);
	running->command->duration_ns = monotonic_ns() - running->started_ns;
	if (runner->options->ended)
		runner->options->ended(runner->options->data, running->command);
	runner->running[i] = runner->running[--runner->n_running];
}

/* Whether it has ended, or is made to. */
static bool finish(struct running *running, uint64_t now)
{
	bool is_silent = running->fds[0] < 0 && running->fds[1] < 0;
	pid_t ended = 0;

	if (is_silent)
		ended = waitpid(running->pid, &running->command->wait_status, WNOHANG);
	if (ended == running->pid)
		return true;
	if (now < running->deadline_ns)
		return false;
	/* It may have ended, while a grandchild holds its pipes. */
	if (waitpid(running->pid, &running->command->wait_status, WNOHANG) == running->pid)
		kill(-running->pid, SIGKILL);
	else
		stop(running, -ETIMEDOUT);
	return true;
}

static int wait_for_some(struct runner *runner)
{
	uint64_t now = monotonic_ns(), next = UINT64_MAX;
	bool reaps = false;
	int timeout;

	for (size_t i = 0; i < runner->n_running; i++) {
		const struct running *running = &runner->running[i];

		for (size_t k = 0; k < 2; k++)
			runner->polls[2 * i + k] = (struct pollfd){ .fd = running->fds[k], .events = POLLIN };
		next = MIN(next, running->deadline_ns);
		reaps |= running->fds[0] < 0 && running->fds[1] < 0;
	}
	runner->polls[2 * runner->n_running] = (struct pollfd){ .fd = runner->signals, .events = POLLIN };
	timeout = next <= now ? 0 : (int)MIN((next - now) / 1000000 + 1, (uint64_t)60000);
	if (reaps)
		timeout = MIN(timeout, REAP_MS);
	if (poll(runner->polls, 2 * runner->n_running + 1, timeout) < 0 && errno != EINTR)
		return -errno;
	return runner->polls[2 * runner->n_running].revents != 0 ? -EINTR : 0;
}

static void look(struct runner *runner)
{
	uint64_t now = monotonic_ns();

	/* From the last on: remove_running() moves the last one to i, which is done then. */
	for (size_t i = runner->n_running; i-- > 0;) {
		struct running *running = &runner->running[i];
		int r = 0;

		for (int k = 0; k < 2 && r >= 0; k++)
			if (running->fds[k] >= 0 && runner->polls[2 * i + (size_t)k].revents != 0)
				r = take_output(runner, running, k);
		if (r < 0)
			stop(running, r);
		if (r < 0 || finish(running, now))
			remove_running(runner, i);
	}
}

static void begin(struct runner *runner, struct command *command)
{
	int r = runner->end_ns != 0 && monotonic_ns() >= runner->end_ns ? -ETIMEDOUT : start(runner, command);

	if (r >= 0)
		return;
	command->error = r;
	if (runner->options->ended)
		runner->options->ended(runner->options->data, command);
}

static int run_all(struct runner *runner, struct command *commands, size_t n, size_t n_at_once)
{
	size_t next = 0;
	int r = 0;

	while (r >= 0 && (next < n || runner->n_running > 0)) {
		while (next < n && runner->n_running < n_at_once)
			begin(runner, &commands[next++]);
		if (runner->n_running == 0)
			continue;
		r = wait_for_some(runner);
		if (r >= 0)
			look(runner);
	}
	while (runner->n_running > 0) {
		stop(&runner->running[0], r);
		remove_running(runner, 0);
	}
	return r;
}

/* Those that are to end this process; not those that it ignores, as under nohup(1). */
static void find_deadly(sigset_t *ret)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(ret);
	for (size_t i = 0; i < N_ELEMENTS(signals); i++)
		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(ret, signals[i]);
}

int commands_run(struct command *commands, size_t n, const struct commands_options *options)
{
	size_t n_at_once = MAX(options->n_at_once, 1);
	CLEANUP(freep) struct running *running = calloc(n_at_once, sizeof *running);
	CLEANUP(freep) struct pollfd *polls = calloc(2 * n_at_once + 1, sizeof *polls);
	CLEANUP(closep) int signals = -1;
	struct runner runner = { .options = options, .running = running, .polls = polls };
	sigset_t deadly, before;
	int r;

	if (!running || !polls)
		return -ENOMEM;
	find_deadly(&deadly);
	signals = signalfd(-1, &deadly, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return -errno;
	runner.signals = signals;
	runner.end_ns = options->all_ns > 0 ? monotonic_ns() + options->all_ns : 0;
	pthread_sigmask(SIG_BLOCK, &deadly, &before);
	r = run_all(&runner, commands, n, n_at_once);
	/* Nobody has read the signal: it ends this process now. */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void commands_done(struct command *commands, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(commands[i].output);
		free(commands[i].complaint);
		commands[i].output = commands[i].complaint = NULL;
	}
}

/* Cut the text before its last line, and return that one; without "probing: ". */
static const char *cut_last_line(char *text)
{
	static const char prefix[] = "probing: ";
	char *line;

	for (size_t n = strlen(text); n > 0 && strchr("\r\n \t", text[n - 1]); n--)
		text[n - 1] = '\0';
	line = strrchr(text, '\n');
	if (line)
		*line++ = '\0';
	else
		line = text;
	return strncmp(line, prefix, strlen(prefix)) == 0 ? line + strlen(prefix) : line;
}

/* The last line that says something: a usage error ends with a hint at --help. */
static const char *last_line(char *text)
{
	const char *line = cut_last_line(text);

	if (strncmp(line, "Try ", strlen("Try ")) == 0 && line != text)
		line = cut_last_line(text);
	return line;
}

void command_explain(const struct command *command, char *to, size_t n_bytes)
{
	CLEANUP(freep) char *complaint = strdup(command->complaint ? command->complaint : "");
	const char *said = complaint ? last_line(complaint) : "";

	if (command->error == -ETIMEDOUT)
		snprintf(to, n_bytes, "no answer in time%s%s", said[0] ? "; it said: " : "", said);
	else if (command->error == -E2BIG)
		snprintf(to, n_bytes, "its answer is too long, or all answers together are");
	else if (command->error < 0)
		snprintf(to, n_bytes, "%s cannot be started: %s", command->argv[0], strerror(-command->error));
	else if (said[0])
		snprintf(to, n_bytes, "%s", said);
	else if (WIFSIGNALED(command->wait_status))
		snprintf(to, n_bytes, "it ended by signal %d (%s)", WTERMSIG(command->wait_status),
			 strsignal(WTERMSIG(command->wait_status)));
	else
		snprintf(to, n_bytes, "it ended with status %d, without a word", WEXITSTATUS(command->wait_status));
}
