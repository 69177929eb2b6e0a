/* export.c - finding an exporter by its name or by a file's ending. */
#include "src/export/export.h"

#include <strings.h>
#include <string.h>

const struct exporter *exporter_by_name(const char *name)
{
	for (size_t i = 0; exporters[i]; i++) {
		if (strcmp(exporters[i]->name, name) == 0)
			return exporters[i];
	}
	return NULL;
}

/* Whether path ends in one of the space-separated endings and has a name before it. */
static bool has_ending(const char *path, const char *endings)
{
	size_t n_path = strlen(path);

	while (*endings) {
		size_t n = strcspn(endings, " ");

		if (n > 0 && n_path > n && strncasecmp(path + n_path - n, endings, n) == 0)
			return true;
		endings += n;
		endings += strspn(endings, " ");
	}
	return false;
}

const struct exporter *exporter_by_path(const char *path)
{
	for (size_t i = 0; exporters[i]; i++) {
		if (has_ending(path, exporters[i]->endings))
			return exporters[i];
	}
	return NULL;
}
