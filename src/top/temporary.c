/* temporary.c - see temporary.h.
 *
 * Writer and reader open the database, its log and the log's index before their
 * names go; SQLite opens none of them a second time.
 */
#include "src/top/temporary.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"

static void remove_names(const char *folder)
{
	static const char *const files[] = { "top.db", "top.db-wal", "top.db-shm", "top.db-journal" };
	char path[PATH_MAX];

	for (size_t i = 0; i < N_ELEMENTS(files); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

static int store_in(const char *parent, struct store **ret_store, sqlite3 **ret_reader)
{
	CLEANUP(store_closep) struct store *store = NULL;
	char folder[PATH_MAX - 32], path[PATH_MAX];
	sqlite3 *reader = NULL;
	int r;

	if (snprintf(folder, sizeof folder, "%s/probing-top.XXXXXX", parent) >= (int)sizeof folder)
		return -ENAMETOOLONG;
	if (!mkdtemp(folder))
		return -errno;
	snprintf(path, sizeof path, "%s/top.db", folder);
	r = store_create(path, NULL, &store);
	if (r >= 0)
		r = store_open_reader(path, &reader);
	remove_names(folder);
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
