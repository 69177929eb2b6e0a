/* SPDX-License-Identifier: MIT */
/* memory_history.h - values of a process' memory, kept from one run of probing memory to the next.
 *
 * One file per process in ${XDG_CACHE_HOME:-~/.cache}/probing/memory, named by the process' id and start time, for the
 * user alone. Files of ended processes are removed.
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

/* memory_values_add - add one; dropped if there is no room. */
void memory_values_add(struct memory_values *values, const char *name, int64_t value);

/* NULL: there is none of that name. */
const int64_t *memory_values_find(const struct memory_values *values, const char *name);

/* memory_values_parse - "NAME NUMBER" lines of an untrusted text; skips other lines. */
void memory_values_parse(struct memory_values *values, const char *text, size_t n_bytes);

/*
 * memory_history_exchange - read the stored values of the process into @ret, which is empty if there are none; then
 * store @now.
 * Errors: of storing, as new_file_open(); -ENOENT no home is known.
 */
int memory_history_exchange(pid_t pid, uint64_t started, const struct memory_values *now, struct memory_values *ret);

#endif
