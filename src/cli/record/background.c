/* SPDX-License-Identifier: MIT */
/* background.c - see background.h.
 *
 * The recorder keeps the terminal until it records, so that its errors are seen there. Then it has a file for them. Its
 * parent has ended by then: it is no child of the process that started probing, which may wait for all of its children.
 */
#include "src/cli/record/background.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"

enum { MAX_LINE = PATH_MAX + 32, LOG_BYTES = 4096 };

/* For kernels before 5.9, which have no close_range(2). */
static void close_each_from(int first)
{
	long n = sysconf(_SC_OPEN_MAX);

	for (int fd = first; fd < MIN(n, 65536L); fd++)
		close(fd);
}

/* A pipe that the program has inherited ends when the program does, and not with its recorder. */
static void close_inherited(void)
{
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0)
		close_each_from(STDERR_FILENO + 1);
}

static _Noreturn void wait_for_report(int report, pid_t recorder)
{
	char line[MAX_LINE];
	size_t n = 0;
	int status;

	while (n < sizeof line) {
		ssize_t got = read(report, line + n, sizeof line - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (n > 0 && line[n - 1] == '\n') {
		fwrite(line, 1, n, stdout);
		exit(EXIT_OK);
	}
	while (waitpid(recorder, &status, 0) < 0)
		if (errno != EINTR)
			exit(EXIT_FAILED);
	if (WIFSIGNALED(status))
		exit(cli_fail(EXIT_FAILED, "the recorder was ended by signal %d", WTERMSIG(status)));
	exit(WEXITSTATUS(status));
}

int background_begin(struct background *ret)
{
	int ends[2];
	pid_t pid;

	close_inherited();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (pid > 0) {
		close(ends[1]);
		wait_for_report(ends[0], pid);
	}
	close(ends[0]);
	(void)setsid(); /* fails only for the leader of a group, which a new process is not */
	ret->report = ends[1];
	return 0;
}

/* Not through another's link, and not into another's file, in a folder that others may write. */
static int open_log(struct background *background, const char *path)
{
	int fd;

	if (asprintf(&background->log, "%s.log", path) < 0) {
		background->log = NULL;
		return -1;
	}
	(void)unlink(background->log);
	fd = open(background->log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		free(TAKE(background->log));
	else
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_BYTES); /* to say that the disk is full */
	return fd;
}

int background_leave(struct background *background, const char *path)
{
	CLEANUP(closep) int report = TAKE_FD(background->report);
	CLEANUP(closep) int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	CLEANUP(closep) int log = open_log(background, path);
	char whole[PATH_MAX], line[MAX_LINE];
	int n;

	n = snprintf(line, sizeof line, "%d %s\n", (int)getpid(), realpath(path, whole) ? whole : path);
	fflush(stdout);
	fflush(stderr);
	if (nowhere >= 0) {
		(void)dup2(nowhere, STDIN_FILENO);
		(void)dup2(nowhere, STDOUT_FILENO);
		(void)dup2(log >= 0 ? log : nowhere, STDERR_FILENO);
	}
	return n > 0 && (size_t)n < sizeof line && send(report, line, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -EPIPE;
}

void background_done(struct background *background)
{
	struct stat st, now;

	closep(&background->report);
	if (background->log && fstat(STDERR_FILENO, &st) >= 0 && st.st_size == 0 && stat(background->log, &now) >= 0 &&
	    now.st_dev == st.st_dev && now.st_ino == st.st_ino)
		(void)unlink(background->log);
	free(TAKE(background->log));
}
