/* SPDX-License-Identifier: MIT */
/* import_list.c - see import_list.h. One file at a time is in memory, and of other formats in a folder the beginning. */
#include "src/cli/import_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

enum { LOOKED_AT = 1 << 16 };

static int add_path(struct import_list *list, char *owned)
{
	int r = owned ? grow(&list->paths, list->n, &list->allocated, sizeof *list->paths) : -ENOMEM;

	if (r < 0)
		free(owned);
	else
		list->paths[list->n++] = owned;
	return r;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int add_folder(struct import_list *list, const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_visible, versionsort), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		char *name = NULL;
		struct stat about;

		if (r >= 0 && asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
			r = -ENOMEM;
		if (r >= 0 && stat(name, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
			r = add_path(list, name);
		else if (r >= 0)
			free(name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return r;
}

int import_list_add(struct import_list *list, const char *path)
{
	struct stat about;

	if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
		list->is_folder = true;
		return add_folder(list, path);
	}
	return add_path(list, strdup(path));
}

void import_list_done(struct import_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	input_done(&list->input);
}

static int read_next(struct import_list *list)
{
	if (list->is_read) {
		list->is_read = false;
		return 0;
	}
	input_done(&list->input);
	list->input = (struct input){ 0 };
	return input_read(list->current, &list->input);
}

/* A file of a folder: 1: of the format; 0: of another one, such as a checkpoint of many gigabytes. */
static int is_wanted(const struct import_list *list)
{
	CLEANUP(closep) int fd = open(list->current, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP(freep) uint8_t *bytes = malloc(LOOKED_AT);
	size_t n_bytes;
	int r;

	if (fd < 0)
		return -errno;
	if (!bytes)
		return -ENOMEM;
	r = pread_all(fd, bytes, LOOKED_AT, 0, &n_bytes);
	return r < 0 ? r : list->importer->recognise(bytes, n_bytes);
}

int import_list_next(void *data, struct import_input *ret)
{
	struct import_list *list = data;
	int r;

	while (list->next < list->n) {
		list->current = list->paths[list->next++];
		r = list->is_folder ? is_wanted(list) : 1;
		if (r == 0) {
			list->n_other++;
			continue;
		}
		if (r > 0)
			r = read_next(list);
		if (r < 0)
			return r;
		*ret = (struct import_input){ .name = list->current,
					      .bytes = list->input.bytes,
					      .n_bytes = list->input.n_bytes,
					      .modified_ns = list->input.modified_ns,
					      .keep_going = list->keep_going,
					      .data = list->data };
		return 1;
	}
	return 0;
}
