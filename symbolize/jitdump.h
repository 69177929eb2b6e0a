/* SPDX-License-Identifier: MIT */
/* jitdump.h - jit-PID.dump: a JIT's log of the code it loads, moves and replaces. Private.
 *
 * A header, then records with a time each; the file grows while the process
 * runs. Source: Linux tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef PROBING_SYMBOLIZE_JITDUMP_H
#define PROBING_SYMBOLIZE_JITDUMP_H

#include "base/id_map.h"
#include "symbolize/code_ranges.h"

/* Limits: bytes beyond these are not read, of a file, of a record of lines, of a name. */
#define JITDUMP_MAX_BYTES (4ULL << 30)
#define JITDUMP_MAX_LINES_BYTES (1 << 20)
#define JITDUMP_MAX_LINES (1u << 22)
#define JITDUMP_MAX_NAME 4096

struct jitdump_line {
	uint64_t offset; /* from the start of the function's code */
	int32_t line;
	uint32_t file; /* in files; 0: none */
};

struct jitdump {
	struct code_ranges ranges; /* user: index in functions */
	struct jitdump_function {
		uint32_t first_line, n_lines; /* in lines, ascending by offset */
	} * functions;
	size_t n_functions, functions_allocated;
	struct jitdump_line *lines;
	size_t n_lines, lines_allocated;
	char *files; /* NUL-terminated, one after another */
	size_t files_bytes, files_allocated;
	struct id_map by_index; /* code_index + 1 -> range */
	/* Lines for the code of the next load record. */
	struct jitdump_function next;
	uint64_t next_address;
	int fd;
	uint64_t offset;  /* of the first incomplete record */
	uint64_t last_ns; /* when it was last read; 0: never */
	bool is_timed;    /* records bear CLOCK_MONOTONIC; else they hold from the last reading on */
	bool is_closed;   /* the process wrote that nothing follows */
};

/*
 * jitdump_open - check the header.
 * @fd: owned by the result on success. @ret: zeroed or not, overwritten.
 * Errors: -EBADMSG no jitdump, or cut within its header; -EOPNOTSUPP of the other
 * byte order; -EPROTONOSUPPORT of another version; what read(2) reports.
 */
int jitdump_open(int fd, struct jitdump *ret);
void jitdump_done(struct jitdump *dump);

/*
 * jitdump_read - read all complete records.
 * At an invalid one reading ends for good: without its size the next record cannot be
 * found. Returns 1 if there were records, 0, -ENOMEM, or what read(2) reports.
 */
int jitdump_read(struct jitdump *dump);

/* The source line of an address in a range; *ret_file NULL, *ret_line 0: unknown. Lines of a
 * record that does not make sense throughout are left out. */
void jitdump_find_line(const struct jitdump *dump, const struct code_range *range, uint64_t address,
		       const char **ret_file, int *ret_line);

#endif
