/* SPDX-License-Identifier: MIT */
/* history.c - the file of a prompt's history.
 *
 * Statements may contain names of functions and files, so the file and its
 * new folder are for the user alone. The file is replaced as a whole:
 * of two prompts the last one to end wins.
 */
#include "src/prompt/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/path.h"
#include "base/util.h"

enum { MAX_KEPT = 1000 };

int history_path(const char *name, char **ret)
{
	CLEANUP(freep) char *path = NULL;
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n, r;

	/* The XDG standard ignores a relative path. */
	if (state && state[0] == '/')
		n = asprintf(&path, "%s/probing/%s", state, name);
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/.local/state/probing/%s", home, name);
	else
		return -ENOENT;
	if (n < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = path_make_folders(path);
	if (r < 0)
		return r;
	*ret = TAKE(path);
	return 0;
}

/* ---- File ---- */

/* A folder of another user belongs to a home that is not ours, as with sudo, or was planted. */
static int check_place(const struct place *place)
{
	const struct stat *folder = &place->folder_st;

	if (folder->st_uid != geteuid() || folder->st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	if (!place->exists)
		return 0;
	if (!S_ISREG(place->st.st_mode) || place->is_magic)
		return -EINVAL;
	return place->st.st_uid == geteuid() ? 0 : -EPERM;
}

static int open_old(const char *path, int *ret_fd)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int r;

	r = place_find(path, &place);
	if (r >= 0)
		r = check_place(&place);
	if (r < 0 || !place.exists)
		return r;
	fd = openat(place.folder, place.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!place_is_same(&st, &place.st))
		return -PLACE_ECHANGED;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int history_load(History *kept, const char *path)
{
	CLEANUP(closep) int fd = -1;
	char opened[32];
	HistEvent event;
	int r;

	r = open_old(path, &fd);
	if (r < 0 || fd < 0)
		return r;
	snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd); /* libedit opens by name only */
	errno = 0;
	if (history(kept, &event, H_LOAD, opened) < 0)
		return errno > 0 ? -errno : -EBADMSG;
	return 0;
}

static int write_all(History *kept, int fd)
{
	CLEANUP(closep) int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	HistEvent event;
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
	int r = 0;

	if (!file)
		return -errno;
	copy = -1;
	errno = 0;
	if (history(kept, &event, H_NSAVE_FP, (size_t)MAX_KEPT, file) < 0)
		r = errno > 0 ? -errno : -EIO;
	if (fclose(file) != 0 && r == 0)
		r = -errno;
	return r;
}

int history_save(History *kept, const char *path)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	int r;

	r = new_file_open(&file, path, NEW_FILE_MODE);
	if (r >= 0)
		r = check_place(&file.place);
	if (r >= 0)
		r = write_all(kept, file.fd);
	return r < 0 ? r : new_file_finish(&file);
}
