/* SPDX-License-Identifier: MIT */
/* endpoint.h - the source that answers a query: recordings, or a running process. */
#ifndef PROBING_CLI_ENDPOINT_H
#define PROBING_CLI_ENDPOINT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct multi_db;
struct live;
struct store;

struct endpoint {
	sqlite3 *db;               /* to ask */
	struct multi_db *multi_db; /* several recordings, or NULL */
	struct live *live;         /* a process, or NULL */
	struct store *store;       /* a recording that may be changed, or NULL */
	char title[256];
};

/*
 * endpoint_open - by the arguments: none is ./probing.db, a number a process, anything else a recording.
 * Returns EXIT_OK, or prints a message and returns another exit status.
 * @ret: ended with endpoint_close(); untouched on failure.
 */
int endpoint_open(const char *const *words, size_t n, bool may_write, struct endpoint *ret);

void endpoint_close(struct endpoint *endpoint);

/*
 * endpoint_forbid_files - an authorizer of SQLite: a writable in-memory connection could create or change an attached
 * file, so deny ATTACH. A connection to a recording may attach existing files, read-only.
 */
int endpoint_forbid_files(void *data, int action, const char *name, const char *b, const char *c, const char *d);

/* endpoint_forbid_attach - let statements open no other file. Of a process, and of several recordings, they never do. */
void endpoint_forbid_attach(struct endpoint *endpoint);

/* endpoint_finish - close it, also a changed one, and report errors. Returns an exit status. */
int endpoint_finish(struct endpoint *endpoint, int status);

/* Whether a word names a process: it is a number. A file of such a name is ./NUMBER. */
bool endpoint_is_process(const char *word);

/*
 * endpoint_is_one - whether a word is an endpoint rather than SQL or a pattern.
 * @surely: accept only existing files, and names in the form of recordings'.
 */
bool endpoint_is_one(const char *word, bool surely);

#endif
