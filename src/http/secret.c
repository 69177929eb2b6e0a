/* SPDX-License-Identifier: MIT */
/* secret.c - passwords out of files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/http/http.h"

enum { MAX_SECRET = 1024 };

static int first_line(const char *bytes, size_t n, char **ret)
{
	size_t n_line = strcspn(bytes, "\r\n");

	if (n > MAX_SECRET)
		return -EMSGSIZE;
	if (n_line == 0)
		return -ENODATA;
	*ret = strndup(bytes, n_line);
	return *ret ? 0 : -ENOMEM;
}

int http_read_secret(const char *path, char **ret)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char bytes[MAX_SECRET + 2];
	size_t n = 0;
	ssize_t got = 1;
	int r;

	if (fd < 0)
		return -errno;
	while (got > 0 && n < sizeof bytes - 1) {
		got = read(fd, bytes + n, sizeof bytes - 1 - n);
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	bytes[n] = '\0';
	r = first_line(bytes, n, ret);
	explicit_bzero(bytes, sizeof bytes);
	return r;
}

void http_forget(char *secret)
{
	if (!secret)
		return;
	explicit_bzero(secret, strlen(secret));
	free(secret);
}
