/* SPDX-License-Identifier: MIT */
/* parse.h - parsers for files of /proc, for untrusted bytes. Private.
 *
 * Source: proc(5), and Documentation/filesystems/proc.rst of Linux 6.12.
 */
#ifndef PROBING_LIVE_PARSE_H
#define PROBING_LIVE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address_space.h"

/* A "stat" file of a process or thread: proc_pid_stat(5). Times in ticks of sysconf(_SC_CLK_TCK). */
struct stat_line {
	char state;
	int parent, priority, nice, cpu;
	unsigned n_threads, policy, real_time_priority;
	uint64_t user_ticks, system_ticks, start_ticks;
	uint64_t virtual_bytes;
	int64_t resident_pages;
};
int parse_stat(const char *text, struct stat_line *ret); /* -EBADMSG */

/* The number behind "KEY:" of a "status" or "fdinfo" file; false: there is none. */
bool parse_number(const char *text, const char *key, int base, int64_t *ret);

/* A mapping as "smaps", or "maps", has it. */
struct map_entry {
	struct mapping_source source; /* path borrowed from the text */
	char permissions[5];
	bool has_use; /* else the rest is not known */
	int64_t rss_bytes, pss_bytes, private_bytes, swap_bytes, anonymous_bytes;
};

/*
 * parse_next_map - the next mapping of a text, which it modifies.
 * @at: advanced; NULL at the end. Skips malformed lines.
 * False: there are no more.
 */
bool parse_next_map(char **at, struct map_entry *ret);

/*
 * parse_next_variable - the next "NAME=VALUE" of an "environ" file, which ends each by a NUL.
 * @at, @end: the remaining bytes; @at is advanced. A program may have written anything there:
 * *ret_value is NULL without a "=". Skips empty pieces.
 */
struct variable {
	const char *name, *value;
	size_t n_name, n_value;
};
bool parse_next_variable(const char **at, const char *end, struct variable *ret);

/*
 * parse_next_cell - the next column of a row of probes: "n", "iNUMBER", "fNUMBER" or "tTEXT", and a tab or a line end.
 * @at, @end: what is left; @at is moved on.
 * False: the end, or no cell.
 */
struct cell {
	char type; /* one of n i f t */
	int64_t integer;
	double real;
	const char *text;
	size_t n_text;
	bool ends_row;
};
bool parse_next_cell(const char **at, const char *end, struct cell *ret);

/* A line of /proc/stat. Ticks as above. False: not the line of one CPU. */
struct cpu_line {
	int cpu;
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal; /* guests are part of user and nice */
};
bool parse_cpu(const char *line, struct cpu_line *ret);

/* "rw,append,nonblock" of the flags of open(2); n_bytes from 64 on. */
void parse_flags(int64_t flags, char *to, size_t n_bytes);

/* "3.11" of the path of a program called python3.11; false: it is called something else. */
bool parse_python_path(const char *path, char *to, size_t n_bytes);

#endif
