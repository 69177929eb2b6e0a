/* SPDX-License-Identifier: MIT */
/* vfs.h - SQLite's access to the files of a recording. Private. */
#ifndef PROBING_STORE_VFS_H
#define PROBING_STORE_VFS_H

/* ---- read_vfs.c: of one that is only read ---- */

/* The name to hand to sqlite3_open_v2(). */
#define READ_VFS "probing-read"

/* Make it known to SQLite; once or again. Returns SQLite's code. */
int read_vfs_register(void);

/* ---- write_vfs.c: of one that is created or changed ---- */

/* The name to hand to sqlite3_open_v2(). */
#define WRITE_VFS "probing-write"

/* Make it known to SQLite; once or again. Returns SQLite's code. */
int write_vfs_register(void);

/*
 * write_vfs_admit - permit SQLite to open a database, and its files beside it.
 * @folder: descriptor of its folder. SQLite uses it, even if the folder's path has changed.
 * @name:   in that folder.
 * @fd:     of the database itself: another file of that name is refused, and so are files beside it, except those of
 *          its owner, this process' user and root.
 * @ret:    the name for sqlite3_open_v2(), owned by the caller.
 * Both descriptors stay open until write_vfs_dismiss(). Errors: -ENOMEM; what fstat(2) reports.
 */
int write_vfs_admit(int folder, const char *name, int fd, char **ret);

/* The database's connection is closed. Harmless where it was not admitted. */
void write_vfs_dismiss(int folder);

/* ---- log_check.c: whether a SQLite log (NAME-wal) has a complete transaction ---- */

/*
 * log_has_transaction - look for the first frame that ends a transaction, in a log that nobody writes.
 * @fd: of the log; its bytes may be anything. Reads up to that frame, or to the first invalid one.
 * Returns 1, or 0: there is none, or no valid header. Errors: of pread(2).
 * Source: sqlite.org/walformat.html; SQLite 3.40, wal.c, walIndexRecover().
 */
int log_has_transaction(int fd);

#endif
