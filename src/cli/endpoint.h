/* SPDX-License-Identifier: MIT */
/* endpoint.h - what a question is asked of: recordings, or a running process. */
#ifndef PROBING_CLI_ENDPOINT_H
#define PROBING_CLI_ENDPOINT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct multi_db;
struct live;
struct store;

struct endpoint {
	sqlite3 *db;           /* to ask */
	struct multi_db *many; /* several recordings, or NULL */
	struct live *live;     /* a process, or NULL */
	struct store *store;   /* a recording that may be changed, or NULL */
	char title[256];
};

/*
 * endpoint_open - by what was typed: nothing is ./probing.db, a number a process, anything else a recording.
 * Returns EXIT_OK, or another exit status after having said why.
 * @ret: ended with endpoint_close(); untouched on failure.
 */
int endpoint_open(const char *const *words, size_t n, bool may_write, struct endpoint *ret);

void endpoint_close(struct endpoint *endpoint);

/* endpoint_finish - close it, also one that was changed, and say what went wrong with that. Returns an exit status. */
int endpoint_finish(struct endpoint *endpoint, int status);

/* Whether a word names a process: it is a number. A file of such a name is ./NUMBER. */
bool endpoint_is_process(const char *word);

/*
 * endpoint_is_one - whether a word is meant as an endpoint rather than as SQL or a pattern.
 * @surely: only what is there, or is called as recordings are.
 */
bool endpoint_is_one(const char *word, bool surely);

#endif
