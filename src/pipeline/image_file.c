/* SPDX-License-Identifier: MIT */
/* image_file.c - see image_file.h. */
#include "src/pipeline/image_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

int image_file_make(const void *image, size_t n_bytes, int *ret)
{
	CLEANUP(closep) int fd = memfd_create("module", MFD_CLOEXEC);
	const char *at = image;
	size_t left = n_bytes;

	if (fd < 0)
		return -errno;
	while (left > 0) {
		ssize_t n = write(fd, at, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += MAX(n, 0);
		left -= (size_t)MAX(n, 0);
	}
	*ret = TAKE_FD(fd);
	return 0;
}
