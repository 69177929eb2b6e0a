/* SPDX-License-Identifier: MIT */
/* place.c - the folder of a running process' rings; see rows.h. Nothing that the process says is trusted: ring_folder_find() checks
 * the folder, and follows no link out of the file system that the process sees. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/rows/rows.h"

enum { MAX_ENVIRONMENT = 1 << 20, MAX_STATUS = 1 << 16 };

static int read_proc(pid_t pid, const char *file, size_t max_bytes, char **ret, size_t *ret_bytes)
{
	char path[PROC_PATH_BYTES];

	proc_path(pid, file, path);
	return read_file(path, max_bytes, ret, ret_bytes);
}

/* $PROBING_DATA_DIR of the process. Owned by the caller; NULL: it has none, or it cannot be read. */
static char *parent_of_process(pid_t pid)
{
	static const char variable[] = "PROBING_DATA_DIR=";
	CLEANUP(freep) char *text = NULL;
	size_t n;

	if (read_proc(pid, "environ", MAX_ENVIRONMENT, &text, &n) < 0)
		return NULL;
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		if (strncmp(at, variable, sizeof variable - 1) == 0)
			return at[sizeof variable - 1] == '/' ? strdup(at + sizeof variable - 1) : NULL;
	return NULL;
}

int rows_open_folder(pid_t pid, struct rows_place *ret_place, int *ret)
{
	CLEANUP(freep) char *status = NULL;
	CLEANUP(freep) char *parent = NULL;
	CLEANUP(closep) int root = -1;
	char path[PROC_PATH_BYTES];
	unsigned uids[3];
	pid_t own = pid;
	uid_t uid;
	int r;

	if (ret_place)
		*ret_place = (struct rows_place){ .uid = geteuid() };
	if (read_proc(pid, "status", MAX_STATUS, &status, NULL) < 0)
		return -ENOENT;
	parent = parent_of_process(pid);
	uid = proc_status_ids(status, "Uid", uids) ? (uid_t)uids[1] : geteuid();
	(void)proc_status_own_pid(status, &own, NULL); /* before Linux 4.1 the PID stays */
	proc_path(pid, "root", path);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); /* no permission: it is probably ours */
	r = ring_folder_find(root, parent ? parent : RING_PARENT, uid, own, ring_start_time(pid), ret);
	if (ret_place)
		*ret_place = (struct rows_place){ .parent = parent ? TAKE(parent) : strdup(RING_PARENT), .uid = uid };
	return r;
}

void rows_place_done(struct rows_place *place)
{
	free(TAKE(place->parent));
}
