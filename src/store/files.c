/* SPDX-License-Identifier: MIT */
/*
 * files.c - moving a recording's files out of the way, and the recorder's lock.
 *
 * A recording is PATH and, while it is written or after its recorder was
 * killed, the log and journal that SQLite keeps beside it. Rules:
 *
 * 1. The files move together: a log is part of its database's contents.
 * 2. A recorder holds a write lock on one byte of PATH until it
 *    ends. SQLite never locks that byte. The lock belongs to the
 *    open file description (F_OFD_SETLK, fcntl(2)), so that neither SQLite's
 *    own descriptors nor other threads can lose it.
 * 3. A process that moves a file holds that lock too, and checks afterwards whether the
 *    path still refers to the locked file.
 *
 * 4. All calls are relative to an open folder, and follow no links: others may write to the folder, too, and
 *    their files beside a recording are not part of the recording.
 *
 * Closing a descriptor drops all of the process' other locks on that file:
 * a path that this process has open in SQLite must not be given to
 * files_keep_old().
 */
#include "src/store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "src/store/beside.h"
#include "src/store/store_private.h"

#define LOCK_BYTE (INT64_C(1) << 62)

/* The database comes first: renaming it is the step that may be refused. */
static const char *const suffixes[] = { "", BESIDE_JOURNAL, BESIDE_WAL, BESIDE_SHM };

/* ---- Names ---- */

/* "NAME" INFIX SUFFIX, in a buffer of NAME_MAX + 1 bytes. */
static int file_name(const struct place *place, const char *infix, size_t n, char *to)
{
	int n_bytes = snprintf(to, NAME_MAX + 1, "%s%s%s", place->name, infix, suffixes[n]);

	return n_bytes > NAME_MAX ? -ENAMETOOLONG : 0;
}

static int remove_nth(const struct place *place, const char *infix, size_t n)
{
	char name[NAME_MAX + 1];
	int r;

	r = file_name(place, infix, n, name);
	if (r < 0)
		return r;
	return unlinkat(place->folder, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int files_remove(const struct place *place)
{
	int first_error = 0;

	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		int r = remove_nth(place, "", i);

		if (r < 0 && first_error == 0)
			first_error = r;
	}
	return first_error;
}

/* Rename the n-th file. If it is missing, remove the target. */
static int move_nth(const struct place *place, const char *from_infix, const char *to_infix, size_t n)
{
	char from[NAME_MAX + 1], to[NAME_MAX + 1];
	int r;

	r = file_name(place, from_infix, n, from);
	if (r >= 0)
		r = file_name(place, to_infix, n, to);
	if (r < 0)
		return r;
	if (renameat(place->folder, from, place->folder, to) == 0)
		return 0;
	return errno == ENOENT ? remove_nth(place, to_infix, n) : -errno;
}

static int move_all(const struct place *place, const char *from_infix, const char *to_infix)
{
	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		int r = move_nth(place, from_infix, to_infix, i);

		if (r < 0) {
			while (i-- > 0)
				move_nth(place, to_infix, from_infix, i);
			return r;
		}
	}
	return 0;
}

/* ---- The lock ---- */

static int lock(int fd, short type)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1 };

	if (fcntl(fd, F_OFD_SETLK, &range) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* -EBUSY: the name now refers to another file than the locked one. */
static int check_same(int fd, const struct place *place)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return place_is(place->folder, place->name, &st) ? 0 : -EBUSY;
}

static int open_regular(const struct place *place, int flags)
{
	CLEANUP(closep)
	int fd = openat(place->folder, place->name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? TAKE_FD(fd) : S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
}

/* An existing file may be read-only for us: then take a read lock. */
static int open_locked(const struct place *place, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	short type = F_WRLCK;
	int r;

	fd = open_regular(place, O_RDWR);
	if (fd == -EACCES || fd == -EROFS) {
		type = F_RDLCK;
		fd = open_regular(place, O_RDONLY);
	}
	if (fd < 0)
		return fd;
	r = lock(fd, type);
	if (r < 0)
		return r;
	r = check_same(fd, place);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int files_keep_old(const struct place *place, bool *ret_kept)
{
	CLEANUP(closep) int fd = -1;
	int r;

	if (!place->exists) {
		*ret_kept = false;
		return 0;
	}
	r = open_locked(place, &fd);
	if (r < 0)
		return r;
	r = move_all(place, "", ".old");
	if (r < 0)
		return r;
	*ret_kept = true;
	return 0;
}

int files_restore_old(const struct place *place)
{
	struct stat st;

	if (fstatat(place->folder, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EBUSY;
	return move_all(place, ".old", "");
}

/* -PLACE_EOTHERS_BESIDE: a file beside the database does not belong to its owner. */
static int check_beside(const struct place *place, const struct stat *database)
{
	for (size_t i = 1; i < N_ELEMENTS(suffixes); i++) {
		char name[NAME_MAX + 1];
		struct stat st;
		int r;

		r = file_name(place, "", i, name);
		if (r < 0)
			return r;
		if (fstatat(place->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || beside_belongs(database, &st))
			continue;
		store_notice("%s is not a file of the recording's owner", name);
		return -PLACE_EOTHERS_BESIDE;
	}
	return 0;
}

int files_lock(const struct place *place, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int r;

	fd = open_regular(place, O_RDWR);
	if (fd < 0)
		return fd;
	r = lock(fd, F_WRLCK);
	if (r >= 0)
		r = check_same(fd, place);
	if (r >= 0)
		r = fstat(fd, &st) < 0 ? -errno : check_beside(place, &st);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

bool files_is_locked(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct flock range = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1 };

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

/* Remove a log without database: SQLite would use it for the new one. */
static int remove_orphans(const struct place *place)
{
	int r;

	r = check_beside(place, &(struct stat){ .st_uid = geteuid() });
	for (size_t i = 1; i < N_ELEMENTS(suffixes) && r >= 0; i++)
		r = remove_nth(place, "", i);
	return r;
}

int files_create(const struct place *place, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	int r;

	fd = openat(place->folder, place->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	r = lock(fd, F_WRLCK);
	if (r == 0)
		r = check_same(fd, place);
	if (r == -EBUSY)
		return r; /* another process has replaced the file and removes it */
	if (r == 0)
		r = remove_orphans(place);
	if (r < 0) {
		unlinkat(place->folder, place->name, 0);
		return r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int files_set_mode(const struct place *place, int fd, mode_t mode)
{
	if (fchmod(fd, mode) < 0)
		return -errno;
	for (size_t i = 1; i < N_ELEMENTS(suffixes); i++) {
		CLEANUP(closep) int beside = -1;
		char name[NAME_MAX + 1];
		struct stat database, st;

		if (file_name(place, "", i, name) < 0)
			continue;
		beside = openat(place->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (beside >= 0 && fstat(fd, &database) == 0 && fstat(beside, &st) == 0 &&
		    beside_belongs(&database, &st) && fchmod(beside, mode) < 0)
			return -errno;
	}
	return 0;
}

off_t files_wal_bytes(const char *path)
{
	CLEANUP(freep) char *name = NULL;
	struct stat st;

	if (asprintf(&name, "%s" BESIDE_WAL, path) < 0) {
		name = NULL;
		return 0;
	}
	return stat(name, &st) < 0 ? 0 : st.st_size;
}

int files_plain_name(const char *path, char **ret)
{
	return asprintf(ret, "%s%s", path[0] == '/' ? "" : "./", path) < 0 ? -ENOMEM : 0;
}
