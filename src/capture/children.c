/* SPDX-License-Identifier: MIT */
/* children.c - see children.h.
 *
 * The list of a thread may lack a child while another one ends (proc_tid_children(5)). Whoever reads it again finds that one.
 */
#include "src/capture/children.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/poll_parse.h"

enum { MAX_CHILDREN_BYTES = 1 << 20 };

static void list_path(pid_t pid, pid_t tid, char to[64])
{
	snprintf(to, 64, "/proc/%d/task/%d/children", (int)pid, (int)tid);
}

bool children_are_listed(void)
{
	char path[64];

	list_path(getpid(), getpid(), path);
	return access(path, R_OK) == 0;
}

int children_of_thread(pid_t pid, pid_t tid, struct task_set *ret)
{
	CLEANUP(freep) char *text = NULL;
	const char *rest;
	char path[64];
	pid_t child;
	int r;

	list_path(pid, tid, path);
	r = read_file(path, MAX_CHILDREN_BYTES, &text, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	rest = text;
	while (r >= 0 && (child = poll_parse_child(&rest)) != 0)
		r = task_set_add(ret, child);
	return MIN(r, 0);
}

int children_search(pid_t pid, struct task_set *ret)
{
	CLEANUP(closedirp) DIR *folder = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	while (r >= 0 && folder && (entry = readdir(folder)) != NULL) {
		pid_t child = (pid_t)strtol(entry->d_name, NULL, 10);
		struct proc_stat stat;

		if (child > 0 && proc_stat_read(child, 0, &stat) == 0 && stat.parent == pid)
			r = task_set_add(ret, child);
	}
	return MIN(r, 0);
}

int children_of(pid_t pid, struct task_set *ret)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;
	int r;

	if (!children_are_listed())
		return children_search(pid, ret);
	r = proc_tasks(pid, &tids, &n);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = children_of_thread(pid, tids[i], ret);
	return r;
}
