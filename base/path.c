/* SPDX-License-Identifier: MIT */
/* path.c - see path.h. */
#include "base/path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

size_t path_stem_bytes(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	const char *name = slash ? slash + 1 : path;

	return dot && dot > name ? (size_t)(dot - path) : strlen(path);
}

int path_make_folders(const char *path)
{
	CLEANUP(freep) char *folder = strdup(path);

	if (!folder)
		return -ENOMEM;
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}
