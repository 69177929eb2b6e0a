/* extension.c - see extension.h. */
#include "src/cli/extension.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define NAME "probing_sqlite.so"

/* By this program, so that a tree that was moved as a whole finds its own; then where it was configured to be. */
static const char *const places[] = { "/../" PROBING_LIBDIR_BESIDE "/probing/", "/", "/../extension/", };

char *extension_path(void)
{
	char program[PATH_MAX], candidate[PATH_MAX + 256];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

	program[MAX(n, 0)] = '\0';
	if (strrchr(program, '/'))
		*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < N_ELEMENTS(places) && n > 0; i++) {
		snprintf(candidate, sizeof candidate, "%s%s" NAME, program, places[i]);
		if (access(candidate, R_OK) == 0)
			return realpath(candidate, NULL);
	}
	return access(PROBING_LIBDIR "/probing/" NAME, R_OK) == 0 ? strdup(PROBING_LIBDIR "/probing/" NAME) : NULL;
}
