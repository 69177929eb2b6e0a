/* SPDX-License-Identifier: MIT */
/* extension.c - see extension.h. */
#include "src/cli/extension.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

/* Folder of the running program. */
static int find_folder(char folder[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);

	if (n < 0)
		return -1;
	folder[n] = '\0';
	if (strrchr(folder, '/'))
		*strrchr(folder, '/') = '\0';
	return 0;
}

/* Canonical path of FOLDER/BELOW/NAME; NULL: it does not exist. */
static char *try(const char *folder, const char *below, const char *name)
{
	CLEANUP(freep) char *candidate = NULL;

	if (asprintf(&candidate, "%s%s/%s", folder, below, name) < 0)
		candidate = NULL;
	return candidate && access(candidate, R_OK) == 0 ? realpath(candidate, NULL) : NULL;
}

/* Search the Python packages beside a wheel's program; if several Pythons share it, take the newest file. */
static char *try_packages(const char *folder, const char *name)
{
	CLEANUP(freep) char *pattern = NULL;
	glob_t found = { 0 };
	const char *best = NULL;
	struct stat st, best_st;
	char *path;

	if (asprintf(&pattern, "%s/../lib*/python3*/*-packages/probing/%s", folder, name) < 0) {
		pattern = NULL;
		return NULL;
	}
	if (glob(pattern, 0, NULL, &found) != 0)
		return NULL;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (stat(found.gl_pathv[i], &st) < 0 || (best && st.st_mtime <= best_st.st_mtime))
			continue;
		best = found.gl_pathv[i];
		best_st = st;
	}
	path = best ? realpath(best, NULL) : NULL;
	globfree(&found);
	return path;
}

/* Search relative to the program first, so that a moved tree finds its own library, then in the configured folder. */
char *library_path(const char *name, const char *built_in)
{
	char folder[PATH_MAX], below[PATH_MAX], built[PATH_MAX], *path = NULL;

	snprintf(below, sizeof below, "/../%s/probing", extension_libdir_below);
	snprintf(built, sizeof built, "/../%s", built_in);
	if (find_folder(folder) == 0) {
		path = try(folder, below, name);
		path = path ? path : try(folder, "", name);
		path = path ? path : try(folder, built, name);
		path = path ? path : try_packages(folder, name);
	}
	return path ? path : try(extension_libdir, "/probing", name);
}

char *extension_path(void)
{
	return library_path("probing_sqlite.so", "extension");
}
