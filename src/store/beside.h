/* SPDX-License-Identifier: MIT */
/* beside.h - SQLite's files beside a database, and whether to trust them. Private.
 *
 * SQLite finds NAME-journal, NAME-wal and NAME-shm by name alone. Other users with write access to the folder may have
 * planted them: a journal is rolled back into the database, a log is part of its contents, and both control SQLite.
 */
#ifndef PROBING_STORE_BESIDE_H
#define PROBING_STORE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define BESIDE_JOURNAL "-journal"
#define BESIDE_WAL "-wal"
#define BESIDE_SHM "-shm"

/* The three; NULL ends them. */
extern const char *const beside_suffixes[];

/* The suffix of a file's name; NULL: none of them. */
const char *beside_suffix(const char *name);

/*
 * beside_belongs - whether to accept a file as the database's: a regular file of the database's owner,
 * of this process' user, or of root.
 */
bool beside_belongs(const struct stat *database, const struct stat *file);

/* The same of a name that ends in a suffix; no symbolic link is followed. False, too, where either is not there. */
bool beside_name_belongs(const char *name);

/*
 * beside_foreign - the name of a file beside path that does not belong to it.
 * @ret: owned by the caller; NULL: there is none.
 * Errors: -ENOMEM; what stat(2) reports for path.
 */
int beside_foreign(const char *path, char **ret);

#endif
