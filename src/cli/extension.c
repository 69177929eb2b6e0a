/* extension.c - see extension.h. */
#include "src/cli/extension.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define NAME "probing_sqlite.so"

/* The folder of this program. */
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

/* FOLDER/BELOW/probing_sqlite.so, in its plainest form; NULL: there is none. */
static char *try(const char *folder, const char *below)
{
	CLEANUP(freep) char *candidate = NULL;

	if (asprintf(&candidate, "%s%s/" NAME, folder, below) < 0)
		candidate = NULL;
	return candidate && access(candidate, R_OK) == 0 ? realpath(candidate, NULL) : NULL;
}

/* By this program, so that a tree that was moved as a whole finds its own; then where it was configured to be. */
char *extension_path(void)
{
	char folder[PATH_MAX], below[PATH_MAX], *path = NULL;

	snprintf(below, sizeof below, "/../%s/probing", extension_libdir_below);
	if (find_folder(folder) == 0) {
		path = try(folder, below);
		path = path ? path : try(folder, "");
		path = path ? path : try(folder, "/../extension");
	}
	return path ? path : try(extension_libdir, "/probing");
}
