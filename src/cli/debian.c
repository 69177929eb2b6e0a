/* debian.c - which Debian package would help.
 *
 * dpkg keeps a list of its files for each package: NAME.list, or NAME:ARCH.list
 * for those that several architectures share. Since /lib, /bin and
 * /sbin became links into /usr, a list may name a file either way.
 * Source: dpkg(1), "FILES"; Debian policy 4.9 and the archive of -dbgsym packages.
 */
#include "src/cli/debian.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define LISTS "/var/lib/dpkg/info"

enum { MAX_LIST_BYTES = 32 << 20 };

DEFINE_CLEANUP(DIR *, closedir)

/* Packages whose debug information is not in NAME-dbgsym. */
static const struct {
	const char *package, *debug_package;
} exceptions[] = {
	{ "libc6", "libc6-dbg" },
};

static bool has_line(const char *text, const char *line)
{
	const size_t n = strlen(line);

	for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
		if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
			return true;
	return false;
}

/* The file under its name, or with the /usr of the merged tree put before or left away. */
static bool lists(const char *text, const char *path)
{
	static const char *const merged[] = { "/bin/", "/sbin/", "/lib", NULL };
	const char *short_path = strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
	CLEANUP(freep) char *long_path = NULL;
	bool is_merged = false;

	for (size_t i = 0; merged[i]; i++)
		is_merged |= strncmp(short_path, merged[i], strlen(merged[i])) == 0;
	if (!is_merged)
		return has_line(text, path);
	if (asprintf(&long_path, "/usr%s", short_path) < 0)
		return false;
	return has_line(text, short_path) || has_line(text, long_path);
}

static bool owns(const char *list, const char *path)
{
	CLEANUP(freep) char *file = NULL, *text = NULL;

	if (asprintf(&file, LISTS "/%s", list) < 0)
		return false;
	return read_file(file, MAX_LIST_BYTES, &text, NULL) >= 0 && lists(text, path);
}

static void name_debug_package(const char *list, char *to, size_t n_bytes)
{
	const int n = (int)MIN(strcspn(list, ":"), strlen(list) - strlen(".list"));

	snprintf(to, n_bytes, "%.*s", n, list);
	for (size_t i = 0; i < N_ELEMENTS(exceptions); i++)
		if (strcmp(to, exceptions[i].package) == 0) {
			snprintf(to, n_bytes, "%s", exceptions[i].debug_package);
			return;
		}
	snprintf(to, n_bytes, "%.*s-dbgsym", n, list);
}

void debian_debug_package(const char *path, char *to, size_t n_bytes)
{
	CLEANUP(closedirp) DIR *folder = opendir(LISTS);
	struct dirent *entry;

	to[0] = '\0';
	while (folder && (entry = readdir(folder)) != NULL) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".list") != 0 || !owns(entry->d_name, path))
			continue;
		name_debug_package(entry->d_name, to, n_bytes);
		return;
	}
}
