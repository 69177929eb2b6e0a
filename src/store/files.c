/*
 * files.c - moving a recording's files out of the way, and the recorder's lock.
 *
 * A recording is PATH and, while it is written or after its recorder was
 * killed, the log and journal that SQLite keeps beside it. Rules:
 *
 * 1. The files move together: a log is part of its database's contents.
 * 2. A recorder holds a write lock on one byte of PATH for as long as it
 *    lives. The byte lies where SQLite never locks. The lock belongs to the
 *    open file description (F_OFD_SETLK, fcntl(2)), so that neither SQLite's
 *    own descriptors nor other threads can lose it.
 * 3. Who moves a file holds that lock too, and looks afterwards whether the
 *    path still means the file that was locked.
 *
 * Closing a descriptor drops all of the process' other locks on that file:
 * a path that this process has open in SQLite must not be given to
 * files_keep_old().
 */
#include "src/store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define LOCK_BYTE (INT64_C(1) << 62)

/* The database comes first: it is the one whose renaming can be refused. */
static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };

static int file_name(const char *path, const char *infix, size_t n, char **ret)
{
	return asprintf(ret, "%s%s%s", path, infix, suffixes[n]) < 0 ? -ENOMEM : 0;
}

static int remove_nth(const char *path, const char *infix, size_t n)
{
	CLEANUP(freep) char *name = NULL;
	int r;

	r = file_name(path, infix, n, &name);
	if (r < 0)
		return r;
	return unlink(name) < 0 && errno != ENOENT ? -errno : 0;
}

int files_remove(const char *path)
{
	int first_error = 0;

	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		int r = remove_nth(path, "", i);

		if (r < 0 && first_error == 0)
			first_error = r;
	}
	return first_error;
}

/* Rename the n-th file; where there is none, none is left at the target either. */
static int move_nth(const char *path, const char *from_infix, const char *to_infix, size_t n)
{
	CLEANUP(freep) char *from = NULL, *to = NULL;
	int r;

	r = file_name(path, from_infix, n, &from);
	if (r < 0)
		return r;
	r = file_name(path, to_infix, n, &to);
	if (r < 0)
		return r;
	if (rename(from, to) == 0)
		return 0;
	return errno == ENOENT ? remove_nth(path, to_infix, n) : -errno;
}

static int move_all(const char *path, const char *from_infix, const char *to_infix)
{
	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		int r = move_nth(path, from_infix, to_infix, i);

		if (r < 0) {
			while (i-- > 0)
				move_nth(path, to_infix, from_infix, i);
			return r;
		}
	}
	return 0;
}

static int lock(int fd, short type)
{
	struct flock range = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1
	};

	if (fcntl(fd, F_OFD_SETLK, &range) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* -EBUSY when the path has come to mean another file than the one locked. */
static int check_same(int fd, const char *path)
{
	struct stat by_fd, by_path;

	if (fstat(fd, &by_fd) < 0)
		return -errno;
	if (stat(path, &by_path) < 0)
		return errno == ENOENT ? -EBUSY : -errno;
	return by_fd.st_dev == by_path.st_dev && by_fd.st_ino == by_path.st_ino ? 0 : -EBUSY;
}

/* A file that may only be read can still be in the way: then a read lock has to do. */
static int open_locked(const char *path, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	short type = F_WRLCK;
	int r;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EROFS)) {
		type = F_RDLCK;
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	r = lock(fd, type);
	if (r < 0)
		return r;
	r = check_same(fd, path);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int files_keep_old(const char *path, bool *ret_kept)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int r;

	if (stat(path, &st) < 0) {
		if (errno != ENOENT)
			return -errno;
		/* An orphaned log is SQLite's to remove: it does so where the database is empty. */
		*ret_kept = false;
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	r = open_locked(path, &fd);
	if (r < 0)
		return r;
	r = move_all(path, "", ".old");
	if (r < 0)
		return r;
	*ret_kept = true;
	return 0;
}

int files_restore_old(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return -EBUSY;
	return move_all(path, ".old", "");
}

int files_lock(const char *path, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	int r;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = lock(fd, F_WRLCK);
	if (r >= 0)
		r = check_same(fd, path);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

bool files_is_locked(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct flock range = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1
	};

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

int files_create(const char *path, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	int r;

	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	r = lock(fd, F_WRLCK);
	if (r == 0)
		r = check_same(fd, path);
	if (r == -EBUSY)
		return r; /* someone else has taken it over: theirs to remove */
	if (r < 0) {
		unlink(path);
		return r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* 0 where there is no such file, or nothing in it. */
static off_t bytes_beside(const char *path, const char *suffix)
{
	CLEANUP(freep) char *name = NULL;
	struct stat st;

	if (asprintf(&name, "%s%s", path, suffix) < 0)
		return -ENOMEM;
	return stat(name, &st) < 0 ? 0 : st.st_size;
}

off_t files_wal_bytes(const char *path)
{
	off_t n_bytes = bytes_beside(path, "-wal");

	return MAX(n_bytes, 0);
}

bool files_have_log(const char *path)
{
	return bytes_beside(path, "-wal") != 0 || bytes_beside(path, "-journal") != 0;
}

int files_plain_name(const char *path, char **ret)
{
	return asprintf(ret, "%s%s", path[0] == '/' ? "" : "./", path) < 0 ? -ENOMEM : 0;
}
