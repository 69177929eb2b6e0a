/* SPDX-License-Identifier: MIT */
/* memory_history.h - what the last look at a process' memory saw, kept for the next one.
 *
 * A file a process in ${XDG_CACHE_HOME:-~/.cache}/probing/memory, named by the process' id and the time of its start, for the
 * user alone. Those of processes that have ended are removed.
 */
#ifndef PROBING_CLI_MEMORY_HISTORY_H
#define PROBING_CLI_MEMORY_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MEMORY_MAX_VALUES = 128, MEMORY_MAX_NAME = 48 };

struct memory_values {
	struct memory_value {
		char name[MEMORY_MAX_NAME];
		int64_t value;
	} items[MEMORY_MAX_VALUES];
	size_t n;
	int64_t time_ns; /* since 1970 */
};

/* memory_values_add - one more; what does not fit is left out. */
void memory_values_add(struct memory_values *values, const char *name, int64_t value);

/* NULL: there is none of that name. */
const int64_t *memory_values_find(const struct memory_values *values, const char *name);

/* memory_values_parse - "NAME NUMBER" lines, which may be anything; what is no such line is passed over. */
void memory_values_parse(struct memory_values *values, const char *text, size_t n_bytes);

/*
 * memory_history_exchange - what was kept of the process, @ret, with nothing in it where there was nothing; then keep @now.
 * Errors: what kept it from being kept, of new_file_open(); -ENOENT no home is known.
 */
int memory_history_exchange(pid_t pid, uint64_t started, const struct memory_values *now, struct memory_values *ret);

#endif
