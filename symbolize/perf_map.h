/* SPDX-License-Identifier: MIT */
/* perf_map.h - /tmp/perf-PID.map: the names that a JIT writes down for profilers. Private.
 *
 * A line is "START SIZE NAME", numbers in hexadecimal, the name up to the end
 * of the line. It has no time, so an entry holds from the last reading of the
 * file before the one that found it. Source: Linux
 * tools/perf/Documentation/jit-interface.txt.
 */
#ifndef PROBING_SYMBOLIZE_PERF_MAP_H
#define PROBING_SYMBOLIZE_PERF_MAP_H

#include "symbolize/code_ranges.h"
#include "symbolize/symbolize.h"

/* What lies behind these is not read; longer names are cut. */
#define PERF_MAP_MAX_BYTES (64 << 20)
#define PERF_MAP_MAX_NAME 4096

/* Zeroed: empty. */
struct perf_map {
	struct code_ranges ranges;
	char *line; /* as much of the line at hand as was there */
	size_t line_bytes;
	uint64_t offset;  /* bytes of the file read */
	uint64_t last_ns; /* when it was last read; 0: never */
};

void perf_map_done(struct perf_map *map);

/*
 * perf_map_add - take more text; lines that make no sense are left out.
 * A line without its end waits for the rest: it is being written.
 * @since_ns: from when on it holds. Returns 0 or -ENOMEM.
 */
int perf_map_add(struct perf_map *map, const char *text, size_t n_bytes, uint64_t since_ns);

/*
 * perf_map_read - take what the file holds beyond what was read before.
 * One that has become shorter is read anew. Returns 1 when there was something,
 * 0, -ENOMEM, or what read(2) reports.
 */
int perf_map_read(struct perf_map *map, int fd);

/*
 * perf_map_open - the map of a process: in the process' own root under the
 * number that it knows itself by, or, once it is gone, in ours.
 * The folder is writable by all, so only a regular file is believed that
 * belongs to root, to the process' user, or, where that is not known any more,
 * to ours; a symbolic link never is, and nothing is opened before it is checked.
 * Nobody removes these files: one that was last written before the process
 * started is of an earlier process of that number.
 * @ret: closed by the caller. Errors: -ENOENT; -EPERM somebody else's; -ENOEXEC
 * no regular file; -ESTALE too old; what open(2) reports.
 */
int perf_map_open(const struct generated_owner *owner, int *ret);

#endif
