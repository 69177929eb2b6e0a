/* SPDX-License-Identifier: MIT */
/*
 * write_vfs.c - SQLite's usual VFS for writing, protected against files that other users plant.
 *
 * Others may be able to write to the folder of a recording. So
 *
 * 1. names go through a descriptor of the folder ("/proc/self/fd/FOLDER/NAME"), so that nobody can put another
 *    folder there;
 * 2. the database is the file that the recorder has locked, and a file beside it is opened without following
 *    links, and used only if it belongs to it (beside_belongs()) and has no other name. SQLite opens by calls
 *    that can be replaced (xSetSystemCall), so that is checked on the descriptor, not before;
 * 3. only files beside a database are ever removed, and no super-journal is opened: the last bytes of a journal can
 *    name one, and SQLite would remove that file after rolling back.
 *
 * Source: SQLite 3.40, os_unix.c "robust_open", pager.c "pager_delsuper".
 */
#include "src/store/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "src/store/beside.h"

static const char through_folder[] = "/proc/self/fd/";

/* Open databases, by the descriptor of their folder. */
struct admitted {
	struct admitted *next;
	int folder;
	struct stat database;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct admitted *all;

static sqlite3_vfs *usual_vfs(void)
{
	return sqlite3_vfs_find("unix");
}

int write_vfs_admit(int folder, const char *name, int fd, char **ret)
{
	CLEANUP(freep) struct admitted *admitted = calloc(1, sizeof *admitted);
	char *full;

	if (!admitted)
		return -ENOMEM;
	if (fstat(fd, &admitted->database) < 0)
		return -errno;
	if (asprintf(&full, "%s%d/%s", through_folder, folder, name) < 0)
		return -ENOMEM;
	admitted->folder = folder;
	pthread_mutex_lock(&lock);
	admitted->next = all;
	all = TAKE(admitted);
	pthread_mutex_unlock(&lock);
	*ret = full;
	return 0;
}

void write_vfs_dismiss(int folder)
{
	pthread_mutex_lock(&lock);
	for (struct admitted **at = &all; *at; at = &(*at)->next) {
		struct admitted *found = *at;

		if (found->folder != folder)
			continue;
		*at = found->next;
		free(found);
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* The folder's descriptor of "/proc/self/fd/FOLDER/NAME", if nothing follows; -1: another form. */
static int folder_of(const char *name)
{
	size_t n = strlen(through_folder);
	char *end;
	long folder;

	if (strncmp(name, through_folder, n) != 0 || name[n] < '0' || name[n] > '9')
		return -1;
	folder = strtol(name + n, &end, 10);
	return *end == '/' && end[1] && !strchr(end + 1, '/') && folder <= INT_MAX ? (int)folder : -1;
}

static bool find(int folder, struct stat *ret)
{
	bool is_there = false;

	pthread_mutex_lock(&lock);
	for (const struct admitted *at = all; at && !is_there; at = at->next)
		if ((is_there = at->folder == folder))
			*ret = at->database;
	pthread_mutex_unlock(&lock);
	return is_there;
}

/* ---- System calls of SQLite ---- */

static bool is_admitted(const char *name, int fd)
{
	struct stat database, file;

	if (!find(folder_of(name), &database) || fstat(fd, &file) < 0)
		return false;
	if (beside_suffix(name))
		return beside_belongs(&database, &file) && file.st_nlink == 1;
	return file.st_dev == database.st_dev && file.st_ino == database.st_ino;
}

/* SQLite opens every file of this process through this call. Names without a folder's descriptor are no recordings. */
static int open_carefully(const char *name, int flags, int mode)
{
	int fd;

	if (folder_of(name) < 0)
		return open(name, flags, mode);
	/* O_NONBLOCK: a planted FIFO would block the open; it has no effect on regular files. */
	fd = open(name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
	if (fd < 0 || is_admitted(name, fd))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

/* ---- VFS methods ---- */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	file->pMethods = NULL; /* not open yet */
	if (flags & SQLITE_OPEN_SUPER_JOURNAL)
		return SQLITE_CANTOPEN;
	return usual_vfs()->xOpen(vfs, name, file, flags, ret_flags);
}

static int remove_file(sqlite3_vfs *vfs, const char *name, int syncs)
{
	if (!beside_suffix(name) || folder_of(name) < 0)
		return SQLITE_IOERR_DELETE;
	return usual_vfs()->xDelete(vfs, name, syncs);
}

/* The default VFS would resolve the descriptor's link to the folder's path. */
static int full_name(sqlite3_vfs *vfs, const char *name, int n_bytes, char *to)
{
	if (folder_of(name) < 0)
		return usual_vfs()->xFullPathname(vfs, name, n_bytes, to);
	return snprintf(to, (size_t)n_bytes, "%s", name) < n_bytes ? SQLITE_OK : SQLITE_CANTOPEN;
}

int write_vfs_register(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *usual = usual_vfs();
	int code;

	if (sqlite3_vfs_find(WRITE_VFS))
		return SQLITE_OK;
	if (!usual || usual->iVersion < 3 || !usual->xSetSystemCall)
		return SQLITE_ERROR;
	code = usual->xSetSystemCall(usual, "open", (sqlite3_syscall_ptr)open_carefully);
	if (code != SQLITE_OK)
		return code;
	vfs = *usual;
	vfs.pNext = NULL;
	vfs.zName = WRITE_VFS;
	vfs.xOpen = open_file;
	vfs.xDelete = remove_file;
	vfs.xFullPathname = full_name;
	return sqlite3_vfs_register(&vfs, 0);
}
