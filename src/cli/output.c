/* SPDX-License-Identifier: MIT */
/* output.c - a file that appears only when it is complete (base/new_file.h), written through stdio.
 *
 * Writers get a custom FILE, so that the reason of a failed write
 * is still known after they have given up: stdio only records the failure.
 *
 * Large output is handed to the disk early. The kernel would otherwise buffer gigabytes, and spend
 * several times the CPU time on them when the end waits for the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/pager.h"

enum {
	BUFFER_BYTES = 128 << 10, /* size of a write: larger ones are not cheaper, and exceed the processor's cache */
	SEND_BYTES = 32 << 20,    /* start writing to disk in this size */
};

/* Start writing new data to disk; fsync(2) at the end reports errors. */
static void send_to_disk(struct output *output)
{
	if (!output->new.temporary || output->n_written - output->n_sent < SEND_BYTES)
		return;
	sync_file_range(output->fd, (off_t)output->n_sent, (off_t)(output->n_written - output->n_sent),
			SYNC_FILE_RANGE_WRITE);
	output->n_sent = output->n_written;
}

static ssize_t write_all(void *cookie, const char *bytes, size_t n)
{
	struct output *output = cookie;

	if (output->fd == STDOUT_FILENO)
		pager_start();
	for (size_t done = 0; done < n;) {
		ssize_t written = write(output->fd, bytes + done, n - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			if (output->error == 0)
				output->error = -errno;
			return 0; /* fopencookie(3) requires 0 for errors */
		}
		done += (size_t)written;
	}
	output->n_written += n;
	send_to_disk(output);
	return (ssize_t)n;
}

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
	output->file = NULL;
	output->fd = -1;
}

int output_open(struct output *output, const char *path, mode_t mode)
{
	int r;

	*output = (struct output){ .path = path, .fd = -1 };
	if (strcmp(path, "-") == 0) {
		r = start(output, STDOUT_FILENO);
	} else {
		r = new_file_open(&output->new, path, mode);
		if (r >= 0)
			r = start(output, output->new.fd);
	}
	if (r < 0)
		output_abandon(output);
	return r;
}

int output_finish(struct output *output)
{
	int r = 0;

	if (fflush(output->file) != 0 || ferror(output->file))
		r = output->error < 0 ? output->error : -EIO;
	if (r < 0) {
		output_abandon(output);
		return r;
	}
	stop(output);
	return new_file_finish(&output->new);
}

void output_abandon(struct output *output)
{
	stop(output);
	new_file_abandon(&output->new);
}

int output_write(const char *path, mode_t mode, output_put *put, output_fail *fail, const void *data)
{
	CLEANUP(output_abandon) struct output output;
	int r;

	r = output_open(&output, path, mode);
	if (r == -EEXIST)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s is a recording, or another SQLite file, and stays: give another name with -o",
				path);
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
