/* SPDX-License-Identifier: MIT */
/* mapping.h - foreign files, mapped so that truncating them does not end this process.
 *
 * A writer may truncate a file, and access to a missing page raises SIGBUS. A handler replaces such pages by zeros and
 * marks the mapping: readers then see a damaged file, which all readers here handle. Reading costs the same as in any
 * other mapping.
 *
 * Mapping installs a handler for SIGBUS. Other SIGBUS signals go to the previous handler.
 */
#ifndef PROBING_BASE_MAPPING_H
#define PROBING_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct file_mapping;

/*
 * file_mapping_new - map a whole file for reading.
 * @fd:  borrowed; may be closed after the call.
 * @ret: ended with file_mapping_free().
 * Errors: -ENODATA the file is empty, or has no size; -ENOMEM; what fstat(2) and mmap(2) report.
 */
int file_mapping_new(int fd, struct file_mapping **ret);

/*
 * file_mapping_adopt - protect a private mapping that a library has made, and will unmap.
 * @bytes: begins a page. @ret: to be ended before the library unmaps. Errors: -EINVAL no page begins there; -ENOMEM.
 */
int file_mapping_adopt(void *bytes, size_t n_bytes, struct file_mapping **ret);

void file_mapping_free(struct file_mapping *mapping);
void file_mapping_freep(struct file_mapping **mapping);

/* Borrowed, as long as the mapping. */
const void *file_mapping_bytes(const struct file_mapping *mapping, size_t *ret_bytes);

/* Whether pages are missing. Once true, data may contain zeros instead of the file's bytes. */
bool file_mapping_is_cut(const struct file_mapping *mapping);

/*
 * file_guard_enter, file_guard_leave - protect this thread's reading of private mappings that have no struct
 * file_mapping: libelf and libdw create such ones while they open files. Between the two calls the thread reads only
 * such files. Calls nest. An earlier file_mapping_new() or adoption must have installed the handler.
 * file_guard_leave() returns whether any page was missing meanwhile, of a mapping of either kind.
 */
struct file_guard {
	unsigned n_cut;
};
void file_guard_enter(struct file_guard *guard);
bool file_guard_leave(const struct file_guard *guard);

/* file_guard_cut - a page was missing for another thread that worked for this one: this thread's guards report it. */
void file_guard_cut(void);

#endif
