/* SPDX-License-Identifier: MIT */
/* maps.c - /proc/PID/maps, line by line.
 *
 * A line: "START-END rwxp OFFSET MAJOR:MINOR INODE    PATH", numbers in
 * hexadecimal except the inode; the path may be empty, may hold spaces, and
 * has newlines written as \012 (proc_pid_maps(5), Linux 6.12 fs/proc/task_mmu.c).
 */
#include "base/address_space.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/proc.h"
#include "base/util.h"

/* Several times the lines that vm.max_map_count allows by default. */
enum { MAX_MAPS_BYTES = 64 << 20 };

/* Parse at least one digit up to @stop, and skip @stop. */
static int take_number(char **at, unsigned base, char stop, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t value = 0;
	char *c = *at;

	for (; *c != '\0' && *c != stop; c++) {
		const char *digit = memchr(digits, *c, base);

		if (!digit || value > (UINT64_MAX - (uint64_t)(digit - digits)) / base)
			return -EINVAL;
		value = value * base + (uint64_t)(digit - digits);
	}
	if (c == *at || *c != stop)
		return -EINVAL;
	*at = stop != '\0' ? c + 1 : c;
	*ret = value;
	return 0;
}

/* Parse "rwxp ". */
static int take_permissions(char **at, struct mapping_source *source)
{
	char *c = *at;

	for (int i = 0; i < 4; i++)
		if (c[i] == '\0' || c[i] == ' ')
			return -EINVAL;
	if (c[4] != ' ')
		return -EINVAL;
	source->writable = c[1] == 'w';
	source->executable = c[2] == 'x';
	*at = c + 5;
	return 0;
}

/* The inode is the last number; if there is no path, only blanks follow. */
static int take_inode(char **at, uint64_t *ret)
{
	char *end = *at + strcspn(*at, " ");
	bool is_last = *end == '\0';
	int r;

	r = take_number(at, 10, *end, ret);
	if (r < 0)
		return r;
	if (!is_last)
		*at += strspn(*at, " ");
	return 0;
}

static void decode_newlines(char *path)
{
	char *to = path;

	while (*path != '\0') {
		if (strncmp(path, "\\012", 4) == 0) {
			*to++ = '\n';
			path += 4;
		} else {
			*to++ = *path++;
		}
	}
	*to = '\0';
}

int maps_parse_line(char *line, struct mapping_source *ret)
{
	struct mapping_source source = { 0 };
	uint64_t major_number, minor_number;
	int r;

	line[strcspn(line, "\n")] = '\0';
	r = take_number(&line, 16, '-', &source.start);
	if (r >= 0)
		r = take_number(&line, 16, ' ', &source.end);
	if (r >= 0)
		r = take_permissions(&line, &source);
	if (r >= 0)
		r = take_number(&line, 16, ' ', &source.file_offset);
	if (r >= 0)
		r = take_number(&line, 16, ':', &major_number);
	if (r >= 0)
		r = take_number(&line, 16, ' ', &minor_number);
	if (r >= 0)
		r = take_inode(&line, &source.inode);
	if (r < 0)
		return r;
	if (source.start >= source.end || major_number > UINT32_MAX || minor_number > UINT32_MAX)
		return -EINVAL;
	source.device = makedev((unsigned)major_number, (unsigned)minor_number);
	decode_newlines(line);
	source.path = line;

	*ret = source;
	return 0;
}

static int add_lines(struct address_space *space, char *text)
{
	while (*text != '\0') {
		struct mapping_source source;
		char *next = text + strcspn(text, "\n");
		int r;

		if (*next != '\0')
			*next++ = '\0';
		r = maps_parse_line(text, &source);
		if (r >= 0)
			r = address_space_add(space, &source);
		if (r < 0)
			return r;
		text = next;
	}
	return 0;
}

int address_space_load(struct address_space *space)
{
	CLEANUP(freep) char *text = NULL;
	int r;

	r = proc_read(address_space_pid(space), "maps", MAX_MAPS_BYTES, &text, NULL);
	if (r == -EACCES)
		return -EPERM;
	if (r < 0)
		return r;
	return add_lines(space, text);
}
