/* SPDX-License-Identifier: MIT */
/* tracefs.c - tracepoints by their names; see event.h.
 *
 * tracefs has a folder events/GROUP/NAME for each, with its number in "id" and its record's
 * fields in "format". It is mounted at one of two places, or nowhere; mounting it is the
 * user's to do. Source: Documentation/trace/events.rst, ftrace.rst, Linux 6.12.
 */
#include "src/capture/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/util.h"

enum { MAX_FORMAT_BYTES = 1 << 20 };

/* Find the mount point; the second place is a fallback, so only an EACCES of the first counts. */
static int find_root(const char **ret)
{
	static const char *const roots[] = { "/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events" };
	struct stat st;
	bool is_refused = false;

	for (size_t i = 0; i < N_ELEMENTS(roots); i++) {
		if (stat(roots[i], &st) == 0) {
			*ret = roots[i];
			return 0;
		}
		is_refused |= i == 0 && errno == EACCES;
	}
	return is_refused ? -EACCES : -ENODEV;
}

/* Path of a file of event "GROUP:NAME". Owned by the caller; NULL: out of memory. */
static char *file_path(const char *root, const char *name, const char *file)
{
	size_t n_group = strcspn(name, ":");
	char *path;

	return asprintf(&path, "%s/%.*s/%s/%s", root, (int)n_group, name, name + n_group + 1, file) < 0 ? NULL : path;
}

static int read_text(const char *root, const char *name, const char *file, char **ret, size_t *ret_bytes)
{
	CLEANUP(freep) char *path = file_path(root, name, file);

	return path ? read_file(path, MAX_FORMAT_BYTES, ret, ret_bytes) : -ENOMEM;
}

int event_resolve(struct sampled_event *event, struct tracepoint **ret)
{
	CLEANUP(freep) char *id = NULL, *format = NULL;
	size_t n_bytes;
	const char *root;
	int r;

	if (event->kind != EVENT_TRACEPOINT) {
		*ret = NULL;
		return 0;
	}
	r = find_root(&root);
	if (r >= 0)
		r = read_text(root, event->name, "id", &id, NULL);
	if (r >= 0)
		r = read_text(root, event->name, "format", &format, &n_bytes);
	if (r < 0)
		return r;
	event->config = strtoull(id, NULL, 10);
	if (event->config == 0)
		return -EBADMSG;
	return tracepoint_describe(event->name, format, n_bytes, ret);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type == DT_DIR;
}

static void free_entries(struct dirent **entries, int n)
{
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
}

/* Visit the events of one group. */
static int each_of_group(const char *root, const char *group, int (*take)(void *data, const char *name), void *data)
{
	CLEANUP(freep) char *folder = NULL;
	struct dirent **entries;
	struct sampled_event event;
	int n, r = 0;

	if (asprintf(&folder, "%s/%s", root, group) < 0)
		return -ENOMEM;
	n = scandir(folder, &entries, is_shown, alphasort);
	if (n < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < n && r >= 0; i++) {
		CLEANUP(freep) char *name = NULL;

		if (asprintf(&name, "%s:%s", group, entries[i]->d_name) < 0)
			r = -ENOMEM;
		else if (event_find(name, &event) == 0)
			r = take(data, name);
	}
	free_entries(entries, n);
	return r;
}

int event_each_tracepoint(int (*take)(void *data, const char *name), void *data)
{
	struct dirent **groups;
	const char *root;
	int n, r;

	r = find_root(&root);
	if (r < 0)
		return r;
	n = scandir(root, &groups, is_shown, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n && r >= 0; i++)
		r = each_of_group(root, groups[i]->d_name, take, data);
	free_entries(groups, n);
	return r;
}
