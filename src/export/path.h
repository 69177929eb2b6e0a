/* SPDX-License-Identifier: MIT */
/* path.h - the shown frames of a stack of any length. */
#ifndef PROBING_EXPORT_PATH_H
#define PROBING_EXPORT_PATH_H

#include "src/export/export.h"

/* All zero: nothing read yet. */
struct path {
	int32_t *frames; /* indices into the profile's */
	size_t n, allocated;
};

/*
 * path_read - replace it by the frames of a stack, outermost first; innermost first where options->inverted.
 * @stack: -1: none. Errors: -ENOMEM.
 */
int path_read(struct path *path, const struct profile *profile, const struct export_options *options, int32_t stack);
void path_done(struct path *path);

#endif
