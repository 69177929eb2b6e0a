/* SPDX-License-Identifier: MIT */
/* gzip.c - see gzip.h. */
#include "src/export/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/util.h"

enum { WITH_GZIP_HEADER = 15 + 16, CHUNK_BYTES = 1 << 16 }; /* zlib.h, deflateInit2() */

struct gzip {
	z_stream stream;
	FILE *out;
	unsigned char chunk[CHUNK_BYTES];
};

/* Compress the input and pass on the output. */
static int pump(struct gzip *gzip, int flush)
{
	do {
		gzip->stream.next_out = gzip->chunk;
		gzip->stream.avail_out = CHUNK_BYTES;
		if (deflate(&gzip->stream, flush) == Z_STREAM_ERROR)
			return -EINVAL;
		fwrite(gzip->chunk, 1, CHUNK_BYTES - gzip->stream.avail_out, gzip->out);
	} while (gzip->stream.avail_out == 0);
	return ferror(gzip->out) ? -EIO : 0;
}

static ssize_t gzip_write(void *cookie, const char *bytes, size_t n)
{
	struct gzip *gzip = cookie;

	gzip->stream.next_in = (unsigned char *)bytes;
	gzip->stream.avail_in = (unsigned)n; /* at most the size of stdio's buffer */
	if (pump(gzip, Z_NO_FLUSH) < 0) {
		errno = EIO;
		return 0; /* not -1: fopencookie(3) */
	}
	return (ssize_t)n;
}

static int gzip_close(void *cookie)
{
	struct gzip *gzip = cookie;
	int r;

	gzip->stream.avail_in = 0;
	r = pump(gzip, Z_FINISH);
	deflateEnd(&gzip->stream);
	free(gzip);
	if (r < 0)
		errno = -r;
	return r < 0 ? EOF : 0;
}

int gzip_open(FILE *out, FILE **ret)
{
	struct gzip *gzip = calloc(1, sizeof *gzip);
	FILE *file;

	if (!gzip)
		return -ENOMEM;
	gzip->out = out;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WITH_GZIP_HEADER, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(gzip);
		return -ENOMEM;
	}
	file = fopencookie(gzip, "w", (cookie_io_functions_t){ .write = gzip_write, .close = gzip_close });
	if (!file) {
		deflateEnd(&gzip->stream);
		free(gzip);
		return -ENOMEM;
	}
	*ret = file;
	return 0;
}
