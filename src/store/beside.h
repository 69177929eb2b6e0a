/* SPDX-License-Identifier: MIT */
/* beside.h - the files that SQLite keeps beside a database, and whether they may be believed. Private.
 *
 * NAME-journal, NAME-wal and NAME-shm are found by name alone. Where others may write to the folder, they may have
 * planted them: a journal is rolled back into the database, a log is part of its contents, and both name what is done.
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

/* The suffix that a file's name ends in; NULL: it is none of them. */
const char *beside_suffix(const char *name);

/*
 * beside_belongs - whether a file may be taken for the database's: a regular file of the database's owner,
 * of this process' user, or of root.
 */
bool beside_belongs(const struct stat *database, const struct stat *file);

/* The same of a name that ends in a suffix; no symbolic link is followed. False, too, where either is not there. */
bool beside_name_belongs(const char *name);

/*
 * beside_foreign - the name of a file beside path that does not belong to it.
 * @ret: the caller's; NULL: there is none.
 * Errors: -ENOMEM; what stat(2) says of path.
 */
int beside_foreign(const char *path, char **ret);

#endif
