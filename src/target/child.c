/* SPDX-License-Identifier: MIT */
/* child.c - a process that waits before its exec until sampling is set up.
 *
 * Two pipes: the child reads one before its exec, so that sampling can be set
 * up first; the other closes by itself if the exec succeeds, and otherwise has the
 * errno. A child whose parent dies before the release reads
 * the end of the pipe and exits.
 */
#include "src/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size_limit.h"
#include "base/util.h"

static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -ENOENT;
	if (S_ISDIR(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

int child_find(const char *command)
{
	const char *path = getenv("PATH");
	int found = -ENOENT;

	if (strchr(command, '/'))
		return check_file(command);
	if (!path)
		path = "/bin:/usr/bin";
	while (command[0]) {
		const char *end = strchrnul(path, ':');
		char file[PATH_MAX];
		int r;

		snprintf(file, sizeof file, "%.*s/%s", (int)(end - path), path, command);
		r = check_file(end == path ? command : file);
		if (r >= 0)
			return 0;
		if (r == -EACCES)
			found = r;
		if (*end == '\0')
			break;
		path = end + 1;
	}
	return found;
}

static void run_child(char **argv, const sigset_t *mask, int gate, int failure)
{
	char go;
	int error;

	if (read(gate, &go, 1) != 1)
		_exit(1);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	size_limit_as_found();
	execvp(argv[0], argv);
	error = errno;
	if (write(failure, &error, sizeof error) < 0)
		_exit(126);
	_exit(127);
}

int child_fork(char **argv, const sigset_t *mask, struct child *ret)
{
	CLEANUP(closep) int gate_read = -1;
	CLEANUP(closep) int gate_write = -1;
	CLEANUP(closep) int failure_read = -1;
	CLEANUP(closep) int failure_write = -1;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	gate_read = ends[0];
	gate_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	failure_read = ends[0];
	failure_write = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(gate_write);
		run_child(argv, mask, gate_read, failure_write);
	}
	*ret = (struct child){ .pid = pid, .gate = TAKE_FD(gate_write), .failure = TAKE_FD(failure_read) };
	return 0;
}

int child_release(struct child *child)
{
	int error = 0;
	ssize_t n;

	if (write(child->gate, "", 1) != 1)
		return -errno;
	close(TAKE_FD(child->gate));
	do
		n = read(child->failure, &error, sizeof error);
	while (n < 0 && errno == EINTR);
	close(TAKE_FD(child->failure));
	return n == sizeof error ? -error : 0;
}

void child_abandon(struct child *child)
{
	if (child->gate >= 0)
		close(TAKE_FD(child->gate));
	if (child->failure >= 0)
		close(TAKE_FD(child->failure));
	waitpid(child->pid, NULL, 0);
}
