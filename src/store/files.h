/* SPDX-License-Identifier: MIT */
/* files.h - the files a recording consists of, and who may write them. */
#ifndef PROBING_STORE_FILES_H
#define PROBING_STORE_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/place.h"

/*
 * files_keep_old - make room: rename what is there to NAME.old, with
 * the files SQLite keeps beside it, replacing an older NAME.old.
 * @ret_kept: whether there was a file.
 * Errors: -EISDIR; -ENXIO neither file nor folder; -EBUSY a recorder writes
 *         it; what open(2) and rename(2) report. On failure all is as before.
 */
int files_keep_old(const struct place *place, bool *ret_kept);

/* Undo files_keep_old(). -EBUSY: the place is taken meanwhile, all stays as it is. */
int files_restore_old(const struct place *place);

/*
 * files_create - a new, empty file for its owner alone, under the recorder's lock.
 * What an older recording left beside that place is removed.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY another recorder was faster; -PLACE_EOTHERS_BESIDE a file of somebody else's is beside; what open(2) reports.
 */
int files_create(const struct place *place, int *ret_fd);

/*
 * files_lock - take the recorder's lock on a recording that is there.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY somebody writes it; -PLACE_EOTHERS_BESIDE as before; what open(2) reports, -EACCES and -EROFS among them.
 */
int files_lock(const struct place *place, int *ret_fd);

/* files_set_mode - permissions of a recording, and of what SQLite keeps beside it. @fd: of the recording. Errors: those of fchmod(2). */
int files_set_mode(const struct place *place, int fd, mode_t mode);

/* Whether somebody holds that lock. False, too, where it cannot be asked. */
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
