/* SPDX-License-Identifier: MIT */
/* page_trim.h - when to free the memory of mapped files. Private. */
#ifndef PROBING_PAGE_TRIM_H
#define PROBING_PAGE_TRIM_H

#include <stdbool.h>
#include <stdint.h>

/* Of one process, in which names are looked up. */
struct page_trim {
	uint64_t busy_bytes,
		calm_bytes; /* of mapped files, from which on that is worth it; calm: names are few and come now and then */
	int statm;          /* a descriptor of /proc/self/statm; -1: it is not readable, and nothing is freed */
	uint64_t trimmed_bytes; /* of mapped files that were in our memory after they were given back last */
	uint64_t trimmed_ns;    /* when that was; at first when this was made */
};

/*
 * page_trim_init - prepare for a process whose mapped files take memory.
 * @busy_bytes: of mapped files, from which on giving back pays while names are looked up all the time.
 * @calm_bytes: the same if at least 2 s have passed since pages were given back. Both count rings and program text.
 */
void page_trim_init(struct page_trim *trim, uint64_t busy_bytes, uint64_t calm_bytes);
void page_trim_done(struct page_trim *trim);

/*
 * page_trim_is_due - whether enough has come that it is worth to read it again later.
 * Costs a system call where it is not.
 */
bool page_trim_is_due(const struct page_trim *trim);
/* All that can be given back has been. */
void page_trim_did(struct page_trim *trim);

#endif
