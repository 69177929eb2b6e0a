/* SPDX-License-Identifier: MIT */
/* inputs.h - recordings that a new one is made of, and what can go wrong with that. */
#ifndef PROBING_CLI_INPUTS_H
#define PROBING_CLI_INPUTS_H

#include <stddef.h>

#include "src/archive/archive.h"

struct inputs {
	const char *const *paths;
	sqlite3 **dbs;
	size_t n;
};

/* Open all to read. Returns 0, or an exit status after having said why; ended with inputs_done(), also then. */
int inputs_open(const char *const *paths, size_t n, struct inputs *ret);
void inputs_done(struct inputs *sources);

/* Say why copy_recordings() failed; returns the exit status. @out: what was to be made. */
int inputs_fail(const struct inputs *sources, const char *out, int error, const struct copy_result *result);

/* The same with new_file_reserve() and new_file_finish(). */
int inputs_fail_place(const char *out, int error);

#endif
