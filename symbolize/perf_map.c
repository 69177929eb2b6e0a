/* SPDX-License-Identifier: MIT */
/* perf_map.c - see perf_map.h. */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum {
	READ_BYTES = 64 << 10,
	/* Two numbers and blanks precede the name. */
	LINE_ROOM = PERF_MAP_MAX_NAME + 64,
};

/* File times have the resolution of the kernel's tick, process start times 10 ms. */
#define TIME_SLACK_NS 1000000000ULL

void perf_map_done(struct perf_map *map)
{
	code_ranges_done(&map->ranges);
	free(map->line);
	*map = (struct perf_map){};
}

/* ---- Lines ---- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* Parse a number and at least one blank after it, and advance. */
static bool take_number(const char **at, const char *end, uint64_t *ret)
{
	const char *c = skip_blanks(*at, end), *first;
	uint64_t value = 0;

	if (end - c > 2 && c[0] == '0' && (c[1] | 0x20) == 'x')
		c += 2;
	for (first = c; c < end && digit_of(*c) >= 0; c++) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)digit_of(*c);
	}
	if (c == first || c == end || (*c != ' ' && *c != '\t'))
		return false;
	*at = skip_blanks(c, end);
	*ret = value;
	return true;
}

static int add_line(struct perf_map *map, const char *at, const char *end, uint64_t since_ns)
{
	struct code_range range = { .since_ns = since_ns };
	uint64_t n_bytes;

	if (!take_number(&at, end, &range.start) || !take_number(&at, end, &n_bytes))
		return 0;
	while (end > at && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (at == end || n_bytes > UINT64_MAX - range.start)
		return 0;
	range.end = range.start + n_bytes;
	return code_ranges_add(&map->ranges, &range, at, MIN((size_t)(end - at), (size_t)PERF_MAP_MAX_NAME));
}

/* Drop what does not fit: the end of a name that is too long. */
static int keep_part(struct perf_map *map, const char *text, size_t n_bytes)
{
	if (!map->line)
		map->line = malloc(LINE_ROOM);
	if (!map->line)
		return -ENOMEM;
	n_bytes = MIN(n_bytes, LINE_ROOM - map->line_bytes);
	memcpy(map->line + map->line_bytes, text, n_bytes);
	map->line_bytes += n_bytes;
	return 0;
}

int perf_map_add(struct perf_map *map, const char *text, size_t n_bytes, uint64_t since_ns)
{
	const char *end = text + n_bytes, *newline;
	int r = 0;

	while (r >= 0 && text < end && (newline = memchr(text, '\n', (size_t)(end - text))) != NULL) {
		if (map->line_bytes > 0) {
			r = keep_part(map, text, (size_t)(newline - text));
			if (r >= 0)
				r = add_line(map, map->line, map->line + map->line_bytes, since_ns);
			map->line_bytes = 0;
		} else {
			r = add_line(map, text, newline, since_ns);
		}
		text = newline + 1;
	}
	if (r >= 0 && text < end)
		r = keep_part(map, text, (size_t)(end - text));
	return r;
}

/* ---- The file ---- */

/* Detect a file that was truncated and written again. */
static int notice_shorter(struct perf_map *map, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < map->offset) {
		map->offset = 0;
		map->line_bytes = 0;
	}
	return 0;
}

int perf_map_read(struct perf_map *map, int fd)
{
	CLEANUP(freep) char *buffer = malloc(READ_BYTES);
	uint64_t began_ns = monotonic_ns();
	bool found = false;
	int r;

	if (!buffer)
		return -ENOMEM;
	r = notice_shorter(map, fd);
	while (r >= 0 && map->offset < PERF_MAP_MAX_BYTES) {
		ssize_t n = pread(fd, buffer, READ_BYTES, (off_t)map->offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		found = true;
		map->offset += (size_t)n;
		r = perf_map_add(map, buffer, (size_t)n, map->last_ns);
	}
	map->last_ns = began_ns;
	return r < 0 ? r : found;
}

static bool is_believed(const struct generated_owner *owner, uid_t uid)
{
	return uid == 0 || uid == (owner->is_known ? owner->uid : geteuid());
}

static bool is_older(const struct generated_owner *owner, const struct stat *st)
{
	uint64_t written_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000ULL + (uint64_t)st->st_mtim.tv_nsec;

	return written_ns + TIME_SLACK_NS < owner->started_ns;
}

static int check_file(const struct generated_owner *owner, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return -ENOEXEC;
	if (!is_believed(owner, st->st_uid))
		return -EPERM;
	return is_older(owner, st) ? -ESTALE : 0;
}

/* Open with O_PATH for the checks first; a file that fails them is never opened for reading. */
static int open_in(const struct generated_owner *owner, const char *folder, pid_t pid, int *ret)
{
	CLEANUP(closep) int at = -1;
	CLEANUP(closep) int found = -1;
	char name[64];
	struct stat st;
	int fd, r;

	at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	snprintf(name, sizeof name, "perf-%d.map", (int)pid);
	found = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	r = check_file(owner, &st);
	if (r < 0)
		return r;
	fd = reopen_to_read(found);
	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

int perf_map_open(const struct generated_owner *owner, int *ret)
{
	char folder[PROC_PATH_BYTES];
	int r;

	if (owner->is_known) {
		proc_path(owner->pid, "root/tmp", folder);
		r = open_in(owner, folder, owner->ns_pid, ret);
		if (r >= 0)
			return r;
		snprintf(folder, sizeof folder, "/proc/%d", (int)owner->pid);
		if (access(folder, F_OK) == 0 || owner->ns_pid != owner->pid)
			return r;
	}
	return open_in(owner, "/tmp", owner->pid, ret);
}
