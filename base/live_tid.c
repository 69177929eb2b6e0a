/* SPDX-License-Identifier: MIT */
/* live_tid.c - a process whose main thread has ended while others go on; see proc.h.
 *
 * An exiting thread releases the process' memory, files and mounts (kernel/exit.c, do_exit()) before it becomes
 * a zombie, and is marked as exiting before that. A thread-group leader stays in /proc as long as the others.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

/* Several threads may end in turn during a read. */
enum { MAX_TRIES = 8 };

static bool has_gone(const struct proc_stat *stat)
{
	return stat->is_ending || stat->state == 'Z' || stat->state == 'X';
}

static int find_other(pid_t pid, pid_t *ret)
{
	CLEANUP(freep) pid_t *tids = NULL;
	struct proc_stat stat;
	size_t n = 0;
	int r;

	r = proc_tasks(pid, &tids, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = proc_stat_read(pid, tids[i], &stat);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && !has_gone(&stat)) {
			*ret = tids[i];
			return 0;
		}
	}
	return -ESRCH;
}

int proc_live_tid(pid_t pid, pid_t *ret)
{
	struct proc_stat stat;
	int r;

	r = proc_stat_read(pid, pid, &stat); /* of this thread alone: the process's file sums over all threads */
	if (r < 0)
		return r;
	if (has_gone(&stat))
		return stat.n_threads > 1 ? find_other(pid, ret) : -ESRCH;
	*ret = pid;
	return 0;
}

static void path_of(pid_t pid, pid_t tid, const char *file, char to[PROC_PATH_BYTES])
{
	if (tid == pid)
		snprintf(to, PROC_PATH_BYTES, "/proc/%d/%s", (int)pid, file);
	else /* so that a reused PID does not match */
		snprintf(to, PROC_PATH_BYTES, "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
}

void proc_path(pid_t pid, const char *file, char to[PROC_PATH_BYTES])
{
	pid_t living = pid;

	(void)proc_live_tid(pid, &living); /* for an ended process, using the path fails */
	path_of(pid, living, file, to);
}

/* For a thread without memory, a file may be empty or refused: it then belongs to root. */
static bool is_nothing(int r, size_t n_bytes)
{
	return r < 0 ? r != -ENOMEM : n_bytes == 0;
}

int proc_read(pid_t pid, const char *file, size_t max_bytes, char **ret, size_t *ret_bytes)
{
	CLEANUP(freep) char *text = NULL;
	char path[PROC_PATH_BYTES];
	pid_t living = pid;
	size_t n = 0;
	int r;

	path_of(pid, pid, file, path);
	r = read_file(path, max_bytes, &text, &n);
	for (int i = 0; i < MAX_TRIES && is_nothing(r, n); i++) {
		if (proc_live_tid(pid, &living) < 0 || living == pid)
			break;
		free(TAKE(text));
		path_of(pid, living, file, path);
		r = read_file(path, max_bytes, &text, &n);
	}
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	*ret = TAKE(text);
	if (ret_bytes)
		*ret_bytes = n;
	return 0;
}

bool proc_is_32_bit(pid_t pid)
{
	char path[PROC_PATH_BYTES], header[EI_NIDENT];
	CLEANUP(closep) int fd = -1;

	proc_path(pid, "exe", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, header, sizeof header) == sizeof header && memcmp(header, ELFMAG, SELFMAG) == 0 &&
	       header[EI_CLASS] == ELFCLASS32;
}
