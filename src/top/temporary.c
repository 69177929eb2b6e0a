/* SPDX-License-Identifier: MIT */
/* temporary.c - see temporary.h.
 *
 * Writer and reader open the database, its log and the log's index before their
 * names are removed; SQLite opens none of them a second time.
 */
#include "src/top/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/private_folder.h"
#include "base/util.h"

static int store_in(const char *parent, struct store **ret_store, sqlite3 **ret_reader)
{
	CLEANUP(closep) int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(private_folder_remove) struct private_folder folder = { 0 };
	CLEANUP(store_closep) struct store *store = NULL;
	CLEANUP(freep) char *path = NULL;
	sqlite3 *reader = NULL;
	int r;

	if (fd < 0)
		return -errno;
	r = private_folder_make(fd, "probing-top.", &folder);
	if (r < 0)
		return r;
	if (asprintf(&path, "%s/top.db", folder.path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = store_create(path, NULL, &store);
	if (r >= 0)
		r = store_open_reader(path, &reader);
	if (r < 0)
		return r;
	*ret_reader = reader;
	*ret_store = TAKE(store);
	return 0;
}

int temporary_store(struct store **ret_store, sqlite3 **ret_reader)
{
	const char *const parents[] = { getenv("TMPDIR"), "/tmp", "/dev/shm" };
	int r = -ENOENT;

	for (size_t i = 0; i < N_ELEMENTS(parents) && r < 0; i++)
		if (parents[i] && parents[i][0])
			r = store_in(parents[i], ret_store, ret_reader);
	return r;
}
