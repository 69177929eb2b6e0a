/* SPDX-License-Identifier: MIT */
/* name_files.c - see name_files.h. */
#include "src/pipeline/name_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define DEBUG_FOLDER "/usr/lib/debug/"

int name_file_resolve(const char *path, char *to)
{
	size_t n = 0;

	if (path[0] != '/')
		return -EINVAL;
	while (*path) {
		size_t n_part;

		path += strspn(path, "/");
		n_part = strcspn(path, "/");
		if (n_part == 2 && path[0] == '.' && path[1] == '.') {
			if (n == 0)
				return -EINVAL;
			while (to[--n] != '/')
				;
		} else if (n_part > 0 && !(n_part == 1 && path[0] == '.')) {
			if (n + n_part + 2 > NAME_FILE_MAX_PATH)
				return -ENAMETOOLONG;
			to[n++] = '/';
			memcpy(to + n, path, n_part);
			n += n_part;
		}
		path += n_part;
	}
	to[n] = '\0';
	return n > 0 ? 0 : -EINVAL;
}

static bool is_below(const char *path, const char *folder, size_t n_folder)
{
	return strncmp(path, folder, n_folder) == 0 && strlen(path) > n_folder;
}

/* Compare with the folder's slash: "/usr/libx" is not below "/usr/lib". */
static bool is_beside(const char *path, const char *module_path)
{
	const char *slash = strrchr(module_path, '/');

	return slash && slash != module_path && is_below(path, module_path, (size_t)(slash - module_path) + 1);
}

static bool is_expected(const char *path, const char *module_path, const char *root)
{
	size_t n_root = strlen(root);

	return is_below(path, DEBUG_FOLDER, strlen(DEBUG_FOLDER)) || is_beside(path, module_path) ||
	       (n_root > 0 && strncmp(path, root, n_root) == 0 && path[n_root] == '/' &&
		is_beside(path + n_root, module_path));
}

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* O_PATH does not open the file: opening a pipe would block, and opening a device has effects. */
static int open_elf(const char *path, int *ret)
{
	CLEANUP(closep) int found = open(path, O_PATH | O_CLOEXEC);
	CLEANUP(closep) int fd = -1;
	struct stat st;

	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	fd = reopen_to_read(found);
	if (fd < 0)
		return fd;
	if (!is_elf(fd))
		return -ENOEXEC;
	*ret = TAKE_FD(fd);
	return 0;
}

int name_file_open(const char *path, const char *module_path, const char *root, int *ret)
{
	char resolved[NAME_FILE_MAX_PATH];
	int r;

	r = name_file_resolve(path, resolved);
	if (r < 0)
		return r;
	return is_expected(resolved, module_path, root) ? open_elf(resolved, ret) : -EACCES;
}
