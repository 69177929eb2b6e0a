/* SPDX-License-Identifier: MIT */
/* recover.h - a recording whose last change was cut off, read without touching it. Private. */
#ifndef PROBING_STORE_RECOVER_H
#define PROBING_STORE_RECOVER_H

#include <sqlite3.h>

/*
 * recover_copy - copy a database and the journal beside it into a private folder, and open the copy there.
 * SQLite rolls the copy back at its first use.
 * @path: of the original.
 * @open_name: opens a database of that name for writing, by WRITE_VFS, and reads from it.
 * @ret:  the connection; the copy has no name any more and disappears with it.
 * Errors: -EBADMSG the journal names a super-journal: no recorder writes such; errors of copying and of @open_name.
 */
int recover_copy(const char *path, int (*open_name)(const char *name, sqlite3 **ret), sqlite3 **ret);

#endif
