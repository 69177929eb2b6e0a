/* output.c - a file that appears only when it is whole.
 *
 * Where the file system can, the new file has no name until it is whole, so
 * that not even kill -9 leaves anything behind; elsewhere it has a hidden name
 * beside its place. The last step is a rename in both cases: who reads the
 * path sees the old file or the new one, never a part.
 *
 * Writers see a FILE of our own making, so that the reason of a failed write
 * is still known when they have given up: stdio only keeps that there was one.
 *
 * What is large goes to the disk while it is made. The kernel would otherwise gather gigabytes, and spend
 * several times the processor on them when the end waits for the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"

enum {
	BUFFER_BYTES = 128 << 10, /* of a write: more costs as much, and leaves the processor's cache */
	SEND_BYTES = 32 << 20, /* to the disk at a time */
};

/* Follow symbolic links, so that they stay; what does not exist is its own target. */
static int find_target(const char *path, char **ret)
{
	char *target = realpath(path, NULL);

	if (!target && errno == ENOENT)
		target = strdup(path);
	if (!target)
		return -errno;
	*ret = target;
	return 0;
}

/* "FOLDER/.NAME.PID", in the target's folder. */
static int name_temporary(const char *target, char **ret)
{
	const char *slash = strrchr(target, '/');
	int folder = slash ? (int)(slash + 1 - target) : 0;
	char *name;

	if (target[folder] == '\0')
		return -EISDIR;
	if (asprintf(&name, "%.*s.%s.%d", folder, target, target + folder, (int)getpid()) < 0)
		return -ENOMEM;
	*ret = name;
	return 0;
}

static int open_nameless(const char *target)
{
	const char *slash = strrchr(target, '/');
	CLEANUP(freep) char *folder = NULL;
	int fd;

	folder = slash ? strndup(target, (size_t)(slash + 1 - target)) : strdup(".");
	if (!folder)
		return -ENOMEM;
	fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

static int open_temporary(const char *target, const char *temporary)
{
	int fd = open_nameless(target);

	if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -EINVAL)
		return fd;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

/* The new file may be read by whom the old one could be. */
static int copy_permissions(const struct stat *old, int fd)
{
	if (geteuid() == 0 && fchown(fd, old->st_uid, old->st_gid) < 0)
		return -errno;
	return fchmod(fd, old->st_mode & 0777) < 0 ? -errno : 0;
}

/* Begins to bring to the disk what came since it last did; what fails there, fsync(2) tells in the end. */
static void send_to_disk(struct output *output)
{
	if (!output->temporary || output->n_written - output->n_sent < SEND_BYTES)
		return;
	sync_file_range(output->fd, (off_t)output->n_sent, (off_t)(output->n_written - output->n_sent),
			SYNC_FILE_RANGE_WRITE);
	output->n_sent = output->n_written;
}

static ssize_t write_all(void *cookie, const char *bytes, size_t n)
{
	struct output *output = cookie;

	for (size_t done = 0; done < n;) {
		ssize_t written = write(output->fd, bytes + done, n - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			if (output->error == 0)
				output->error = -errno;
			return 0; /* what fopencookie(3) wants for an error */
		}
		done += (size_t)written;
	}
	output->n_written += n;
	send_to_disk(output);
	return (ssize_t)n;
}

/* Takes the descriptor. */
static int start(struct output *output, int fd)
{
	output->fd = fd;
	output->file = fopencookie(output, "w", (cookie_io_functions_t){ .write = write_all });
	if (!output->file)
		return -ENOMEM;
	output->buffer = malloc(BUFFER_BYTES);
	if (!output->buffer)
		return -ENOMEM;
	setvbuf(output->file, output->buffer, isatty(fd) ? _IOLBF : _IOFBF, BUFFER_BYTES);
	return 0;
}

static void stop(struct output *output)
{
	if (output->file)
		fclose(output->file);
	free(TAKE(output->buffer));
	if (output->fd > STDOUT_FILENO)
		close(output->fd);
	free(TAKE(output->temporary));
	free(TAKE(output->target));
	output->file = NULL;
	output->fd = -1;
}

static int open_replacement(struct output *output, const struct stat *old)
{
	int fd, r;

	r = find_target(output->path, &output->target);
	if (r == 0)
		r = name_temporary(output->target, &output->temporary);
	if (r < 0)
		return r;
	fd = open_temporary(output->target, output->temporary);
	if (fd < 0)
		return fd;
	r = start(output, fd);
	return r == 0 && old ? copy_permissions(old, fd) : r;
}

static int open_directly(struct output *output)
{
	int fd = open(output->path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : start(output, fd);
}

/* A recording, or what SQLite keeps elsewhere: it may be the only one, and what is written here can be made again. */
static bool is_database(const char *path)
{
	static const char magic[] = "SQLite format 3";
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char head[sizeof magic];

	return fd >= 0 && read(fd, head, sizeof head) == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

static int open_by_kind(struct output *output)
{
	struct stat old;

	if (strcmp(output->path, "-") == 0)
		return start(output, STDOUT_FILENO);
	if (stat(output->path, &old) < 0)
		return errno == ENOENT ? open_replacement(output, NULL) : -errno;
	if (!S_ISREG(old.st_mode))
		return open_directly(output);
	/* A rename would replace what may not be written. */
	if (access(output->path, W_OK) < 0)
		return -errno;
	if (is_database(output->path))
		return -EEXIST;
	return open_replacement(output, &old);
}

int output_open(struct output *output, const char *path)
{
	int r;

	*output = (struct output){ .path = path, .fd = -1 };
	r = open_by_kind(output);
	if (r < 0)
		output_abandon(output);
	return r;
}

/* Give the whole file its name. */
static int appear(const struct output *output)
{
	char link[64];
	struct stat new;

	if (fsync(output->fd) < 0 || fstat(output->fd, &new) < 0)
		return -errno;
	if (new.st_nlink == 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", output->fd);
		if (linkat(AT_FDCWD, link, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) < 0)
			return -errno;
	}
	return rename(output->temporary, output->target) < 0 ? -errno : 0;
}

int output_finish(struct output *output)
{
	int r = 0;

	if (fflush(output->file) != 0 || ferror(output->file))
		r = output->error < 0 ? output->error : -EIO;
	if (r == 0 && output->temporary)
		r = appear(output);
	if (r < 0)
		output_abandon(output);
	else
		stop(output);
	return r;
}

void output_abandon(struct output *output)
{
	/* There is nothing to remove where the file has no name yet. */
	if (output->fd >= 0 && output->temporary)
		unlink(output->temporary);
	stop(output);
}

int output_write(const char *path, output_put *put, output_fail *fail, const void *data)
{
	CLEANUP(output_abandon) struct output output;
	int r;

	r = output_open(&output, path);
	if (r == -EEXIST)
		return cli_fail(EXIT_NO_OUTPUT, "%s is a recording, or another SQLite file, and stays: give another name with -o", path);
	if (r < 0)
		return cli_fail_open(path, r);
	r = put(data, output.file);
	if (output.error < 0)
		return cli_fail_write(path, output.error);
	if (r < 0)
		return fail(data, r);
	r = output_finish(&output);
	return r < 0 ? cli_fail_write(path, r) : EXIT_OK;
}
