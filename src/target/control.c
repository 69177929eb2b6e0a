/* SPDX-License-Identifier: MIT */
/* control.c - see target.h.
 *
 * Both FIFOs are open for reading and writing: then neither is at its end when a
 * writer or reader closes it, and no call here ever blocks. An answer stays in its FIFO until it
 * is read.
 */
#include "src/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

/* Only the user may write to the FIFO, because it controls the recorder. */
static int check_fifo(const struct stat *st)
{
	if (!S_ISFIFO(st->st_mode))
		return -ENXIO;
	if (st->st_uid != geteuid())
		return -PLACE_EOTHERS_FILE;
	return st->st_mode & S_IWOTH ? -EPERM : 0;
}

static int open_fifo(const char *path, struct control_fifo *fifo)
{
	CLEANUP(closep) int fd = -1;
	const struct place *place = &fifo->place;
	bool made;
	int r;

	r = place_find(path, &fifo->place);
	if (r < 0)
		return r;
	if (place->exists && !S_ISFIFO(place->st.st_mode))
		return -ENXIO; /* opening a device may have side effects */
	made = !place->exists && mkfifoat(place->folder, place->name, 0600) == 0;
	if (!place->exists && !made)
		return errno == EEXIST ? -PLACE_ECHANGED : -errno;
	fd = openat(place->folder, place->name,
		    O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (place->is_magic ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return errno == ELOOP ? -PLACE_ECHANGED : -errno;
	if (fstat(fd, &fifo->st) < 0)
		return -errno;
	r = check_fifo(&fifo->st);
	if (r < 0)
		return r;
	fifo->made = made;
	return TAKE_FD(fd);
}

static void end_fifo(struct control_fifo *fifo)
{
	if (fifo->made)
		place_remove(fifo->place.folder, fifo->place.name, &fifo->st);
	if (fifo->place.name)
		place_done(&fifo->place);
}

static int open_one(struct control *control, const char *path, struct control_fifo *fifo, int *fd)
{
	int r = open_fifo(path, fifo);

	if (r < 0)
		control->failed = path;
	else
		*fd = r;
	return MIN(r, 0);
}

int control_open(const char *paths, struct control *ret)
{
	const char *comma = strchr(paths, ',');
	int r;

	*ret = (struct control){ .fd = 0 };
	ret->path = comma ? strndup(paths, (size_t)(comma - paths)) : strdup(paths);
	ret->reply_path = comma ? strdup(comma + 1) : NULL;
	if (!ret->path || (comma && !ret->reply_path))
		return -ENOMEM;
	if (ret->reply_path && strcmp(ret->path, ret->reply_path) == 0)
		return -EINVAL;
	r = open_one(ret, ret->path, &ret->command, &ret->fd);
	if (r >= 0 && ret->reply_path)
		r = open_one(ret, ret->reply_path, &ret->reply, &ret->reply_fd);
	return r;
}

void control_close(struct control *control)
{
	end_fifo(&control->command);
	end_fifo(&control->reply);
	if (control->fd > 0)
		close(control->fd);
	if (control->reply_fd > 0)
		close(control->reply_fd);
	free(control->path);
	free(control->reply_path);
	*control = (struct control){ .fd = 0 };
}

bool control_next(struct control *control, enum control_command *ret, const char **ret_line)
{
	char c;

	/* Read single bytes: commands are rare, and later ones stay for the next call. */
	while (control->fd > 0 && read(control->fd, &c, 1) == 1) {
		if (!control_line_take(&control->line, c, ret))
			continue;
		*ret_line = control->line.text;
		return true;
	}
	return false;
}

void control_reply(const struct control *control, const char *format, ...)
{
	char line[512];
	va_list arguments;
	int n;

	if (control->reply_fd <= 0)
		return;
	va_start(arguments, format);
	n = vsnprintf(line, sizeof line - 1, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	n = MIN(n, (int)sizeof line - 2);
	line[n] = '\n';
	if (write(control->reply_fd, line, (size_t)n + 1) < 0)
		return; /* the FIFO is full: the reader ignores replies */
}
