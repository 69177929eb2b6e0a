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
 * source_find - read a source from where it is now.
 * @roots: tried in order before the name itself. "FROM=TO": what stands at FROM there is at TO here. A folder:
 *   the name below it, with ever more of its beginning left out, down to the last part.
 * @file: as the recording has it.
 * @ret: ended with source_done().
 * Errors: -ENOENT; -EFBIG; -ENOMEM; -EACCES and the like where it stands but cannot be read.
 */
int source_find(const struct glob_list *roots, const char *file, struct source *ret);
void source_done(struct source *source);

#endif
