/* SPDX-License-Identifier: MIT */
/* folder.c - where rings are, who may have made that, and what is removed when.
 *
 * Another user may plant a link or a folder at a well-known name in a folder that everybody may write to. So each folder
 * is opened without following a link, and its owner and permissions are read from the descriptor, by which all that
 * follows is done.
 */
#include "src/ring/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	NAME_BYTES = 64,
	MAX_ENTRIES = 4096, /* of a folder that are looked at */
	FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	OPENAT2 = 437, /* on all machines */
};

static const char mark[] = "ended"; /* in a folder whose process was found to have ended; its time counts */

/* ---- Start times ---- */

uint64_t ring_start_time(pid_t pid)
{
	char path[32], text[1024], *at;
	unsigned long long start = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may contain any byte; fields 3 to 21 follow */
	for (int i = 3; at && i <= 22; i++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at, NULL, 10);
	return start;
}

/* ---- Opening ---- */

static int check_owner(int fd, uid_t uid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == uid && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

/* A folder of ours within another. Closes nothing. */
static int open_checked(int parent, const char *name, uid_t uid)
{
	int fd = openat(parent, name, FOLDER_FLAGS), r;

	if (fd < 0)
		return errno == ENOTDIR ? -ELOOP : -errno; /* with O_DIRECTORY a link is ENOTDIR, too */
	r = check_owner(fd, uid);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

static int make_checked(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_checked(parent, name, geteuid());
}

static void user_folder(uid_t uid, char to[NAME_BYTES])
{
	snprintf(to, NAME_BYTES, "probing-%u", (unsigned)uid);
}

static void process_folder(pid_t pid, uint64_t start, char to[NAME_BYTES])
{
	snprintf(to, NAME_BYTES, "%d.%llu", (int)pid, (unsigned long long)start);
}

/* PID.STARTTIME, and nothing else. */
static bool parse_folder(const char *name, pid_t *ret_pid, uint64_t *ret_start)
{
	char again[NAME_BYTES];
	unsigned long long start;
	int pid;

	if (sscanf(name, "%d.%llu", &pid, &start) != 2 || pid <= 0)
		return false;
	process_folder(pid, start, again);
	if (strcmp(again, name) != 0)
		return false;
	*ret_pid = pid;
	*ret_start = start;
	return true;
}

/* ---- Retention ---- */

struct ended {
	char name[NAME_BYTES];
	time_t since;
	uint64_t n_bytes;
};

static DIR *open_list(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;

	if (!list && fd >= 0)
		close(fd);
	return list;
}

static void remove_folder(int user, const char *name)
{
	int fd = openat(user, name, FOLDER_FLAGS);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(list)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)unlinkat(dirfd(list), entry->d_name, 0);
	closedir(list);
	(void)unlinkat(user, name, AT_REMOVEDIR);
}

/* Since when it is known that the process has ended; marks a folder that is looked at for the first time. */
static time_t ended_since(int folder)
{
	int fd = openat(folder, mark, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	time_t since = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0)
		since = st.st_mtime;
	close(fd);
	return since;
}

static uint64_t bytes_of(int folder)
{
	DIR *list = open_list(folder);
	struct dirent *entry;
	uint64_t n_bytes = 0;
	struct stat st;

	while (list && (entry = readdir(list)) != NULL)
		if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			n_bytes += (uint64_t)st.st_blocks * 512;
	if (list)
		closedir(list);
	return n_bytes;
}

static bool look_at(int user, const char *name, struct ended *ret)
{
	uint64_t start;
	pid_t pid;
	int fd;

	if (!parse_folder(name, &pid, &start) || ring_start_time(pid) == start)
		return false;
	fd = openat(user, name, FOLDER_FLAGS);
	if (fd < 0)
		return false;
	snprintf(ret->name, sizeof ret->name, "%.63s", name);
	ret->since = ended_since(fd);
	ret->n_bytes = bytes_of(fd);
	close(fd);
	return true;
}

static int latest_first(const void *a, const void *b)
{
	const struct ended *one = a, *other = b;

	return (one->since < other->since) - (one->since > other->since);
}

static void apply(int user, const struct ring_retention *retention, struct ended *ended, size_t n)
{
	time_t now = time(NULL);
	uint64_t n_bytes = 0;

	qsort(ended, n, sizeof *ended, latest_first);
	for (size_t i = 0; i < n; i++) {
		n_bytes += ended[i].n_bytes;
		if (difftime(now, ended[i].since) > retention->days * 86400 || n_bytes > retention->max_bytes)
			remove_folder(user, ended[i].name);
	}
}

static void remove_old(int user, const struct ring_retention *retention)
{
	struct ended *ended = calloc(MAX_ENTRIES, sizeof *ended);
	DIR *list = ended ? open_list(user) : NULL;
	struct dirent *entry;
	size_t n = 0;

	while (list && n < MAX_ENTRIES && (entry = readdir(list)) != NULL)
		n += look_at(user, entry->d_name, &ended[n]);
	if (list)
		closedir(list);
	if (ended)
		apply(user, retention, ended, n);
	free(ended);
}

/* ---- For the writer ---- */

int ring_folder_make(const char *parent, const struct ring_retention *retention, int *ret)
{
	char name[NAME_BYTES];
	int fd, user, folder;

	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	user_folder(geteuid(), name);
	user = make_checked(fd, name);
	close(fd);
	if (user < 0)
		return user;
	if (retention)
		remove_old(user, retention);
	process_folder(getpid(), ring_start_time(getpid()), name);
	folder = make_checked(user, name);
	close(user);
	if (folder < 0)
		return folder;
	*ret = folder;
	return 0;
}

/* ---- For readers ---- */

/* A link in a container's file system stays within it (Linux 5.6). */
static int open_parent(int root, const char *parent)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = 0x10 /* RESOLVE_IN_ROOT */ };
	long fd;

	if (root < 0)
		fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else
		fd = syscall(OPENAT2, root, parent, &how, sizeof how);
	return fd < 0 ? -errno : (int)fd;
}

/* Of the latest process of that PID. */
static int find_latest(int user, pid_t pid, char to[NAME_BYTES])
{
	DIR *list = open_list(user);
	uint64_t latest = 0, start;
	struct dirent *entry;
	bool is_found = false;
	pid_t of;

	if (!list)
		return -errno;
	while ((entry = readdir(list)) != NULL)
		if (parse_folder(entry->d_name, &of, &start) && of == pid && (!is_found || start > latest)) {
			is_found = true;
			latest = start;
		}
	closedir(list);
	process_folder(pid, latest, to);
	return is_found ? 0 : -ENOENT;
}

int ring_folder_find(int root, const char *parent, uid_t uid, pid_t pid, uint64_t start, int *ret)
{
	char name[NAME_BYTES];
	int fd, user, folder, r = 0;

	fd = open_parent(root, parent);
	if (fd < 0)
		return fd;
	user_folder(uid, name);
	user = open_checked(fd, name, uid);
	close(fd);
	if (user < 0)
		return user;
	if (start != 0)
		process_folder(pid, start, name);
	else
		r = find_latest(user, pid, name);
	folder = r < 0 ? r : open_checked(user, name, uid);
	close(user);
	if (folder < 0)
		return folder;
	*ret = folder;
	return 0;
}

/* "12.ring"; not one that is being made. */
static bool is_ring(const char *name)
{
	size_t n = strspn(name, "0123456789");

	return n > 0 && strcmp(name + n, ".ring") == 0;
}

static int visit_file(int folder, const char *name, int (*visit)(void *data, const char *file, int fd), void *data)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), r = 0;
	struct stat st, folder_st;

	if (fd < 0)
		return 0; /* a link, or removed meanwhile */
	if (fstat(fd, &st) == 0 && fstat(folder, &folder_st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == folder_st.st_uid)
		r = visit(data, name, fd);
	close(fd);
	return r;
}

int ring_folder_each(int folder, int (*visit)(void *data, const char *file, int fd), void *data)
{
	DIR *list = open_list(folder);
	struct dirent *entry;
	int r = 0;

	if (!list)
		return -errno;
	for (int i = 0; i < MAX_ENTRIES && r == 0 && (entry = readdir(list)) != NULL; i++)
		if (is_ring(entry->d_name))
			r = visit_file(folder, entry->d_name, visit, data);
	closedir(list);
	return r;
}

void ring_folder_explain(int error, const char *parent, uid_t uid, char *to, size_t n_bytes)
{
	char name[NAME_BYTES];

	user_folder(uid, name);
	if (error == -ELOOP)
		snprintf(to, n_bytes, "%s/%s is not a folder, or is a link: probing does not use it", parent, name);
	else if (error == -EPERM)
		snprintf(to, n_bytes, "%s/%s belongs to another user, or is open to others: probing does not use it",
			 parent, name);
	else
		snprintf(to, n_bytes, "%s/%s: %s", parent, name, strerror(-error));
}
