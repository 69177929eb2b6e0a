/* SPDX-License-Identifier: MIT */
/* path.c - see path.h. */
#include "src/export/path.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

enum { FIRST_FRAMES = 256 };

static void reverse(struct path *path)
{
	for (size_t i = 0; i < path->n / 2; i++) {
		int32_t frame = path->frames[i];

		path->frames[i] = path->frames[path->n - 1 - i];
		path->frames[path->n - 1 - i] = frame;
	}
}

int path_read(struct path *path, const struct profile *profile, const struct export_options *options, int32_t stack)
{
	int r;

	for (path->n = 0; stack >= 0;) {
		if (path->allocated > 0)
			path->n = profile_path(profile, stack, options->show_interpreter, path->frames,
					       path->allocated);
		if (path->n < path->allocated)
			break;
		/* The path fills the array, so it may be longer. */
		r = grow(&path->frames, MAX(path->n, (size_t)FIRST_FRAMES), &path->allocated, sizeof *path->frames);
		if (r < 0)
			return r;
	}
	if (options->inverted)
		reverse(path);
	return 0;
}

void path_done(struct path *path)
{
	free(path->frames);
	*path = (struct path){ 0 };
}
