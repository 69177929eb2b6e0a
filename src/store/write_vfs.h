/* SPDX-License-Identifier: MIT */
/* write_vfs.h - SQLite's access to the files of a recording that is created or changed. Private. */
#ifndef PROBING_STORE_WRITE_VFS_H
#define PROBING_STORE_WRITE_VFS_H

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

#endif
