/* SPDX-License-Identifier: MIT */
/*
 * file_labels.c - see file_labels.h.
 *
 * Paths are sorted from their ends, component by component. The path that shares most components with a given one is
 * then beside it, so looking at two neighbours is enough.
 */
#include "base/file_labels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "base/util.h"

struct entry {
	const char *path;
	size_t n_bytes;
	size_t index; /* in the caller's array */
};

/* Sort key of the byte before the last n ones: start of the path, then end of a component, then others. */
static int rank_before(const char *path, size_t n_bytes, size_t n)
{
	if (n == n_bytes)
		return 0;
	return path[n_bytes - 1 - n] == '/' ? 1 : 2 + (unsigned char)path[n_bytes - 1 - n];
}

/* Length of the common suffix. */
static size_t shared_bytes(const struct entry *a, const struct entry *b)
{
	size_t most = MIN(a->n_bytes, b->n_bytes), n = 0;

	while (n < most && a->path[a->n_bytes - 1 - n] == b->path[b->n_bytes - 1 - n])
		n++;
	return n;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;
	size_t n = shared_bytes(left, right);

	return rank_before(left->path, left->n_bytes, n) - rank_before(right->path, right->n_bytes, n);
}

/* Number of trailing components that are equal and complete in both paths. */
static size_t shared_components(const struct entry *a, const struct entry *b)
{
	size_t n_bytes = shared_bytes(a, b), n = 0;

	for (size_t i = 0; i < n_bytes; i++)
		n += a->path[a->n_bytes - 1 - i] == '/';
	/* Count the first component if it begins both paths, or follows a slash. */
	if (rank_before(a->path, a->n_bytes, n_bytes) < 2 && rank_before(b->path, b->n_bytes, n_bytes) < 2)
		n++;
	return n;
}

/* Start of the last n components. */
static const char *last_components(const struct entry *entry, size_t n)
{
	const char *at = entry->path + entry->n_bytes;

	for (; at > entry->path; at--)
		if (at[-1] == '/' && --n == 0)
			return at;
	return entry->path;
}

static bool is_component(const char *from, const char *to, const char *text)
{
	return (size_t)(to - from) == strlen(text) && memcmp(from, text, strlen(text)) == 0;
}

/* Whether the component is like "python3.11" or "python3.13t". */
static bool is_python(const char *from, const char *to)
{
	static const char start[] = "python";
	size_t n = sizeof start - 1;

	return (size_t)(to - from) > n && memcmp(from, start, n) == 0 && from[n] >= '2' && from[n] <= '9';
}

/* The path relative to the folder for imports; NULL: not in one. */
static const char *import_path(const char *path)
{
	const char *found = NULL, *before = "", *before_end = before;

	for (const char *from = path, *to; (to = strchr(from, '/')); from = to + 1) {
		bool is_lib = is_component(before, before_end, "lib") || is_component(before, before_end, "lib64");

		if (is_component(from, to, "site-packages") || is_component(from, to, "dist-packages") ||
		    (is_lib && is_python(from, to)))
			found = to + 1;
		before = from;
		before_end = to;
	}
	return found && *found ? found : NULL;
}

static bool is_known_by_folder(const char *name)
{
	return strcmp(name, "__init__.py") == 0 || strcmp(name, "__main__.py") == 0 || *name == '\0';
}

/* @n_shared: trailing components shared with another path. */
static const char *label_of(const struct entry *entry, size_t n_shared)
{
	const char *slash = strrchr(entry->path, '/'), *import, *label;
	size_t n = n_shared + 1;

	if (n == 1 && is_known_by_folder(slash ? slash + 1 : entry->path))
		n = 2;
	label = last_components(entry, n);
	import = n > 1 ? import_path(entry->path) : NULL;
	return import && import < label ? import : label;
}

static bool is_same(const struct entry *a, const struct entry *b)
{
	return a->n_bytes == b->n_bytes && memcmp(a->path, b->path, a->n_bytes) == 0;
}

/* @entries: sorted; equal paths are adjacent. */
static void label_entries(const struct entry *entries, size_t n, const char **ret)
{
	size_t shared_before = 0;

	for (size_t first = 0, end; first < n; first = end) {
		size_t shared_behind = 0;

		for (end = first + 1; end < n && is_same(&entries[first], &entries[end]);)
			end++;
		if (end < n)
			shared_behind = shared_components(&entries[first], &entries[end]);
		for (size_t i = first; i < end; i++)
			ret[entries[i].index] = label_of(&entries[i], MAX(shared_before, shared_behind));
		shared_before = shared_behind;
	}
}

int file_labels_find(const char *const *paths, size_t n, const char **ret)
{
	CLEANUP(freep) struct entry *entries = calloc(n + 1, sizeof *entries);

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct entry){ paths[i], strlen(paths[i]), i };
	qsort(entries, n, sizeof *entries, compare_entries);
	label_entries(entries, n, ret);
	return 0;
}
