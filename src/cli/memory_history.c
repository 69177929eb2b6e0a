/* SPDX-License-Identifier: MIT */
/* memory_history.c - see memory_history.h. Its files are text, "NAME NUMBER" a line, and are not trusted. */
#include "src/cli/memory_history.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/util.h"

enum { MAX_FILE_BYTES = 1 << 16 };
static const char time_name[] = "time_ns";

void memory_values_add(struct memory_values *values, const char *name, int64_t value)
{
	if (values->n == MEMORY_MAX_VALUES || strlen(name) >= MEMORY_MAX_NAME)
		return;
	strcpy(values->items[values->n].name, name);
	values->items[values->n++].value = value;
}

const int64_t *memory_values_find(const struct memory_values *values, const char *name)
{
	for (size_t i = 0; i < values->n; i++)
		if (strcmp(values->items[i].name, name) == 0)
			return &values->items[i].value;
	return NULL;
}

static void take_line(struct memory_values *values, char *line)
{
	char *space = strchr(line, ' '), *end;
	int64_t value;

	if (!space || space == line)
		return;
	*space = '\0';
	for (const char *c = line; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *c))
			return;
	errno = 0;
	value = strtoll(space + 1, &end, 10);
	if (end == space + 1 || *end || errno != 0)
		return;
	if (strcmp(line, time_name) == 0)
		values->time_ns = value;
	else
		memory_values_add(values, line, value);
}

void memory_values_parse(struct memory_values *values, const char *text, size_t n_bytes)
{
	char line[MEMORY_MAX_NAME + 32];

	for (size_t at = 0; at < n_bytes;) {
		const char *end = memchr(text + at, '\n', n_bytes - at);
		size_t n = end ? (size_t)(end - text) - at : n_bytes - at;

		if (n < sizeof line && !memchr(text + at, '\0', n)) {
			memcpy(line, text + at, n);
			line[n] = '\0';
			take_line(values, line);
		}
		at += n + 1;
	}
}

/* ---- Folder ---- */

static int make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int find_folder(char **ret)
{
	CLEANUP(freep) char *path = NULL;
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool has_cache = cache && cache[0] == '/';
	int r;

	if (!has_cache && (!home || home[0] != '/'))
		return -ENOENT;
	if (asprintf(&path, "%s%s/probing/memory", has_cache ? cache : home, has_cache ? "" : "/.cache") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = make_folders(path);
	if (r >= 0)
		*ret = TAKE(path);
	return r;
}

/* Remove files of ended processes, such as "4242-1234567". */
static void remove_ended(const char *folder)
{
	DIR *all = opendir(folder);
	const struct dirent *entry;
	struct stat st;

	while (all && (entry = readdir(all))) {
		char path[32];
		size_t n = strspn(entry->d_name, "0123456789");

		if (n == 0 || n > 10 || entry->d_name[n] != '-')
			continue;
		snprintf(path, sizeof path, "/proc/%.*s", (int)n, entry->d_name);
		if (stat(path, &st) < 0 && errno == ENOENT)
			(void)unlinkat(dirfd(all), entry->d_name, 0);
	}
	if (all)
		closedir(all);
}

static int write_values(const char *path, const struct memory_values *values)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	char *text = NULL;
	size_t n_bytes;
	FILE *out;
	int r;

	out = open_memstream(&text, &n_bytes);
	if (!out)
		return -ENOMEM;
	fprintf(out, "%s %" PRId64 "\n", time_name, values->time_ns);
	for (size_t i = 0; i < values->n; i++)
		fprintf(out, "%s %" PRId64 "\n", values->items[i].name, values->items[i].value);
	r = fclose(out) == 0 ? new_file_open(&file, path, NEW_FILE_MODE) : -ENOMEM;
	if (r >= 0 && write(file.fd, text, n_bytes) != (ssize_t)n_bytes)
		r = -EIO;
	free(text);
	return r < 0 ? r : new_file_finish(&file);
}

int memory_history_exchange(pid_t pid, uint64_t started, const struct memory_values *now, struct memory_values *ret)
{
	CLEANUP(freep) char *folder = NULL, *path = NULL, *text = NULL;
	size_t n_bytes = 0;
	int r;

	*ret = (struct memory_values){ 0 };
	r = find_folder(&folder);
	if (r < 0)
		return r;
	if (asprintf(&path, "%s/%d-%" PRIu64, folder, (int)pid, started) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (read_file(path, MAX_FILE_BYTES, &text, &n_bytes) >= 0)
		memory_values_parse(ret, text, n_bytes);
	else
		remove_ended(folder);
	return write_values(path, now);
}
