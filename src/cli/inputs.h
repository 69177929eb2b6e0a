/* SPDX-License-Identifier: MIT */
/* inputs.h - the input recordings of a new one, and messages for its errors. */
#ifndef PROBING_CLI_INPUTS_H
#define PROBING_CLI_INPUTS_H

#include <stddef.h>

#include "src/archive/archive.h"

struct inputs {
	const char *const *paths;
	sqlite3 **dbs;
	size_t n;
};

/* Open all for reading. Returns 0, or prints a message and returns an exit status; ended with inputs_done() in any
 * case. */
int inputs_open(const char *const *paths, size_t n, struct inputs *ret);
void inputs_done(struct inputs *sources);

/* Print why copy_recordings() failed; returns the exit status. @out: the path of the new recording. */
int inputs_fail(const struct inputs *sources, const char *out, int error, const struct copy_result *result);

/* The same with new_file_reserve() and new_file_finish(). */
int inputs_fail_place(const char *out, int error);

#endif
