/* history.c - the file behind the prompt's memory.
 *
 * What people ask may name their files and functions, so the file and the
 * folder made for it are for the user alone. The file is replaced as a whole:
 * of two prompts the one that ends last is remembered.
 */
#include "src/sql/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

enum { MAX_KEPT = 1000 };

/* Make the folders that a file's path needs. */
static int make_folders(const char *path)
{
	CLEANUP(freep) char *folder = strdup(path);

	if (!folder)
		return -ENOMEM;
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

int history_path(char **ret)
{
	CLEANUP(freep) char *path = NULL;
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n, r;

	/* The standard asks to ignore a relative folder. */
	if (state && state[0] == '/')
		n = asprintf(&path, "%s/probing/sql_history", state);
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/.local/state/probing/sql_history", home);
	else
		return -ENOENT;
	if (n < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = make_folders(path);
	if (r < 0)
		return r;
	*ret = TAKE(path);
	return 0;
}

int history_load(History *kept, const char *path)
{
	HistEvent event;

	if (access(path, R_OK) < 0)
		return errno == ENOENT ? 0 : -errno;
	errno = 0;
	if (history(kept, &event, H_LOAD, path) < 0)
		return errno > 0 ? -errno : -EBADMSG;
	return 0;
}

int history_save(History *kept, const char *path)
{
	HistEvent event;
	FILE *file;
	int fd, r = 0;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (!file) {
		r = -errno;
		close(fd);
		return r;
	}
	errno = 0;
	if (fchmod(fd, 0600) < 0 || history(kept, &event, H_NSAVE_FP, (size_t)MAX_KEPT, file) < 0)
		r = errno > 0 ? -errno : -EIO;
	if (fclose(file) != 0 && r == 0)
		r = -errno;
	return r;
}
