/* SPDX-License-Identifier: MIT */
/* new_file.c - see new_file.h.
 *
 * If the file system permits, the new file has no name until it is complete (O_TMPFILE), so that not even kill -9
 * leaves a rest. Otherwise, and if SQLite creates the file, it has a hidden name in the same folder. The last step is
 * a rename in both cases: a reader of the path sees the old file or the new one, never a part.
 *
 * Invariants:
 * 1. Owner and permissions are set by descriptor, after fstat(2) has shown that the file is ours.
 * 2. A name is unlinked only if it refers to the file that we created.
 */
#include "base/new_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"

enum { MAX_NAME_SHOWN = 200 }; /* of 255, to leave space for dots, digits and SQLite's suffixes */

/* SQLite's files beside a database belong to it. */
static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };

int new_file_random(char to[NEW_FILE_RANDOM_BYTES])
{
	uint64_t number;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -errno;
	snprintf(to, NEW_FILE_RANDOM_BYTES, "%016llx", (unsigned long long)number);
	return 0;
}

/* umask(2) can only be read by setting it, which other threads would notice. Source: proc_pid_status(5). */
mode_t new_file_narrow(mode_t mode)
{
	CLEANUP(freep) char *status = NULL;
	const char *line;
	unsigned mask = 077;

	if (read_file("/proc/self/status", 4096, &status, NULL) == 0 && (line = strstr(status, "\nUmask:")))
		mask = (unsigned)strtoul(line + strlen("\nUmask:"), NULL, 8);
	return mode & ~(mode_t)mask;
}

static int name_temporary(struct new_file *file)
{
	char random[NEW_FILE_RANDOM_BYTES];
	int r;

	r = new_file_random(random);
	if (r < 0)
		return r;
	if (asprintf(&file->temporary, ".%.*s.%s", MAX_NAME_SHOWN, file->place.name, random) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	return 0;
}

static mode_t mode_or_default(mode_t mode)
{
	return mode != 0 ? mode : NEW_FILE_MODE;
}

static int begin(struct new_file *file, const char *path, bool replaces, mode_t mode)
{
	*file = (struct new_file){ .fd = -1, .replaces = replaces, .mode = mode };
	return place_find(path, &file->place);
}

/* ---- Through a descriptor ---- */

static int open_temporary(struct new_file *file)
{
	int r;

	r = name_temporary(file);
	if (r < 0)
		return r;
	file->fd = openat(file->place.folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode_or_default(file->mode));
	if (file->fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	if (file->fd < 0)
		file->fd = openat(file->place.folder, file->temporary,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_or_default(file->mode));
	return file->fd < 0 ? -errno : 0;
}

static bool is_database(const struct place *place)
{
	static const char magic[] = "SQLite format 3";
	CLEANUP(closep) int fd = openat(place->folder, place->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	char head[sizeof magic];

	return fd >= 0 && read(fd, head, sizeof head) == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* A rename would replace even a read-only file, so check. */
static int check_old(const struct place *place)
{
	if (faccessat(place->folder, place->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return is_database(place) ? -EEXIST : 0;
}

static int open_by_kind(struct new_file *file)
{
	const struct place *place = &file->place;
	int r;

	if (place->exists && (place->is_magic || !S_ISREG(place->st.st_mode))) {
		r = S_ISDIR(place->st.st_mode) ? -EISDIR : place_open(place);
		if (r >= 0)
			file->fd = r;
		return MIN(r, 0);
	}
	r = place->exists ? check_old(place) : 0;
	return r < 0 ? r : open_temporary(file);
}

int new_file_open(struct new_file *file, const char *path, mode_t mode)
{
	int r;

	r = begin(file, path, true, mode);
	if (r >= 0)
		r = open_by_kind(file);
	if (r < 0)
		new_file_abandon(file);
	return r;
}

/* ---- By a path ---- */

static int check_reserved(const struct new_file *file)
{
	const struct place *place = &file->place;

	if (!place->exists)
		return 0;
	if (!file->replaces)
		return -EEXIST;
	if (place->is_magic || !S_ISREG(place->st.st_mode))
		return S_ISDIR(place->st.st_mode) ? -EISDIR : -ENXIO;
	return faccessat(place->folder, place->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int choose_path(struct new_file *file)
{
	CLEANUP(freep) char *folder = NULL;
	int r;

	if (faccessat(file->place.folder, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return -errno;
	r = name_temporary(file);
	if (r >= 0)
		r = place_folder_path(file->place.folder, &folder);
	if (r < 0)
		return r;
	if (asprintf(&file->path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, file->temporary) < 0) {
		file->path = NULL;
		return -ENOMEM;
	}
	return 0;
}

int new_file_reserve(struct new_file *file, const char *path, bool replaces, mode_t mode)
{
	int r;

	r = begin(file, path, replaces, mode);
	if (r >= 0)
		r = check_reserved(file);
	if (r >= 0)
		r = choose_path(file);
	if (r < 0)
		new_file_abandon(file);
	return r;
}

/* Open the file that a library created by its path. Nobody could guess the name; check it nevertheless. */
static int adopt(struct new_file *file)
{
	struct stat st;

	file->fd = openat(file->place.folder, file->temporary, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (file->fd < 0)
		return errno == ENOENT || errno == ELOOP ? -PLACE_ECHANGED : -errno;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -PLACE_ECHANGED;
	return fchmod(file->fd, new_file_narrow(mode_or_default(file->mode))) < 0 ? -errno : 0;
}

/* A log belongs to the previous file of this name, which may be in use. */
static bool has_log(const struct place *place)
{
	static const char *const logs[] = { "-wal", "-journal" };
	struct stat st;

	for (size_t i = 0; i < N_ELEMENTS(logs); i++) {
		CLEANUP(freep) char *name = NULL;

		if (asprintf(&name, "%s%s", place->name, logs[i]) < 0 ||
		    fstatat(place->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

static void remove_beside(const struct new_file *file)
{
	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		CLEANUP(freep) char *name = NULL;
		struct stat st;

		if (asprintf(&name, "%s%s", file->temporary, suffixes[i]) >= 0 &&
		    fstatat(file->place.folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		    st.st_uid == geteuid())
			place_remove(file->place.folder, name, &st);
	}
}

/* ---- The end ---- */

static int keep_rights(const struct new_file *file)
{
	const struct stat *old = &file->place.st;

	if (!file->place.exists)
		return 0;
	if (geteuid() == 0 && fchown(file->fd, old->st_uid, old->st_gid) < 0)
		return -errno;
	return fchmod(file->fd, file->mode != 0 ? new_file_narrow(file->mode) : old->st_mode & 0777) < 0 ? -errno : 0;
}

static int give_name(const struct new_file *file)
{
	char link[32];
	struct stat st;

	if (fstat(file->fd, &st) < 0)
		return -errno;
	if (st.st_nlink > 0)
		return place_is(file->place.folder, file->temporary, &st) ? 0 : -PLACE_ECHANGED;
	snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
	return linkat(AT_FDCWD, link, file->place.folder, file->temporary, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int take_place(const struct new_file *file)
{
	const char *from = file->temporary, *to = file->place.name;
	int folder = file->place.folder;

	if (file->replaces)
		return renameat(folder, from, folder, to) < 0 ? -errno : 0;
	if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system without RENAME_NOREPLACE may support hard links, which do not replace files either. */
	if (linkat(folder, from, folder, to, 0) == 0)
		return unlinkat(folder, from, 0) < 0 ? -errno : 0;
	if (errno != EPERM && errno != EOPNOTSUPP)
		return -errno;
	return faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST
	       : renameat(folder, from, folder, to) < 0              ? -errno
								     : 0;
}

/* Sync the folder, so that the name survives a power loss; errors do not matter. */
static void sync_folder(int folder)
{
	CLEANUP(closep) int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsync(fd);
}

static int appear(struct new_file *file)
{
	int r = 0;

	if (file->path)
		r = has_log(&file->place) ? -EBUSY : adopt(file);
	if (r >= 0)
		r = keep_rights(file);
	if (r >= 0)
		r = fsync(file->fd) < 0 && errno != EINVAL ? -errno : 0;
	if (r >= 0)
		r = give_name(file);
	if (r >= 0)
		r = take_place(file);
	if (r < 0)
		return r;
	free(TAKE(file->temporary));
	sync_folder(file->place.folder);
	return 0;
}

int new_file_finish(struct new_file *file)
{
	int r = file->temporary ? appear(file) : 0;

	new_file_abandon(file);
	return r;
}

static void remove_temporary(const struct new_file *file)
{
	struct stat st;

	if (file->path)
		remove_beside(file);
	else if (file->fd >= 0 && fstat(file->fd, &st) == 0 && st.st_nlink > 0)
		place_remove(file->place.folder, file->temporary, &st);
}

void new_file_abandon(struct new_file *file)
{
	if (!file->place.name) /* zeroed, or already done */
		return;
	if (file->temporary)
		remove_temporary(file);
	closep(&file->fd);
	free(file->temporary);
	free(file->path);
	place_done(&file->place);
	*file = (struct new_file){ .fd = -1 };
}

/* ---- A log ---- */

static int open_old_log(const struct place *place)
{
	CLEANUP(closep) int fd = -1;
	bool is_file = S_ISREG(place->st.st_mode);

	if (is_file && !place->is_magic && is_database(place))
		return -EEXIST;
	/* A hard link may lead to any file of the same file system. */
	if (is_file && place->st.st_nlink > 1 && place->folder_st.st_mode & S_IWOTH)
		return -PLACE_EOTHERS_FILE;
	fd = place_open(place);
	if (fd >= 0 && is_file && ftruncate(fd, 0) < 0)
		return -errno;
	return fd < 0 ? fd : TAKE_FD(fd);
}

int new_file_open_log(const char *path, mode_t mode)
{
	CLEANUP(place_done) struct place place;
	int fd, r;

	r = place_find(path, &place);
	if (r < 0)
		return r;
	if (place.exists)
		return open_old_log(&place);
	fd = openat(place.folder, place.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    mode_or_default(mode));
	return fd < 0 ? errno == EEXIST ? -PLACE_ECHANGED : -errno : fd;
}
