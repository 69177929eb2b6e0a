/* SPDX-License-Identifier: MIT */
/* write_vfs.h - how SQLite reaches the files of a recording that is made or changed. Private. */
#ifndef PROBING_STORE_WRITE_VFS_H
#define PROBING_STORE_WRITE_VFS_H

/* The name to hand to sqlite3_open_v2(). */
#define WRITE_VFS "probing-write"

/* Make it known to SQLite; once or again. Returns SQLite's code. */
int write_vfs_register(void);

/*
 * write_vfs_admit - a database that SQLite may open, and what lies beside it.
 * @folder: descriptor of its folder. SQLite reaches it through that, whatever the folder's path has come to mean.
 * @name:   in that folder.
 * @fd:     of the database itself: another file of that name is refused, and so are files beside it of anybody but its owner,
 *          this process' user and root.
 * @ret:    what to hand to sqlite3_open_v2(), the caller's.
 * Both descriptors stay open until write_vfs_dismiss(). Errors: -ENOMEM; what fstat(2) reports.
 */
int write_vfs_admit(int folder, const char *name, int fd, char **ret);

/* The database's connection is closed. Harmless where it was not admitted. */
void write_vfs_dismiss(int folder);

#endif
