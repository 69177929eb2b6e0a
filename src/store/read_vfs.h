/* SPDX-License-Identifier: MIT */
/* read_vfs.h - how SQLite reaches the files of a recording that is only read. Private. */
#ifndef PROBING_STORE_READ_VFS_H
#define PROBING_STORE_READ_VFS_H

/* The name to hand to sqlite3_open_v2(). */
#define READ_VFS "probing-read"

/* Make it known to SQLite; once or again. Returns SQLite's code. */
int read_vfs_register(void);

#endif
