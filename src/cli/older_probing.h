/* SPDX-License-Identifier: MIT */
/* older_probing.h - words of the older probing that have no meaning here, and what to type instead.
 *
 * Those that have one work as typed (aliases.c, docs/habits.md).
 */
#ifndef PROBING_CLI_OLDER_PROBING_H
#define PROBING_CLI_OLDER_PROBING_H

#include <stdbool.h>
#include <stddef.h>

/* Each returns a clause that says what to type instead, or NULL: the older probing had no such word, either. */
const char *older_verb(const char *name);
/* @name: n_name bytes, with or without "probing.". */
const char *older_key(const char *name, size_t n_name);

/* Whether a word has the form HOST:PORT of a remote process, and is no file. */
bool older_is_remote(const char *word);

#endif
