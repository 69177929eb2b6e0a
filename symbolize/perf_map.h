/* SPDX-License-Identifier: MIT */
/* perf_map.h - /tmp/perf-PID.map: the names that a JIT writes for profilers. Private.
 *
 * A line is "START SIZE NAME", numbers in hexadecimal, the name up to the end
 * of the line. It has no time, so an entry is valid from the reading of the
 * file before the one that found it. Source: Linux
 * tools/perf/Documentation/jit-interface.txt.
 */
#ifndef PROBING_SYMBOLIZE_PERF_MAP_H
#define PROBING_SYMBOLIZE_PERF_MAP_H

#include "symbolize/code_ranges.h"
#include "symbolize/symbolize.h"

/* Limits: bytes beyond the first are not read; longer names are truncated. */
#define PERF_MAP_MAX_BYTES (64 << 20)
#define PERF_MAP_MAX_NAME 4096

/* Zeroed: empty. */
struct perf_map {
	struct code_ranges ranges;
	char *line; /* the incomplete last line */
	size_t line_bytes;
	uint64_t offset;  /* bytes of the file read */
	uint64_t last_ns; /* when it was last read; 0: never */
};

void perf_map_done(struct perf_map *map);

/*
 * perf_map_add - add more text; ignores malformed lines.
 * An incomplete line waits for the rest: the JIT is writing it.
 * @since_ns: time from which it is valid. Returns 0 or -ENOMEM.
 */
int perf_map_add(struct perf_map *map, const char *text, size_t n_bytes, uint64_t since_ns);

/*
 * perf_map_read - read the part of the file beyond the previous reading.
 * A file that became shorter is read from its start. Returns 1 if there was something,
 * 0, -ENOMEM, or what read(2) reports.
 */
int perf_map_read(struct perf_map *map, int fd);

/*
 * perf_map_open - the map of a process: in the process' own root under its PID there, or, after its
 * end, in ours. Everybody may write to the folder. So only a regular file is accepted that belongs
 * to root or to the process' user; to ours if that user is no longer known; never a symbolic link,
 * and each file is checked before it is opened. Nobody removes these files: one that was last
 * written before the process started belongs to an earlier process with that PID.
 * @ret: closed by the caller. Errors: -ENOENT; -EPERM another user's file; -ENOEXEC
 * no regular file; -ESTALE too old; what open(2) reports.
 */
int perf_map_open(const struct generated_owner *owner, int *ret);

#endif
