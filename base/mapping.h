/* SPDX-License-Identifier: MIT */
/* mapping.h - files of others, mapped so that their end cannot be ours.
 *
 * Who may write a file may also truncate it, and a look at a page that has gone raises SIGBUS. Here such pages become
 * zeros, and the mapping is marked: whoever reads it then finds a damaged file, which all readers here expect.
 * Reading costs nothing more than in any other mapping.
 *
 * Mapping installs a handler for SIGBUS. What is no business of this file goes to the handler that was there.
 */
#ifndef PROBING_BASE_MAPPING_H
#define PROBING_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct file_mapping;

/*
 * file_mapping_new - map a whole file for reading.
 * @fd:  borrowed, needed no more afterwards.
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

/* Whether pages have gone. Once true, what was read may be made of zeros. */
bool file_mapping_is_cut(const struct file_mapping *mapping);

/*
 * file_guard_enter, file_guard_leave - protect this thread's reading of private mappings that nobody has told of, as
 * libelf and libdw make while they open files. Between the two calls the thread looks at such files only. May be nested.
 * Needs a mapping that was made or adopted before, which installs the handler.
 * Returns whether any page has gone since, of a mapping told of or not.
 */
struct file_guard {
	unsigned n_cut;
};
void file_guard_enter(struct file_guard *guard);
bool file_guard_leave(const struct file_guard *guard);

#endif
