/* SPDX-License-Identifier: MIT */
/* beside.c - see beside.h. */
#include "src/store/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

const char *const beside_suffixes[] = { BESIDE_JOURNAL, BESIDE_WAL, BESIDE_SHM, NULL };

const char *beside_suffix(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; beside_suffixes[i]; i++) {
		size_t n_suffix = strlen(beside_suffixes[i]);

		if (n > n_suffix && strcmp(name + n - n_suffix, beside_suffixes[i]) == 0)
			return beside_suffixes[i];
	}
	return NULL;
}

bool beside_belongs(const struct stat *database, const struct stat *file)
{
	return S_ISREG(file->st_mode) &&
	       (file->st_uid == database->st_uid || file->st_uid == geteuid() || file->st_uid == 0);
}

bool beside_name_belongs(const char *name)
{
	CLEANUP(freep) char *path = NULL;
	const char *suffix = beside_suffix(name);
	struct stat database, file;

	if (!suffix)
		return false;
	path = strndup(name, strlen(name) - strlen(suffix));
	return path && lstat(path, &database) == 0 && lstat(name, &file) == 0 && beside_belongs(&database, &file);
}

int beside_foreign(const char *path, char **ret)
{
	CLEANUP(freep) char *target = realpath(path, NULL);

	if (!target)
		return -errno;
	for (size_t i = 0; beside_suffixes[i]; i++) {
		CLEANUP(freep) char *name = NULL;
		struct stat file;

		if (asprintf(&name, "%s%s", target, beside_suffixes[i]) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		if (lstat(name, &file) < 0 || beside_name_belongs(name))
			continue;
		*ret = TAKE(name);
		return 0;
	}
	*ret = NULL;
	return 0;
}
