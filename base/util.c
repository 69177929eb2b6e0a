/* SPDX-License-Identifier: MIT */
/* util.c - small helpers; see util.h. */
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

void closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

int grow(void *array, size_t n, size_t *allocated, size_t size)
{
	size_t wanted;
	void *moved;

	if (n < *allocated)
		return 0;
	wanted = MAX(n + 1, *allocated * 2);
	wanted = MAX(wanted, (size_t)16);
	moved = reallocarray(*(void **)array, wanted, size);
	if (!moved)
		return -ENOMEM;
	*(void **)array = moved;
	*allocated = wanted;
	return 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int pread_all(int fd, void *to, size_t n_bytes, uint64_t offset, size_t *ret)
{
	*ret = 0;
	while (*ret < n_bytes) {
		ssize_t got = pread(fd, (char *)to + *ret, n_bytes - *ret, (off_t)(offset + *ret));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		*ret += (size_t)got;
	}
	return 0;
}

int read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_bytes)
{
	CLEANUP(closep) int fd = -1;
	CLEANUP(freep) char *text = NULL;
	size_t n = 0, allocated = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t got;
		int r;

		r = grow(&text, n + 4096, &allocated, 1);
		if (r < 0)
			return r;
		if (n >= max_bytes)
			break;
		got = read(fd, text + n, MIN(allocated - n - 1, max_bytes - n));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	if (ret_bytes)
		*ret_bytes = n;
	*ret = TAKE(text);
	return 0;
}

int reopen_to_read(int looked_at)
{
	char link[32];
	int fd;

	snprintf(link, sizeof link, "/proc/self/fd/%d", looked_at);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
