/* SPDX-License-Identifier: MIT */
/* place.c - see place.h.
 *
 * An attacker with write access to a folder can create a symbolic link under a name that another user is about to
 * write. That user's rights then apply to a file of the attacker's choice. The kernel can refuse such links
 * (fs.protected_symlinks), but only in sticky folders and only if configured. So this file walks paths itself.
 *
 * Invariant: a link's owner and its text are read through one descriptor of the link, so that both belong to it.
 */
#include "base/place.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"

enum { MAX_LINKS = 40 }; /* as in the kernel: path_resolution(7) */

struct link {
	int fd; /* O_PATH | O_NOFOLLOW */
	struct stat st;
	bool is_magic; /* users cannot create links in procfs, and the text of some is no path */
};

static int find_in(int start, const char *path, unsigned *n_links, struct place *ret);
static int walk_folders(int start, const char *path, size_t n_bytes, unsigned *n_links, int *ret);

/* ---- Trust ---- */

static bool is_trusted(uid_t owner)
{
	return owner == geteuid() || owner == 0;
}

static bool is_public(const struct stat *folder)
{
	return folder->st_mode & S_IWOTH;
}

/* Another user may have planted it. */
static bool is_planted(const struct stat *st, const struct stat *folder)
{
	return is_public(folder) && !is_trusted(st->st_uid) && st->st_uid != folder->st_uid;
}

static int check_link(const struct link *link, const struct stat *folder, uid_t led_to, bool to_folder)
{
	if (link->is_magic || is_trusted(link->st.st_uid))
		return 0;
	if (is_planted(&link->st, folder))
		return -PLACE_EOTHERS_LINK;
	if (link->st.st_uid == led_to)
		return 0;
	return to_folder && !is_public(folder) && link->st.st_uid == folder->st_uid ? 0 : -PLACE_EOTHERS_LINK;
}

/* ---- Links ---- */

static int open_link(int folder, const char *name, unsigned *n_links, struct link *ret)
{
	CLEANUP(closep) int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs system;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &system) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return -ENOTDIR;
	if (++*n_links > MAX_LINKS)
		return -ELOOP;
	*ret = (struct link){ .st = st, .is_magic = system.f_type == PROC_SUPER_MAGIC };
	ret->fd = TAKE_FD(fd);
	return 0;
}

static int read_text(const struct link *link, char text[PATH_MAX])
{
	ssize_t n = readlinkat(link->fd, "", text, PATH_MAX);

	if (n < 0)
		return -errno;
	if (n == 0 || n == PATH_MAX)
		return n == 0 ? -ENOENT : -ENAMETOOLONG;
	text[n] = '\0';
	return 0;
}

/* ---- Folders ---- */

static int open_magic(int folder, const char *name, int *ret)
{
	int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

static int follow_to_folder(int folder, const char *name, unsigned *n_links, int *ret)
{
	CLEANUP(closep) int fd = -1;
	char text[PATH_MAX];
	struct stat st, in;
	struct link link;
	int r;

	r = open_link(folder, name, n_links, &link);
	if (r < 0)
		return r;
	r = link.is_magic ? open_magic(folder, name, &fd) : read_text(&link, text);
	if (r >= 0 && !link.is_magic)
		r = walk_folders(folder, text, strlen(text), n_links, &fd);
	close(link.fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || fstat(folder, &in) < 0)
		return -errno;
	r = check_link(&link, &in, st.st_uid, true);
	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	return 0;
}

static int enter(int folder, const char *name, unsigned *n_links, int *ret)
{
	int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? follow_to_folder(folder, name, n_links, ret) : -errno;
	*ret = fd;
	return 0;
}

/* Open a path whose components are all folders. */
static int walk_folders(int start, const char *path, size_t n_bytes, unsigned *n_links, int *ret)
{
	CLEANUP(closep) int at = openat(start, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	if (at < 0)
		return -errno;
	for (const char *end = path + n_bytes; path < end;) {
		size_t n = strcspn(path, "/");
		int r, next;

		n = MIN(n, (size_t)(end - path));
		if (n >= sizeof name)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		path += n + 1;
		if (n == 0)
			continue;
		r = enter(at, name, n_links, &next);
		if (r < 0)
			return r;
		close(at);
		at = next;
	}
	*ret = TAKE_FD(at);
	return 0;
}

/* ---- Last component ---- */

/* A pipe has no path. No path leads to a deleted file, or to one in another root. */
static int follow_magic(const char *text, unsigned *n_links, struct place *place)
{
	CLEANUP(place_done) struct place by_path = { .folder = -1 };
	struct stat st;

	if (fstatat(place->folder, place->name, &st, 0) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && text[0] == '/' && find_in(place->folder, text, n_links, &by_path) == 0 &&
	    by_path.exists && place_is_same(&by_path.st, &st)) {
		place_done(place);
		*place = by_path;
		by_path = (struct place){ .folder = -1 };
		return 0;
	}
	place->exists = place->is_magic = true;
	place->st = st;
	return 0;
}

static int follow_ordinary(const struct link *link, const char *text, unsigned *n_links, struct place *place)
{
	CLEANUP(place_done) struct place target = { .folder = -1 };
	int r;

	r = find_in(place->folder, text, n_links, &target);
	if (r < 0)
		return r;
	r = check_link(link, &place->folder_st, target.exists ? target.st.st_uid : target.folder_st.st_uid, false);
	if (r < 0)
		return r;
	place_done(place);
	*place = target;
	target = (struct place){ .folder = -1 };
	return 0;
}

static int follow_to_file(unsigned *n_links, struct place *place)
{
	char text[PATH_MAX];
	struct link link;
	int r;

	r = open_link(place->folder, place->name, n_links, &link);
	if (r < 0)
		return r == -ENOTDIR ? -PLACE_ECHANGED : r;
	r = read_text(&link, text);
	if (r >= 0)
		r = link.is_magic ? follow_magic(text, n_links, place) : follow_ordinary(&link, text, n_links, place);
	close(link.fd);
	return r;
}

/* Resolve the name in its open folder. */
static int look(unsigned *n_links, struct place *place)
{
	if (fstat(place->folder, &place->folder_st) < 0)
		return -errno;
	if (fstatat(place->folder, place->name, &place->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(place->st.st_mode))
		return follow_to_file(n_links, place);
	place->exists = true;
	place->is_others = is_planted(&place->st, &place->folder_st);
	return 0;
}

static int find_in(int start, const char *path, unsigned *n_links, struct place *ret)
{
	CLEANUP(place_done) struct place place = { .folder = -1 };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int r;

	if (!path[0])
		return -ENOENT;
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	place.name = strdup(name);
	if (!place.name)
		return -ENOMEM;
	r = walk_folders(start, path, (size_t)(name - path), n_links, &place.folder);
	if (r >= 0)
		r = look(n_links, &place);
	if (r < 0)
		return r;
	*ret = place;
	place = (struct place){ .folder = -1 };
	return 0;
}

/* ---- Public functions ---- */

int place_find_file(const char *path, struct place *ret)
{
	unsigned n_links = 0;

	*ret = (struct place){ .folder = -1 };
	return find_in(AT_FDCWD, path, &n_links, ret);
}

int place_find(const char *path, struct place *ret)
{
	int r = place_find_file(path, ret);

	if (r < 0 || !ret->is_others)
		return r;
	place_done(ret);
	return -PLACE_EOTHERS_FILE;
}

void place_done(struct place *place)
{
	closep(&place->folder);
	free(place->name);
	*place = (struct place){ .folder = -1 };
}

int place_open(const struct place *place)
{
	/* Without O_NONBLOCK, opening a FIFO waits for a reader, and some devices for a connection. */
	CLEANUP(closep)
	int fd = openat(place->folder, place->name,
			O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (place->is_magic ? 0 : O_NOFOLLOW));
	struct stat st;

	if (fd < 0 && errno == ENXIO && S_ISFIFO(place->st.st_mode))
		return -PLACE_ENO_READER;
	if (fd < 0)
		return errno == ELOOP ? -PLACE_ECHANGED : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!place_is_same(&st, &place->st))
		return -PLACE_ECHANGED;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int place_folder_path(int folder, char **ret)
{
	char link[32], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
	n = readlink(link, path, sizeof path);
	if (n < 0)
		return -errno;
	if (n == sizeof path)
		return -ENAMETOOLONG;
	*ret = strndup(path, (size_t)n);
	return *ret ? 0 : -ENOMEM;
}

bool place_is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

bool place_is(int folder, const char *name, const struct stat *file)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && place_is_same(&st, file);
}

int place_remove(int folder, const char *name, const struct stat *made)
{
	if (!place_is(folder, name, made))
		return 0;
	return unlinkat(folder, name, S_ISDIR(made->st_mode) ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

void place_explain(int error, const char *path, char *to, size_t n_bytes)
{
	switch (-error) {
	case PLACE_EOTHERS_LINK:
		snprintf(to, n_bytes,
			 "%s leads through a symbolic link of another user, who may change its target: name the file "
			 "itself",
			 path);
		return;
	case PLACE_EOTHERS_FILE:
		snprintf(to, n_bytes,
			 "%s belongs to another user, in a folder where everybody may create files: name another "
			 "file",
			 path);
		return;
	case PLACE_ENO_READER:
		snprintf(to, n_bytes, "%s is a FIFO that nobody reads: start its reader first", path);
		return;
	case PLACE_ECHANGED:
		snprintf(to, n_bytes,
			 "%s cannot be written: another process replaces files in its folder; name a file in another "
			 "folder",
			 path);
		return;
	default:
		snprintf(to, n_bytes, "%s cannot be written: %s", path, strerror(-error));
	}
}
