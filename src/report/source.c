/* SPDX-License-Identifier: MIT */
/* source.c - see source.h. Names come from a recording: only regular files of a bounded size are opened. */
#include "src/report/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

enum { MAX_SOURCE_BYTES = 64 << 20 };

void source_done(struct source *source)
{
	free(source->path);
	free(source->text);
	free(source->lines);
	memset(source, 0, sizeof *source);
}

/* A line ends at a newline; a carriage return before it is part of the end. */
static int split(struct source *source, size_t n_bytes)
{
	size_t allocated = 0;

	for (size_t at = 0; at < n_bytes;) {
		size_t end = at;

		while (end < n_bytes && source->text[end] != '\n')
			end++;
		if (grow(&source->lines, source->n_lines, &allocated, sizeof *source->lines) < 0)
			return -ENOMEM;
		source->lines[source->n_lines++] = source->text + at;
		source->text[end] = '\0';
		if (end > at && source->text[end - 1] == '\r')
			source->text[end - 1] = '\0';
		at = end + 1;
	}
	return 0;
}

static int read_source(const char *path, struct source *ret)
{
	CLEANUP(source_done) struct source source = {};
	struct stat about;
	size_t n_bytes;
	int r;

	if (stat(path, &about) < 0)
		return -errno;
	if (!S_ISREG(about.st_mode))
		return -ENOENT;
	if (about.st_size > MAX_SOURCE_BYTES)
		return -EFBIG;
	r = read_file(path, MAX_SOURCE_BYTES, &source.text, &n_bytes);
	if (r < 0)
		return r;
	source.changed_ns = (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec;
	source.path = strdup(path);
	if (!source.path)
		return -ENOMEM;
	r = split(&source, n_bytes);
	if (r < 0)
		return r;
	*ret = source;
	memset(&source, 0, sizeof source);
	return 0;
}

/* Whether to try other folders. */
static bool is_absent(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ENAMETOOLONG;
}

static int read_joined(const char *folder, size_t n_folder, const char *rest, struct source *ret)
{
	CLEANUP(freep) char *path = NULL;

	if (asprintf(&path, "%.*s%s%s", (int)n_folder, folder, rest[0] == '/' ? "" : "/", rest) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return read_source(path, ret);
}

/* @root: "FROM=TO"; FROM must end at a path component. */
static int read_mapped(const char *root, const char *to, const char *file, struct source *ret)
{
	size_t n_from = (size_t)(to - 1 - root);

	while (n_from > 0 && root[n_from - 1] == '/')
		n_from--;
	if (strncmp(file, root, n_from) != 0 || (file[n_from] != '/' && n_from > 0))
		return -ENOENT;
	return read_joined(to, strlen(to), file + n_from, ret);
}

static int read_below(const char *root, const char *file, struct source *ret)
{
	const char *part = file + strspn(file, "/");

	while (*part) {
		int r = strncmp(part, "../", 3) == 0 || strstr(part, "/../")
				? -ENOENT
				: read_joined(root, strlen(root), part, ret);

		if (!is_absent(r))
			return r;
		part += strcspn(part, "/");
		part += strspn(part, "/");
	}
	return -ENOENT;
}

int source_find(const struct glob_list *roots, const char *file, struct source *ret)
{
	for (size_t i = 0; i < roots->n; i++) {
		const char *root = roots->words[i], *equals = strchr(root, '=');
		int r = equals ? read_mapped(root, equals + 1, file, ret) : read_below(root, file, ret);

		if (!is_absent(r))
			return r;
	}
	return read_source(file, ret);
}
