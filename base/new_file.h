/* SPDX-License-Identifier: MIT */
/* new_file.h - a file that appears only when it is complete.
 *
 * It is created in the same folder, under an unpredictable name or without one, and renamed at the end. All steps are
 * relative to the folder's descriptor (place.h). Only its user may read a new file. A replaced file keeps its owner, if
 * the caller may give files away, and its permissions, unless the caller sets others.
 */
#ifndef PROBING_BASE_NEW_FILE_H
#define PROBING_BASE_NEW_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/place.h"

enum { NEW_FILE_MODE = 0600 };

struct new_file { /* zeros: none, which is harmless to abandon */
	struct place place;
	int fd;          /* open for writing; -1: other code creates the file by its path */
	char *temporary; /* its name in the folder; NULL: written directly, or finished */
	char *path;      /* of the temporary, for others; NULL: it is written through fd */
	mode_t mode;     /* 0: NEW_FILE_MODE, or that of the replaced file */
	bool replaces;
};

/*
 * new_file_open - begin a file that is written through file->fd.
 * A path that exists and is no regular file (a FIFO, a terminal, /dev/null) is opened, and written directly.
 * @mode: permissions, which the umask narrows; 0: those of the replaced file, or NEW_FILE_MODE.
 * Errors: those of place_find() and place_open(); -EEXIST a recording or another SQLite file exists there: it may be
 * the only copy, and the new contents can be written again; -EISDIR; -EACCES the existing file is not writable; what
 * openat(2) reports.
 */
int new_file_open(struct new_file *file, const char *path, mode_t mode);

/*
 * new_file_reserve - choose a path for a file that other code creates: SQLite opens its files by name.
 * file->path does not exist yet. Its creator must refuse an existing file (O_EXCL).
 * @replaces: new_file_finish() replaces a file at path; otherwise an existing file is an error, here and there.
 * Errors: those of place_find(); -EEXIST; -EISDIR; -ENXIO it is no regular file; -EACCES and others of its folder.
 */
int new_file_reserve(struct new_file *file, const char *path, bool replaces, mode_t mode);

/*
 * new_file_finish - set owner and permissions, fsync(2), and rename. Releases the file in any case.
 * Errors: -EBUSY a SQLite log exists beside a reserved path, and SQLite would apply it to the new file; -EEXIST;
 * -PLACE_ECHANGED the temporary name no longer refers to the created file; what fsync(2), fchmod(2) and renameat(2)
 * report.
 */
int new_file_finish(struct new_file *file);
void new_file_abandon(struct new_file *file); /* removes the file; harmless after a finish or a failed open */

/*
 * new_file_open_log - open a file that is read while it grows: truncated and written in place, not replaced.
 * Returns a descriptor. Errors: those of new_file_open(); -PLACE_EOTHERS_FILE also for a file with other names, in a
 * folder that everybody may write to.
 */
int new_file_open_log(const char *path, mode_t mode);

/* A mode without the bits of the umask. */
mode_t new_file_narrow(mode_t mode);

/* 16 hexadecimal digits of getrandom(2) and a NUL: for names that cannot be guessed. */
enum { NEW_FILE_RANDOM_BYTES = 17 };
int new_file_random(char to[NEW_FILE_RANDOM_BYTES]);

#endif
