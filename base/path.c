/* SPDX-License-Identifier: MIT */
/* path.c - see path.h. */
#include "base/path.h"

#include <string.h>

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
