/* SPDX-License-Identifier: MIT */
/* system_process.c - system.process: the visible processes of the machine. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

enum { MAX_STATUS = 1 << 16, MAX_COMMAND = 1 << 16, MAX_NAME = 64 };

static void put_user(struct live_rows *rows, pid_t pid)
{
	CLEANUP(freep) char *status = NULL;
	char room[4096];
	struct passwd entry, *found = NULL;
	unsigned ids[3];

	if (live_read_file(pid, "status", MAX_STATUS, &status, NULL) < 0 || !proc_status_ids(status, "Uid", ids)) {
		live_null(rows);
		live_null(rows);
		return;
	}
	live_integer(rows, ids[1]);
	live_text(rows, getpwuid_r(ids[1], &entry, room, sizeof room, &found) == 0 && found ? found->pw_name : NULL);
}

static void put_python(struct live_rows *rows, pid_t pid)
{
	char link[PROC_PATH_BYTES], path[PATH_MAX], version[32];
	ssize_t n;

	proc_path(pid, "exe", link);
	n = readlink(link, path, sizeof path - 1);
	path[MAX(n, 0)] = '\0';
	live_text(rows, n > 0 && parse_python_path(path, version, sizeof version) ? version : NULL);
}

static int put_text(struct live_rows *rows, pid_t pid, const char *file, size_t max_bytes)
{
	CLEANUP(freep) char *text = proc_text(pid, file, max_bytes);

	if (!text)
		return -ENOMEM;
	live_text(rows, text);
	return 0;
}

/* -ESRCH: it has ended meanwhile. */
static int put_process(struct live_rows *rows, pid_t pid, double booted)
{
	CLEANUP(freep) char *text = NULL;
	struct stat_line stat;
	char state[2] = "";
	int r;

	r = live_read_file(pid, "stat", 4096, &text, NULL);
	if (r == 0)
		r = parse_stat(text, &stat);
	if (r < 0)
		return r;
	state[0] = stat.state;
	live_integer(rows, pid);
	live_integer(rows, stat.parent);
	r = put_text(rows, pid, "comm", MAX_NAME);
	live_text(rows, state);
	put_user(rows, pid);
	live_integer(rows, stat.n_threads);
	live_integer(rows, stat.resident_pages * sysconf(_SC_PAGESIZE));
	live_real(rows, live_seconds(stat.user_ticks + stat.system_ticks));
	live_real(rows, booted + live_seconds(stat.start_ticks));
	put_python(rows, pid);
	return r < 0 ? r : put_text(rows, pid, "cmdline", MAX_COMMAND);
}

static int read_processes(struct live *live, struct live_rows *rows)
{
	CLEANUP(closedirp) DIR *folder = opendir("/proc");
	double booted = live_boot_time();
	struct dirent *entry;

	(void)live;
	if (!folder)
		return -errno;
	while ((entry = readdir(folder)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		size_t n_before = rows->n_values;

		if (pid <= 0)
			continue;
		if (put_process(rows, pid, booted) < 0)
			live_cut(rows, n_before);
	}
	return 0;
}

const struct live_table live_system_process = {
	.schema = "system",
	.name = "process",
	.read = read_processes,
};
