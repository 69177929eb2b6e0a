/* SPDX-License-Identifier: MIT */
/* command.c - see command.h.
 *
 * The child is a fork of a process with threads: before its exec it makes system calls only.
 */
#include "src/serve/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

enum { READ_BYTES = 64 << 10, GRACE_MS = 10000, TICK_MS = 10 };

void command_result_done(struct command_result *result)
{
	free(result->out);
	*result = (struct command_result){ 0 };
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A file in memory with these bytes, at its beginning. */
static int make_input(const char *input, size_t n)
{
	CLEANUP(closep) int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < n;) {
		ssize_t written = pwrite(fd, input + done, n - done, (off_t)done);

		if (written < 0)
			return -errno;
		done += (size_t)written;
	}
	return TAKE_FD(fd);
}

static void __attribute__((noreturn))
run_child(const char *const *words, int in, int out, int err, bool is_bound, pid_t parent, const sigset_t *none)
{
	setpgid(0, 0);
	/* Descriptors of connections stay here, whatever the library has done about them; before Linux 5.9 it alone does. */
	if ((is_bound && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0) || getppid() != parent || dup2(in, 0) < 0 ||
	    dup2(out, 1) < 0 || dup2(err, 2) < 0 || (syscall(SYS_close_range, 3U, ~0U, 0U) < 0 && errno != ENOSYS))
		_exit(1);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, none, NULL);
	execv("/proc/self/exe", (char *const *)words);
	_exit(1);
}

/* Until there is output, or stdout is closed. */
static int await_output(const struct command *command)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = command->out, .events = POLLIN },
			{ .fd = command->stop, .events = POLLIN },
			{ .fd = command->client, .events = POLLRDHUP },
		};
		int64_t left_ms = command->deadline_ms - now_ms();

		if (left_ms <= 0)
			return -ETIME;
		if (poll(fds, 3, (int)MIN(left_ms, INT32_MAX)) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return -ECANCELED;
		if (fds[2].revents)
			return -ECONNRESET;
		if (fds[0].revents)
			return 0;
	}
}

ssize_t command_read(const struct command *command, char *to, size_t n)
{
	for (;;) {
		int r = await_output(command);
		ssize_t got = r < 0 ? r : read(command->out, to, n);

		if (r < 0 || got >= 0)
			return got;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

/* All of it. -EMSGSIZE: too much. */
static int take_output(const struct command *command, struct command_result *to)
{
	ssize_t n = 1;

	while (n > 0) {
		int r = to->n_out >= COMMAND_MAX_OUTPUT ? -EMSGSIZE
							: grow(&to->out, to->n_out + READ_BYTES, &to->allocated, 1);

		if (r < 0)
			return r;
		n = command_read(command, to->out + to->n_out, READ_BYTES - 1);
		to->n_out += n > 0 ? (size_t)n : 0;
	}
	return (int)n;
}

/* @ret_status: as of waitpid(2); that of a failure where somebody else has taken it. */
static bool has_ended(pid_t pid, int *ret_status)
{
	pid_t ended = waitpid(pid, ret_status, WNOHANG);

	if (ended < 0)
		*ret_status = W_EXITCODE(1, 0);
	return ended != 0;
}

/* It may close stdout and go on: until the deadline it is waited for, then it is ended with its group. */
static int end_child(const struct command *command, int r, struct command_result *to)
{
	struct pollfd stopped = { .fd = command->stop, .events = POLLIN };
	pid_t pid = command->pid;
	int64_t kill_ms;
	int status = 0;

	while (r == 0 && !has_ended(pid, &status)) {
		if (now_ms() > command->deadline_ms)
			r = -ETIME;
		else if (poll(&stopped, 1, TICK_MS) > 0)
			r = -ECANCELED;
		else
			continue;
		break;
	}
	if (r < 0) {
		kill(pid, SIGTERM); /* it ends its own processes, and removes its files */
		kill_ms = now_ms() + GRACE_MS;
		while (!has_ended(pid, &status)) {
			if (now_ms() > kill_ms)
				kill(-pid, SIGKILL);
			poll(NULL, 0, TICK_MS);
		}
	}
	to->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	to->is_late = r == -ETIME;
	to->is_too_long = r == -EMSGSIZE;
	return r == -ETIME || r == -EMSGSIZE ? 0 : r;
}

int command_start(const char *const *words, int in, int out, int err, bool is_bound, pid_t *ret)
{
	const char *all[COMMAND_MAX_WORDS + 2] = { "probing" };
	pid_t pid, parent = getpid();
	sigset_t none;

	sigemptyset(&none);
	for (size_t i = 0; words[i] && i < COMMAND_MAX_WORDS; i++)
		all[i + 1] = words[i];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run_child(all, in, out, err, is_bound, parent, &none);
	setpgid(pid, pid); /* here and there: whoever is first */
	*ret = pid;
	return 0;
}

int command_open(const char *const *words, const char *input, size_t n_input, double seconds, int stop, int client,
		 struct command *ret)
{
	CLEANUP(closep) int in = make_input(input, n_input);
	CLEANUP(closep) int err = memfd_create("error", MFD_CLOEXEC);
	CLEANUP(closep) int out_read = -1;
	CLEANUP(closep) int out_write = -1;
	int ends[2], r;

	*ret = (struct command){ .stop = stop, .client = client, .deadline_ms = now_ms() + (int64_t)(seconds * 1000) };
	if (in < 0 || err < 0)
		return in < 0 ? in : -errno;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	out_read = ends[0];
	out_write = ends[1];
	r = command_start(words, in, out_write, err, true, &ret->pid);
	if (r < 0)
		return r;
	ret->out = TAKE_FD(out_read);
	ret->err = TAKE_FD(err);
	return 0;
}

int command_close(struct command *command, int r, struct command_result *ret)
{
	ssize_t n;

	r = end_child(command, r, ret);
	n = pread(command->err, ret->error, sizeof ret->error - 1, 0);
	ret->error[MAX(n, 0)] = '\0';
	close(command->out);
	close(command->err);
	command->pid = 0;
	return r;
}

int command_run(const char *const *words, const char *input, size_t n_input, double seconds, int stop, int client,
		struct command_result *ret)
{
	struct command command;
	int r;

	*ret = (struct command_result){ 0 };
	r = command_open(words, input, n_input, seconds, stop, client, &command);
	if (r < 0)
		return r;
	r = command_close(&command, take_output(&command, ret), ret);
	if (r >= 0 && !ret->out)
		ret->out = calloc(1, 1);
	if (r >= 0 && !ret->out)
		return -ENOMEM;
	if (r >= 0)
		ret->out[ret->n_out] = '\0';
	return r;
}
