/* SPDX-License-Identifier: MIT */
/* export.c - finding an exporter by its name or by a file's ending. */
#include "src/export/export.h"

#include <strings.h>
#include <string.h>

#include "base/util.h"

const struct exporter *exporter_by_name(const char *name)
{
	for (size_t i = 0; exporters[i]; i++) {
		if (strcmp(exporters[i]->name, name) == 0)
			return exporters[i];
	}
	return NULL;
}

/* Length of the longest of the space-separated file name extensions that fits path; 0: none. */
static size_t longest_ending(const char *path, const char *endings)
{
	size_t n_path = strlen(path), longest = 0;

	while (*endings) {
		size_t n = strcspn(endings, " ");

		if (n > longest && n_path > n && strncasecmp(path + n_path - n, endings, n) == 0)
			longest = n;
		endings += n;
		endings += strspn(endings, " ");
	}
	return longest;
}

const struct exporter *exporter_by_path(const char *path)
{
	const struct exporter *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; exporters[i]; i++) {
		size_t n = longest_ending(path, exporters[i]->endings);

		if (n > longest)
			found = exporters[i];
		longest = MAX(longest, n);
	}
	return found;
}
