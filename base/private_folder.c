/* SPDX-License-Identifier: MIT */
/* private_folder.c - see private_folder.h.
 *
 * A process that may write to the parent can replace our folder, unless the parent is sticky. So all removals are
 * relative to the descriptor of the folder that we created.
 */
#include "base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/util.h"

/* Open the folder that has the name now; it is ours if nobody else can enter it. */
static int open_made(struct private_folder *folder)
{
	folder->fd = openat(folder->parent, folder->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd < 0)
		return errno == ENOTDIR || errno == ENOENT ? -PLACE_ECHANGED : -errno;
	if (fstat(folder->fd, &folder->st) < 0)
		return -errno;
	return folder->st.st_uid == geteuid() && !(folder->st.st_mode & 077) ? 0 : -PLACE_ECHANGED;
}

static int make(int parent, const char *prefix, struct private_folder *folder)
{
	char random[NEW_FILE_RANDOM_BYTES];
	int r;

	r = new_file_random(random);
	if (r < 0)
		return r;
	if (asprintf(&folder->name, "%s%s", prefix, random) < 0) {
		folder->name = NULL;
		return -ENOMEM;
	}
	folder->parent = fcntl(parent, F_DUPFD_CLOEXEC, 0);
	if (folder->parent < 0 || mkdirat(parent, folder->name, 0700) < 0)
		return -errno;
	r = open_made(folder);
	return r < 0 ? r : place_folder_path(folder->fd, &folder->path);
}

static void done(struct private_folder *folder)
{
	closep(&folder->fd);
	closep(&folder->parent);
	free(folder->name);
	free(folder->path);
	*folder = (struct private_folder){ .parent = -1, .fd = -1 };
}

int private_folder_make(int parent, const char *prefix, struct private_folder *ret)
{
	struct private_folder folder = { .parent = -1, .fd = -1 };
	int r;

	*ret = folder;
	r = make(parent, prefix, &folder);
	if (r < 0) {
		if (folder.fd >= 0 && r != -PLACE_ECHANGED)
			private_folder_remove(&folder);
		done(&folder);
		return r;
	}
	*ret = folder;
	return 0;
}

static void remove_files(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (!entries) {
		closep(&fd);
		return;
	}
	for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(folder, entry->d_name, 0);
	closedir(entries);
}

void private_folder_remove(struct private_folder *folder)
{
	if (!folder->name)
		return;
	remove_files(folder->fd);
	place_remove(folder->parent, folder->name, &folder->st);
	done(folder);
}
