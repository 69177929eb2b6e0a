/* new_file.c - see new_file.h. */
#include "src/cli/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

/* Bytes of path that are its folder, the slash included. */
static int folder_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash + 1 - path) : 0;
}

static int check_folder(const char *path)
{
	CLEANUP(freep) char *folder = strndup(path, (size_t)folder_bytes(path));

	if (!folder)
		return -ENOMEM;
	return access(folder[0] ? folder : ".", W_OK | X_OK) < 0 ? -errno : 0;
}

static int check_place(const char *path, bool replaces)
{
	struct stat st;

	if (path[folder_bytes(path)] == '\0')
		return -EISDIR;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? check_folder(path) : -errno;
	if (!replaces)
		return -EEXIST;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	return access(path, W_OK) < 0 ? -errno : check_folder(path);
}

static void remove_beside(const char *path)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };

	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		CLEANUP(freep) char *name = NULL;

		if (asprintf(&name, "%s%s", path, suffixes[i]) >= 0)
			unlink(name);
	}
}

int new_file_open(struct new_file *file, const char *path, bool replaces)
{
	CLEANUP(freep) char *target = NULL;
	int r, folder;

	*file = (struct new_file){ .path = path, .replaces = replaces };
	r = check_place(path, replaces);
	if (r < 0)
		return r;
	folder = folder_bytes(path);
	if (asprintf(&target, "%.*s.%s.%d", folder, path, path + folder, (int)getpid()) < 0)
		return -ENOMEM;
	remove_beside(target); /* of one that was killed and had this number */
	file->temporary = TAKE(target);
	return 0;
}

static int sync_path(const char *path, int flags)
{
	CLEANUP(closep) int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

/* That it has its name shall survive a power loss, too; a folder that cannot be opened for it is no failure. */
static void sync_folder(const char *path)
{
	CLEANUP(freep) char *folder = strndup(path, (size_t)folder_bytes(path));

	if (folder)
		sync_path(folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY);
}

static int copy_permissions(const struct new_file *file)
{
	struct stat old;

	if (stat(file->path, &old) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (geteuid() == 0 && chown(file->temporary, old.st_uid, old.st_gid) < 0)
		return -errno;
	return chmod(file->temporary, old.st_mode & 0777) < 0 ? -errno : 0;
}

static int place(const struct new_file *file)
{
	if (file->replaces)
		return rename(file->temporary, file->path) < 0 ? -errno : 0;
	if (renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that cannot do that in one step has links, or loses a race that nobody runs. */
	return access(file->path, F_OK) == 0 ? -EEXIST : rename(file->temporary, file->path) < 0 ? -errno : 0;
}

/* What SQLite keeps beside a file it takes for a part of it, whichever file has that name by then. */
static bool has_log(const char *path)
{
	static const char *const suffixes[] = { "-wal", "-journal" };

	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		CLEANUP(freep) char *name = NULL;

		if (asprintf(&name, "%s%s", path, suffixes[i]) < 0 || access(name, F_OK) == 0)
			return true;
	}
	return false;
}

int new_file_finish(struct new_file *file)
{
	int r;

	if (has_log(file->path)) {
		new_file_abandon(file);
		return -EBUSY;
	}
	r = file->replaces ? copy_permissions(file) : 0;
	if (r >= 0)
		r = sync_path(file->temporary, O_RDONLY);
	if (r >= 0)
		r = place(file);
	if (r < 0) {
		new_file_abandon(file);
		return r;
	}
	sync_folder(file->path);
	free(TAKE(file->temporary));
	return 0;
}

void new_file_abandon(struct new_file *file)
{
	if (!file->temporary)
		return;
	remove_beside(file->temporary);
	free(TAKE(file->temporary));
}
