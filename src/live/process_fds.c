/* SPDX-License-Identifier: MIT */
/* process_fds.c - process.fds: open descriptors of a process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

/* A descriptor without a file is classified by its name, which says more than its mode. */
static const char *kind_of(int folder, const char *name, const char *target)
{
	struct stat st;

	if (strncmp(target, "anon_inode:", strlen("anon_inode:")) == 0)
		return "anonymous";
	if (strncmp(target, "/memfd:", strlen("/memfd:")) == 0)
		return "memory";
	if (fstatat(folder, name, &st, 0) < 0)
		return NULL;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "folder";
	case S_IFSOCK:
		return "socket";
	case S_IFIFO:
		return "pipe";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	default:
		return NULL;
	}
}

static void put_info(struct live_rows *rows, pid_t pid, int fd)
{
	CLEANUP(freep) char *text = NULL;
	char name[64], words[128];
	int64_t number;

	snprintf(name, sizeof name, "fdinfo/%d", fd);
	if (live_read_file(pid, name, 1 << 16, &text, NULL) < 0) {
		live_null(rows);
		live_null(rows);
		return;
	}
	if (parse_number(text, "flags", 8, &number))
		parse_flags(number, words, sizeof words);
	else
		words[0] = '\0';
	live_text(rows, words[0] ? words : NULL);
	if (parse_number(text, "pos", 10, &number))
		live_integer(rows, number);
	else
		live_null(rows);
}

static void put_fd(struct live_rows *rows, pid_t pid, int folder, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(folder, name, target, sizeof target - 1);

	if (n < 0)
		return; /* closed meanwhile */
	target[n] = '\0';
	live_integer(rows, strtol(name, NULL, 10));
	live_text(rows, target);
	live_text(rows, kind_of(folder, name, target));
	put_info(rows, pid, (int)strtol(name, NULL, 10));
}

static int read_fds(struct live *live, struct live_rows *rows)
{
	CLEANUP(closedirp) DIR *folder = NULL;
	struct dirent *entry;
	char path[PROC_PATH_BYTES];

	proc_path(live->options.pid, "fd", path);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((errno = 0, entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.')
			put_fd(rows, live->options.pid, dirfd(folder), entry->d_name);
	return errno > 0 ? -errno : 0;
}

const struct live_table live_process_fds = {
	.schema = "process",
	.name = "fds",
	.read = read_fds,
};
