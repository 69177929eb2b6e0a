/* files.h - the files a recording consists of, and who may write them. */
#ifndef PROBING_STORE_FILES_H
#define PROBING_STORE_FILES_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * files_keep_old - make room at path: rename what is there to PATH.old, with
 * the files SQLite keeps beside it, replacing an older PATH.old.
 * @ret_kept: whether there was a file.
 * Errors: -EISDIR; -ENXIO neither file nor folder; -EBUSY a recorder writes
 *         it; what open(2) and rename(2) report. On failure all is as before.
 */
int files_keep_old(const char *path, bool *ret_kept);

/* Undo files_keep_old(). -EBUSY: the place is taken meanwhile, all stays as it is. */
int files_restore_old(const char *path);

/*
 * files_create - a new, empty file under the recorder's lock.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY another recorder was faster; what open(2) reports.
 */
int files_create(const char *path, int *ret_fd);

/*
 * files_lock - take the recorder's lock on a recording that is there.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY somebody writes it; what open(2) reports, -EACCES and -EROFS among them.
 */
int files_lock(const char *path, int *ret_fd);

/* Whether somebody holds that lock. False, too, where it cannot be asked. */
bool files_is_locked(const char *path);

/* Remove a recording's files; those that are not there do not matter. */
int files_remove(const char *path);

/* Bytes of the file that SQLite keeps beside path for its log; 0: there is none. */
off_t files_wal_bytes(const char *path);

/* Whether a part of the recording's contents, or the way back from half a change, is beside path. */
bool files_have_log(const char *path);

/*
 * files_plain_name - a name that SQLite takes for a path and nothing else.
 * Without a folder in front, ":memory:" and "file:x?mode=rwc" have a meaning of their own.
 */
int files_plain_name(const char *path, char **ret);

#endif
