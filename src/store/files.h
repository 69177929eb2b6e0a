/* SPDX-License-Identifier: MIT */
/* files.h - the files of a recording, and the lock of its writer. */
#ifndef PROBING_STORE_FILES_H
#define PROBING_STORE_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/place.h"

/*
 * files_keep_old - make room: rename an existing file to NAME.old, with
 * SQLite's files beside it, replacing an older NAME.old.
 * @ret_kept: whether there was a file.
 * Errors: -EISDIR; -ENXIO neither file nor folder; -EBUSY a recorder writes
 *         it; what open(2) and rename(2) report. On failure nothing has changed.
 */
int files_keep_old(const struct place *place, bool *ret_kept);

/* Undo files_keep_old(). -EBUSY: a file exists at the path, and nothing has changed. */
int files_restore_old(const struct place *place);

/*
 * files_create - a new, empty file for its owner alone, under the recorder's lock.
 * Removes files that an older recording left beside that path.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY another recorder was faster; -PLACE_EOTHERS_BESIDE another user's file is beside it; what open(2)
 * reports.
 */
int files_create(const struct place *place, int *ret_fd);

/*
 * files_lock - take the recorder's lock on an existing recording.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY a recorder writes it; -PLACE_EOTHERS_BESIDE as above; what open(2) reports, including -EACCES and
 * -EROFS.
 */
int files_lock(const struct place *place, int *ret_fd);

/* files_set_mode - permissions of a recording, and of SQLite's files beside it. @fd: of the recording. Errors: those of
 * fchmod(2). */
int files_set_mode(const struct place *place, int fd, mode_t mode);

/* Whether a process holds that lock. False also if that is unknown. */
bool files_is_locked(const char *path);

/* Remove a recording's files; those that are not there do not matter. */
int files_remove(const struct place *place);

/* Bytes of the file that SQLite keeps beside path for its log; 0: there is none. */
off_t files_wal_bytes(const char *path);

/*
 * files_plain_name - a name that SQLite takes for a path and nothing else.
 * Without a folder in front, ":memory:" and "file:x?mode=rwc" have a meaning of their own.
 */
int files_plain_name(const char *path, char **ret);

#endif
