/* SPDX-License-Identifier: MIT */
/* source.h - the text of a source that a recording names. Private to reports. */
#ifndef PROBING_REPORT_SOURCE_H
#define PROBING_REPORT_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/glob_list.h"

struct source {
	char *path;         /* where it was found */
	char *text;         /* lines end with NULs */
	const char **lines; /* lines[0] is line 1 */
	size_t n_lines;
	uint64_t changed_ns; /* CLOCK_REALTIME */
};

/*
 * source_find - read a source file from its present place.
 * @roots: tried in order before the name itself. "FROM=TO": replaces the prefix FROM by TO. A folder:
 *   the name below it, with more and more leading parts removed, down to the last one.
 * @file: its name in the recording.
 * @ret: ended with source_done().
 * Errors: -ENOENT; -EFBIG; -ENOMEM; -EACCES and the like if it exists but is not readable.
 */
int source_find(const struct glob_list *roots, const char *file, struct source *ret);
void source_done(struct source *source);

#endif
