/* SPDX-License-Identifier: MIT */
/* code_ranges.h - ranges of generated code, with the time from which each is valid. Private.
 *
 * Ranges are added in the order of their source. They may
 * overlap: each is valid from its time until a newer one covers the address.
 */
#ifndef PROBING_SYMBOLIZE_CODE_RANGES_H
#define PROBING_SYMBOLIZE_CODE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More are left out. */
#define CODE_RANGES_MAX (1u << 20)

struct code_range {
	uint64_t start, end; /* [start, end), run-time addresses */
	uint64_t since_ns;   /* on the samples' clock; 0: from the start */
	size_t name;         /* see code_range_name(); 0: no code there any more */
	uint32_t user;       /* the source's own */
};

/* Zeroed: empty. */
struct code_ranges {
	struct code_range *ranges;
	size_t n, ranges_allocated;
	uint32_t *order;    /* the first n_sorted ranges by start, then by age */
	uint64_t *furthest; /* largest end among order[0..i] */
	size_t n_sorted;
	char *names; /* NUL-terminated, one after another */
	size_t names_bytes, names_allocated;
};

void code_ranges_done(struct code_ranges *ranges);

/*
 * code_ranges_add - one more range.
 * @name: n_name bytes, copied, control characters replaced; NULL: the code has been removed.
 * Ignores an empty range, and one that wraps around. Returns 0 or -ENOMEM.
 */
int code_ranges_add(struct code_ranges *ranges, const struct code_range *range, const char *name, size_t n_name);

/*
 * code_ranges_find - the code at an address at a time.
 * The newest range of that time or before; if all are newer, the oldest, because code
 * may run before its source reports it.
 * @ret: borrowed until the next addition; NULL: nothing known there.
 * Returns 0 or -ENOMEM.
 */
int code_ranges_find(struct code_ranges *ranges, uint64_t address, uint64_t time_ns, const struct code_range **ret);

/* Borrowed until the next addition. */
const char *code_range_name(const struct code_ranges *ranges, const struct code_range *range);

#endif
