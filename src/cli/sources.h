/* sources.h - recordings that a new one is made of, and what can go wrong with that. */
#ifndef PROBING_CLI_SOURCES_H
#define PROBING_CLI_SOURCES_H

#include <stddef.h>

#include "src/archive/archive.h"

struct sources {
	const char *const *paths;
	sqlite3 **dbs;
	size_t n;
};

/* Open all to read. Returns 0, or an exit status after having said why; ended with sources_done(), also then. */
int sources_open(const char *const *paths, size_t n, struct sources *ret);
void sources_done(struct sources *sources);

/* Say why copy_recordings() failed; returns the exit status. @out: what was to be made. */
int sources_fail(const struct sources *sources, const char *out, int error, const struct copy_result *result);

/* The same with new_file_reserve() and new_file_finish(). */
int sources_fail_place(const char *out, int error);

#endif
