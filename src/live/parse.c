/* SPDX-License-Identifier: MIT */
/* parse.c - see parse.h. The kernel writes these files, but programs choose names, paths and environments in them. */
#include "src/live/parse.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"

/* Fields 3, 4, 14, 15, 18 to 20, 22 to 24, 39 to 41. */
#define SKIP_3 " %*s %*s %*s"
#define SKIP_7 SKIP_3 SKIP_3 " %*s"
#define STAT_FORMAT                                                                                                    \
	" %c %d" SKIP_3 SKIP_3 SKIP_3 " %" SCNu64 " %" SCNu64 " %*s %*s %d %d %u %*s %" SCNu64 " %" SCNu64             \
	" %" SCNd64 SKIP_7 SKIP_7 " %d %u %u"

int parse_stat(const char *text, struct stat_line *ret)
{
	const char *rest = strrchr(text, ')'); /* the name may contain any character */
	struct stat_line line;

	if (!rest || sscanf(rest + 1, STAT_FORMAT, &line.state, &line.parent, &line.user_ticks, &line.system_ticks,
			    &line.priority, &line.nice, &line.n_threads, &line.start_ticks, &line.virtual_bytes,
			    &line.resident_pages, &line.cpu, &line.real_time_priority, &line.policy) != 13)
		return -EBADMSG;
	*ret = line;
	return 0;
}

bool parse_number(const char *text, const char *key, int base, int64_t *ret)
{
	const char *value = proc_status_value(text, key);
	char *end;
	int64_t number;

	if (!value)
		return false;
	value += strspn(value, " \t");
	number = strtoll(value, &end, base);
	if (end == value)
		return false;
	*ret = number;
	return true;
}

/* ---- Mappings ---- */

/* Parse "Rss:          12 kB". */
static void take_use(const char *line, struct map_entry *entry)
{
	const struct {
		const char *key;
		int64_t *to;
	} keys[] = {
		{ "Rss:", &entry->rss_bytes },
		{ "Pss:", &entry->pss_bytes },
		{ "Private_Clean:", &entry->private_bytes },
		{ "Private_Dirty:", &entry->private_bytes },
		{ "Swap:", &entry->swap_bytes },
		{ "Anonymous:", &entry->anonymous_bytes },
	};

	for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
		size_t n = strlen(keys[i].key);
		long long kilobytes;

		if (strncmp(line, keys[i].key, n) != 0)
			continue;
		kilobytes = strtoll(line + n, NULL, 10);
		if (kilobytes >= 0 && kilobytes < INT64_MAX / 4096)
			*keys[i].to += kilobytes * 1024;
		entry->has_use = true;
	}
}

static bool is_map(char *line, struct map_entry *entry)
{
	const char *blank = strchr(line, ' ');

	if (maps_parse_line(line, &entry->source) < 0 || !blank)
		return false;
	memcpy(entry->permissions, blank + 1, 4);
	return true;
}

static char *cut_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (end)
		*end = '\0';
	*at = end ? end + 1 : NULL;
	return line;
}

bool parse_next_map(char **at, struct map_entry *ret)
{
	struct map_entry entry = { 0 };
	bool is_there = false;

	while (*at && !is_there)
		is_there = is_map(cut_line(at), &entry);
	if (!is_there)
		return false;
	/* A mapping's keys begin with a capital, the next mapping with a hexadecimal digit. */
	while (*at && isupper((unsigned char)**at))
		take_use(cut_line(at), &entry);
	*ret = entry;
	return true;
}

/* ---- The rest ---- */

bool parse_next_variable(const char **at, const char *end, struct variable *ret)
{
	const char *equals;
	size_t n;

	while (*at < end && **at == '\0')
		(*at)++;
	if (*at >= end)
		return false;
	n = strnlen(*at, (size_t)(end - *at));
	equals = memchr(*at, '=', n);
	*ret = (struct variable){ .name = *at, .n_name = n };
	if (equals) {
		ret->n_name = (size_t)(equals - *at);
		ret->value = equals + 1;
		ret->n_value = n - ret->n_name - 1;
	}
	*at += n;
	return true;
}

bool parse_cpu(const char *line, struct cpu_line *ret)
{
	struct cpu_line cpu = { 0 };
	int n;

	if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)line[3]))
		return false;
	n = sscanf(line + 3,
		   "%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &cpu.cpu, &cpu.user, &cpu.nice, &cpu.system, &cpu.idle, &cpu.iowait, &cpu.irq, &cpu.softirq,
		   &cpu.steal);
	if (n < 5 || cpu.cpu < 0)
		return false;
	*ret = cpu;
	return true;
}

void parse_flags(int64_t flags, char *to, size_t n_bytes)
{
	static const struct {
		int64_t flag;
		const char *name;
	} names[] = {
		{ O_APPEND, "append" },        { O_NONBLOCK, "nonblock" },   { O_DIRECT, "direct" },
		{ O_SYNC & ~O_DSYNC, "sync" }, { O_DIRECTORY, "directory" }, { O_PATH, "path" },
		{ O_CLOEXEC, "cloexec" },
	};
	size_t used;

	snprintf(to, n_bytes, "%s", (flags & O_ACCMODE) == O_RDWR ? "rw" : (flags & O_ACCMODE) == O_WRONLY ? "w" : "r");
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		used = strlen(to);
		if ((flags & names[i].flag) != 0)
			snprintf(to + used, n_bytes - used, ",%s", names[i].name);
	}
}

bool parse_python_path(const char *path, char *to, size_t n_bytes)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n;

	if (strncmp(name, "python", strlen("python")) != 0)
		return false;
	name += strlen("python");
	n = strspn(name, "0123456789.");
	if (n == 0 || n >= n_bytes || !memchr(name, '.', n))
		return false;
	memcpy(to, name, n);
	to[n] = '\0';
	return true;
}

/* ---- Rows of probes ---- */

bool parse_next_cell(const char **at, const char *end, struct cell *ret)
{
	const char *stop = *at;
	struct cell cell = { 0 };
	char number[64] = "", *last = number;

	while (stop < end && *stop != '\t' && *stop != '\n')
		stop++;
	if (stop == end || stop == *at)
		return false;
	cell = (struct cell){
		.type = **at, .text = *at + 1, .n_text = (size_t)(stop - *at) - 1, .ends_row = *stop == '\n'
	};
	if (cell.type == 'i' || cell.type == 'f') {
		if (cell.n_text == 0 || cell.n_text >= sizeof number)
			return false;
		memcpy(number, cell.text, cell.n_text);
		if (cell.type == 'i')
			cell.integer = strtoll(number, &last, 10);
		else
			cell.real = strtod(number, &last);
		if (*last != '\0' || last == number)
			return false;
	} else if (cell.type != 't' && (cell.type != 'n' || cell.n_text > 0)) {
		return false;
	}
	*at = stop + 1;
	*ret = cell;
	return true;
}
