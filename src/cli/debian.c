/* SPDX-License-Identifier: MIT */
/* debian.c - see debian.h.
 *
 * A package of debug files has the name of the package that it is for, or of its source: libfoo1-dbgsym, libc6-dbg,
 * python3.11-dbg for python3.11-minimal. apt's lists show by build-id whether it has the file of a build.
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
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define LISTS "/var/lib/dpkg/info"
#define STATUS "/var/lib/dpkg/status"

enum { MAX_LIST_BYTES = 32 << 20 };

/* Debug packages that are not called NAME-dbgsym, for systems whose lists are missing. */
static const char *const exceptions[] = { "libc6-dbg" };

static bool has_line(const char *text, const char *line)
{
	const size_t n = strlen(line);

	for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
		if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
			return true;
	return false;
}

/* Search the file under its name, and with or without the /usr of a merged tree. */
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

/* The name before ".list" or ":ARCH.list". */
static void name_package(const char *list, char *to)
{
	const size_t n = MIN(strcspn(list, ":"), strlen(list) - strlen(".list"));

	snprintf(to, APT_PACKAGE_BYTES, "%.*s", (int)n, list);
}

static bool find_owner(const char *path, char *to)
{
	CLEANUP(closedirp) DIR *folder = opendir(LISTS);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)) != NULL) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".list") != 0 || !owns(entry->d_name, path))
			continue;
		name_package(entry->d_name, to);
		return true;
	}
	return false;
}

/* Find the source package, which may name the debug package: python3.11 for python3.11-minimal. */
static void find_source(const char *status, const char *package, char *to)
{
	CLEANUP(freep) char *head = NULL;
	const char *stanza, *end, *source;

	snprintf(to, APT_PACKAGE_BYTES, "%s", package);
	if (!status || asprintf(&head, "\nPackage: %s\n", package) < 0 || !(stanza = strstr(status, head)))
		return;
	end = strstr(stanza + 1, "\n\n");
	source = strstr(stanza + 1, "\nSource: ");
	if (!source || (end && source > end))
		return;
	source += strlen("\nSource: ");
	snprintf(to, APT_PACKAGE_BYTES, "%.*s", (int)MIN(strcspn(source, " \n"), (size_t)APT_PACKAGE_BYTES - 1),
		 source);
}

/* Possible names of debug packages, from the module's package and its source package. */
struct names {
	char own_dbgsym[APT_PACKAGE_BYTES + 8], own_dbg[APT_PACKAGE_BYTES + 8], source_dbg[APT_PACKAGE_BYTES + 8];
};

static void make_candidates(const char *path, const char *status, struct names *names, struct apt_query *query)
{
	char owner[APT_PACKAGE_BYTES], source[APT_PACKAGE_BYTES];

	if (path[0] != '/' || !find_owner(path, owner))
		return;
	find_source(status, owner, source);
	snprintf(names->own_dbgsym, sizeof names->own_dbgsym, "%s-dbgsym", owner);
	snprintf(names->own_dbg, sizeof names->own_dbg, "%s-dbg", owner);
	snprintf(names->source_dbg, sizeof names->source_dbg, "%s-dbg", source);
	query->candidates[0] = names->own_dbgsym;
	query->candidates[1] = names->own_dbg;
	query->candidates[2] = names->source_dbg;
}

static const char *guess(const struct apt_query *query)
{
	for (size_t i = 0; i < N_ELEMENTS(exceptions); i++)
		if (query->candidates[1] && strcmp(query->candidates[1], exceptions[i]) == 0)
			return exceptions[i];
	return query->candidates[0] ?: "";
}

static void judge(const struct apt_query *query, struct debug_package *package)
{
	const char *name = query->package[0] ? query->package : guess(query);

	snprintf(package->name, sizeof package->name, "%s", name);
	package->trust = query->has_file     ? DEBUG_PACKAGE_SURE
			 : query->package[0] ? DEBUG_PACKAGE_OUTDATED
			 : package->name[0]  ? DEBUG_PACKAGE_GUESSED
					     : DEBUG_PACKAGE_UNKNOWN;
}

void debian_find_debug_packages(struct debug_package *packages, unsigned n)
{
	CLEANUP(freep) struct apt_query *queries = calloc(n + 1, sizeof *queries);
	CLEANUP(freep) struct names *names = calloc(n + 1, sizeof *names);
	CLEANUP(freep) char *status = NULL;

	for (unsigned i = 0; i < n; i++) {
		packages[i].name[0] = '\0';
		packages[i].trust = DEBUG_PACKAGE_UNKNOWN;
	}
	if (n == 0 || !queries || !names)
		return;
	(void)read_file(STATUS, MAX_LIST_BYTES, &status, NULL);
	for (unsigned i = 0; i < n; i++) {
		queries[i].build_id = packages[i].build_id;
		make_candidates(packages[i].path, status, &names[i], &queries[i]);
	}
	apt_lists_search(APT_LISTS_FOLDER, queries, n);
	for (unsigned i = 0; i < n; i++)
		judge(&queries[i], &packages[i]);
}
