/* control.c - see control.h.
 *
 * Both FIFOs are held open for reading and writing: then neither is at its end when a
 * writer or reader goes away, and nothing here ever waits for one. An answer lies in its FIFO until it
 * is read.
 */
#include "src/cli/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"

static int open_fifo(const char *path, bool *ret_made)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;
	bool made;

	made = mkfifo(path, 0600) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	/* Without O_NONBLOCK a device may keep us waiting. */
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISFIFO(st.st_mode))
		return -ENXIO;
	*ret_made = made;
	return TAKE_FD(fd);
}

static int fail(const char *path, int error)
{
	if (error == -ENXIO || error == -EISDIR)
		return cli_fail(EXIT_NO_OUTPUT, "%s is no FIFO: give --control another name, or make one with mkfifo", path);
	return cli_fail(EXIT_NO_OUTPUT, "the FIFO %s cannot be opened: %s", path, strerror(-error));
}

static int open_both(struct control *control)
{
	control->fd = open_fifo(control->path, &control->made);
	if (control->fd < 0)
		return fail(control->path, control->fd);
	if (!control->reply_path)
		return EXIT_OK;
	control->reply_fd = open_fifo(control->reply_path, &control->made_reply);
	return control->reply_fd < 0 ? fail(control->reply_path, control->reply_fd) : EXIT_OK;
}

int control_open(const char *paths, struct control *ret)
{
	const char *comma = strchr(paths, ',');
	int status;

	*ret = (struct control){ .fd = 0 };
	ret->path = comma ? strndup(paths, (size_t)(comma - paths)) : strdup(paths);
	ret->reply_path = comma ? strdup(comma + 1) : NULL;
	if (!ret->path || (comma && !ret->reply_path))
		status = cli_fail(EXIT_FAILED, "not enough memory");
	else if (ret->reply_path && strcmp(ret->path, ret->reply_path) == 0)
		status = cli_fail(EXIT_USAGE, "commands and answers need a FIFO each: --control CONTROL,REPLY");
	else
		status = open_both(ret);
	if (status != EXIT_OK)
		control_close(ret);
	return status;
}

void control_close(struct control *control)
{
	if (control->made)
		unlink(control->path);
	if (control->made_reply)
		unlink(control->reply_path);
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

	/* Byte for byte, for commands come seldom, and what follows stays for the next call. */
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
		return; /* full: whoever does not read does not want to know */
}
