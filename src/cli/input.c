/* SPDX-License-Identifier: MIT */
/* input.c - see import_list.h. Read, not mapped: a file that gets shorter meanwhile is a short file then. */
#include "src/cli/import_list.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

enum { FIRST_BYTES = 1 << 16 };
#define MAX_BYTES ((uint64_t)8 << 30)

uint64_t input_most(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t most = MAX_BYTES;
	struct rlimit limit;

	if (pages > 0 && page > 0)
		most = MIN(most, (uint64_t)pages * (uint64_t)page / 2);
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		most = MIN(most, (uint64_t)limit.rlim_cur / 4);
	return most;
}

/* Allow one byte more than the limit, to detect larger input. */
static int make_room(struct input *input)
{
	size_t wanted = (size_t)MIN(MAX(2 * (uint64_t)input->allocated, (uint64_t)FIRST_BYTES), input_most() + 1);
	uint8_t *bytes;

	if (input->n_bytes < input->allocated)
		return 0;
	if (input->n_bytes >= wanted)
		return -E2BIG;
	bytes = realloc(input->bytes, wanted);
	if (!bytes)
		return -ENOMEM;
	input->bytes = bytes;
	input->allocated = wanted;
	return 0;
}

static int read_all(int fd, struct input *input)
{
	ssize_t n;
	int r;

	do {
		r = make_room(input);
		if (r < 0)
			return r;
		n = read(fd, input->bytes + input->n_bytes, input->allocated - input->n_bytes);
		if (n > 0)
			input->n_bytes += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	return input->n_bytes > input_most() ? -E2BIG : 0;
}

int input_read(const char *path, struct input *ret)
{
	bool is_stdin = strcmp(path, "-") == 0;
	CLEANUP(closep) int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	*ret = (struct input){ 0 };
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_stdin)) /* some devices never end */
		return -ENODEV;
	ret->modified_ns = S_ISREG(st.st_mode) ? (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec
					       : realtime_ns();
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > input_most())
		return -E2BIG;
	if (S_ISREG(st.st_mode) && st.st_size > 0) { /* one byte more, to see the end of file */
		ret->bytes = malloc((size_t)st.st_size + 1);
		ret->allocated = ret->bytes ? (size_t)st.st_size + 1 : 0;
	}
	return read_all(fd, ret);
}

void input_done(struct input *input)
{
	free(input->bytes);
	*input = (struct input){ 0 };
}
