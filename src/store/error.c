/* SPDX-License-Identifier: MIT */
/*
 * error.c - SQLite's result codes as errno values, and errno values as sentences.
 *
 * SQLite maps errors of the operating system to a few codes; for those this file retrieves the
 * errno of the failed call, so that a full quota or a size limit
 * is not reported as a broken disk.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/util.h"
#include "src/store/files.h"
#include "src/store/store_private.h"

static const struct {
	int sqlite_code; /* an extended code, or a primary code for all its extended codes */
	int error;
} conversions[] = {
	{ SQLITE_OK, 0 },
	{ SQLITE_ROW, 0 },
	{ SQLITE_DONE, 0 },
	{ SQLITE_IOERR_NOMEM, ENOMEM },
	{ SQLITE_IOERR_SHORT_READ, EBADMSG },
	{ SQLITE_FULL, ENOSPC },
	{ SQLITE_NOMEM, ENOMEM },
	{ SQLITE_BUSY, EBUSY },
	{ SQLITE_LOCKED, EBUSY },
	{ SQLITE_PERM, EACCES },
	{ SQLITE_READONLY, EACCES },
	{ SQLITE_READONLY_DBMOVED, ESTALE },
	{ SQLITE_AUTH, EACCES },
	{ SQLITE_CORRUPT, EBADMSG },
	{ SQLITE_NOTADB, EBADMSG },
	{ SQLITE_INTERRUPT, EINTR },
	{ SQLITE_TOOBIG, E2BIG },
	{ SQLITE_ERROR, EINVAL },
	{ SQLITE_CONSTRAINT, EINVAL },
	{ SQLITE_MISMATCH, EINVAL },
	{ SQLITE_RANGE, EINVAL },
	{ SQLITE_MISUSE, EINVAL },
};

/* errno values that failed system calls set here; others are stale. */
static const int believable[] = { ENOSPC, EDQUOT, EFBIG,   EACCES, EPERM,  EROFS,
				  ENOENT, EISDIR, ENOTDIR, EMFILE, ENFILE, ENOMEM };

static bool is_believable(int error)
{
	for (size_t i = 0; i < N_ELEMENTS(believable); i++)
		if (error == believable[i])
			return true;
	return false;
}

/* The errno that a file of the connection saved; 0: none. */
static int last_errno(sqlite3 *db, int which_file)
{
	sqlite3_file *file = NULL;
	int error = 0;

	if (sqlite3_file_control(db, "main", which_file, &file) != SQLITE_OK || !file)
		return 0;
	/* A file that is not open, or in memory, has no methods. */
	if (!file->pMethods || !file->pMethods->xFileControl)
		return 0;
	if (file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error) != SQLITE_OK)
		return 0;
	return error;
}

/* A connection may not know the errno: after a failed COMMIT, only the files do. */
static int system_error(sqlite3 *db)
{
	if (!db)
		return EIO;
	if (is_believable(sqlite3_system_errno(db)))
		return sqlite3_system_errno(db);
	if (is_believable(last_errno(db, SQLITE_FCNTL_JOURNAL_POINTER)))
		return last_errno(db, SQLITE_FCNTL_JOURNAL_POINTER);
	if (is_believable(last_errno(db, SQLITE_FCNTL_FILE_POINTER)))
		return last_errno(db, SQLITE_FCNTL_FILE_POINTER);
	return EIO;
}

/* SQLite saves no errno for the log's index, which grows by 32 KiB (sqlite.org/walformat.html). */
static int index_error(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < 32 << 10 ? EFBIG : ENOSPC;
}

/*
 * SQLite says "full" also of a page number above the largest of a database (pager.c, getPageNormal(): SQLite 3.40), which
 * damage puts there. Of a file that it only reads, nothing else is full but its own temporary files; then errno is of their
 * write(2).
 */
static bool is_full_by_damage(sqlite3 *db)
{
	return db && sqlite3_db_readonly(db, "main") == 1 && errno != ENOSPC && errno != EDQUOT && errno != EFBIG;
}

int store_errno(sqlite3 *db, int sqlite_code)
{
	if (sqlite_code == SQLITE_IOERR_SHMSIZE)
		return -index_error();
	if (sqlite_code == SQLITE_FULL && is_full_by_damage(db))
		return -EBADMSG;
	for (size_t i = 0; i < N_ELEMENTS(conversions); i++)
		if (conversions[i].sqlite_code == sqlite_code)
			return -conversions[i].error;
	for (size_t i = 0; i < N_ELEMENTS(conversions); i++)
		if (conversions[i].sqlite_code == (sqlite_code & 0xff))
			return -conversions[i].error;
	return -system_error(db);
}

int store_read_errno(sqlite3 *db, int sqlite_code)
{
	int r;

	r = store_errno(db, sqlite_code);
	return r == -EINVAL ? -EBADMSG : r;
}

int store_exec(sqlite3 *db, const char *sql)
{
	return store_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

static const struct {
	int error;
	const char *before, *after; /* texts around the path */
} sentences[] = {
	{ ENOENT, "",
	  " does not exist: check the name and its folder, or make a recording with"
	  " 'probing record'" },
	{ ENOTDIR, "a part of ", " that should be a folder is a file: check the path" },
	{ EISDIR, "", " is a folder: name a file in it" },
	{ ENXIO, "", " is not a regular file: name one, or a file that does not exist yet" },
	{ EACCES, "permission denied for ", ": use a file in a folder of your own, or run as the owner" },
	{ EPERM, "permission denied for ", ": use a file in a folder of your own, or run as the owner" },
	{ EROFS, "", " lies on a read-only file system: choose another place with -o" },
	{ ENOSPC, "no space left for ",
	  ": free some, or record to another disk with -o; what was flushed before is kept" },
	{ EDQUOT, "disk quota exceeded for ",
	  ": free some space, or record to another disk with -o; what was flushed before is kept" },
	{ EFBIG, "",
	  " has reached the file size limit: raise it with 'ulimit -f';"
	  " what was flushed before is kept" },
	{ EBUSY, "", " is being written by another process: wait, stop it, or choose another file with -o" },
	{ PLACE_EOTHERS_BESIDE, "beside ",
	  " is another user's file (-journal, -wal or -shm), which would count as a part of it: remove that, or use a "
	  "folder of your own" },
	{ EBADMSG, "",
	  " is damaged or not an SQLite file: take a good copy, or save what is left with"
	  " 'sqlite3 FILE .recover'" },
	{ EMEDIUMTYPE, "",
	  " is not a recording (empty, or some other database): name a file that"
	  " 'probing record' wrote" },
	{ EPROTONOSUPPORT, "", " was written by a newer version: update probing to read it" },
	{ EIO, "the disk failed to read or write ",
	  ": see the kernel's log (dmesg), and record to another disk with -o" },
	{ ENOMEM, "not enough memory for ", ": free some, or raise the limit (ulimit -v, the container's)" },
	{ ESTALE, "",
	  " was moved or deleted during the recording: at its new place it has everything written until then; move a "
	  "recording after its recorder has ended" },
	{ EMFILE, "too many open files for ", ": raise the limit with 'ulimit -n'" },
};

/* Shorten a long path at its beginning, so that the sentence stays complete. */
static void write_sentence(const char *before, const char *path, const char *after, char *to, size_t n_bytes)
{
	size_t room = n_bytes - 1, used = strlen(before) + strlen(after), n = strlen(path);
	const char *dots = "";

	room = used < room ? room - used : 0;
	if (n > room && room > 3) {
		dots = "...";
		path += n - (room - 3);
	}
	snprintf(to, n_bytes, "%s%s%s%s", before, dots, path, after);
}

void store_explain(int error, const char *path, char *to, size_t n_bytes)
{
	char unknown[128];

	if (n_bytes == 0)
		return;
	error = error < 0 ? -error : error;
	if (error == PLACE_EOTHERS_LINK || error == PLACE_EOTHERS_FILE) {
		place_explain(-error, path, to, n_bytes);
		return;
	}
	for (size_t i = 0; i < N_ELEMENTS(sentences); i++) {
		if (sentences[i].error != error)
			continue;
		write_sentence(sentences[i].before, path, sentences[i].after, to, n_bytes);
		return;
	}
	snprintf(unknown, sizeof unknown, ": %.60s; try another file", strerrordesc_np(error) ?: "unknown error");
	write_sentence("cannot use ", path, unknown, to, n_bytes);
}
