/* files.h - the files a recording consists of, and who may write them. */
#ifndef PROBING_STORE_FILES_H
#define PROBING_STORE_FILES_H

#include <stdbool.h>
#include <sys/types.h>

/* Where a recording is, or is to be. Whatever happens to the folder's path, what is done here is done in that folder. */
struct files_place {
	int folder; /* descriptor */
	char *name; /* in it */
};

#define FILES_NOWHERE ((struct files_place){ .folder = -1 })

/*
 * files_find - the place that a path means.
 * @follows: a link is followed, so that what lies beside is looked for beside the file that it leads to.
 * @ret: ended with files_leave().
 * Errors: -EISDIR it ends in a slash; -ENOMEM; what open(2) and realpath(3) report.
 */
int files_find(const char *path, bool follows, struct files_place *ret);
void files_leave(struct files_place *place);

/*
 * files_keep_old - make room: rename what is there to NAME.old, with
 * the files SQLite keeps beside it, replacing an older NAME.old.
 * @ret_kept: whether there was a file.
 * Errors: -EISDIR; -ENXIO neither file nor folder; -EBUSY a recorder writes
 *         it; what open(2) and rename(2) report. On failure all is as before.
 */
int files_keep_old(const struct files_place *place, bool *ret_kept);

/* Undo files_keep_old(). -EBUSY: the place is taken meanwhile, all stays as it is. */
int files_restore_old(const struct files_place *place);

/*
 * files_create - a new, empty file for its owner alone, under the recorder's lock.
 * What an older recording left beside that place is removed.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY another recorder was faster; -EKEYREJECTED a file of somebody else's is beside; what open(2) reports.
 */
int files_create(const struct files_place *place, int *ret_fd);

/*
 * files_lock - take the recorder's lock on a recording that is there.
 * @ret_fd: holds the lock until it is closed.
 * Errors: -EBUSY somebody writes it; -EKEYREJECTED as before; what open(2) reports, -EACCES and -EROFS among them.
 */
int files_lock(const struct files_place *place, int *ret_fd);

/* Whether somebody holds that lock. False, too, where it cannot be asked. */
bool files_is_locked(const char *path);

/* Remove a recording's files; those that are not there do not matter. */
int files_remove(const struct files_place *place);

/* Bytes of the file that SQLite keeps beside path for its log; 0: there is none. */
off_t files_wal_bytes(const char *path);

/*
 * files_plain_name - a name that SQLite takes for a path and nothing else.
 * Without a folder in front, ":memory:" and "file:x?mode=rwc" have a meaning of their own.
 */
int files_plain_name(const char *path, char **ret);

#endif
