/* SPDX-License-Identifier: MIT */
/* gecko.h - the tables of a profile of profiler.firefox.com that all its threads share. Private to export_gecko.c.
 *
 * Format: the "processed" one, src/types/profile.ts of github.com/firefox-devtools/profiler, version 60: tables are
 * columns of the same length. A label is a frame and a function there, a node of the call tree a stack.
 */
#ifndef PROBING_EXPORT_GECKO_H
#define PROBING_EXPORT_GECKO_H

#include "base/json.h"
#include "src/export/names.h"
#include "src/export/timeline.h"

enum { GECKO_NONE = -1 };

/* A label's texts as numbers. */
struct gecko_function {
	uint32_t name;
	int64_t source, library; /* GECKO_NONE: unknown */
};

struct gecko {
	struct json json;
	const struct profile *profile;
	const struct export_options *options;
	const struct timeline *timeline;
	struct names strings, sources, libraries;
	struct gecko_function *functions; /* by label */
	uint32_t *stacks; /* by node: its number in the table; NULL: nothing is left out, and they are in the order of nodes */
};

/* gecko_number - number everything. Requires gecko's fields up to timeline. -ENOMEM. */
int gecko_number(struct gecko *gecko);
/* The number of a node's stack, after gecko_number(). */
uint32_t gecko_stack(const struct gecko *gecko, uint32_t node);
void gecko_done(struct gecko *gecko); /* its timeline is the caller's */

/* Members of the document: "libs" and "shared". -ENOMEM. */
void gecko_put_libraries(struct gecko *gecko);
int gecko_put_shared(struct gecko *gecko);

/* A column of the same number, or of nothing (GECKO_NONE), n times over; and one of no rows. */
void gecko_put_same(struct json *json, const char *name, size_t n, int64_t value);
void gecko_put_empty(struct json *json, const char *name);

#endif
