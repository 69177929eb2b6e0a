/* SPDX-License-Identifier: MIT */
/* spawn.c - a program that is started and waited for, while the agent's threads are there already.
 *
 * For the start hook: os.fork() would copy a process of several threads, of which CPython warns, and os.posix_spawn()
 * is not in 3.6 and 3.7. posix_spawn(3) runs no handler of pthread_atfork(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/agent/private.h"

enum { ARMED_MS = 5000, LOOK_NS = 1000000 };

extern char **environ;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The program may want the agent at once. */
static void wait_until_armed(void)
{
	const struct timespec pause = { 0, LOOK_NS };
	uint64_t end_ms = now_ms() + ARMED_MS;

	while (__atomic_load_n(&agent.status, __ATOMIC_SEQ_CST) == AGENT_STARTING && now_ms() < end_ms)
		nanosleep(&pause, NULL);
}

/* The child inherits no signal settings of the interpreter. @out: its stdout and stderr. */
static int start(const char *const argv[], int out, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawn_file_actions_init(&files);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r != 0) {
		posix_spawn_file_actions_destroy(&files);
		return -r;
	}
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret, argv[0], &files, &attributes, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

/* Up to its end. What does not fit is read, too, and dropped. -ETIMEDOUT. */
static int read_all(int fd, int patience_ms, char *to, size_t n_bytes)
{
	uint64_t end_ms = now_ms() + (uint64_t)patience_ms;
	size_t n = 0;

	for (;;) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };
		uint64_t at_ms = now_ms();
		char rest[256];
		ssize_t got;

		to[n] = '\0';
		if (at_ms >= end_ms)
			return -ETIMEDOUT;
		if (poll(&polled, 1, (int)(end_ms - at_ms)) <= 0)
			continue;
		got = n + 1 < n_bytes ? read(fd, to + n, n_bytes - 1 - n) : read(fd, rest, sizeof rest);
		if (got == 0 || (got < 0 && errno != EINTR))
			return 0;
		if (got > 0 && n + 1 < n_bytes)
			n += (size_t)got;
	}
}

__attribute__((visibility("default"))) int probing_agent_spawn(const char *const argv[], int patience_ms, char *out,
							       size_t n_bytes)
{
	int ends[2], r;
	pid_t pid;

	wait_until_armed();
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	r = start(argv, ends[1], &pid);
	close(ends[1]);
	if (r >= 0) {
		r = read_all(ends[0], patience_ms, out, n_bytes);
		if (r < 0)
			(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return r;
}
