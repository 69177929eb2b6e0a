/* SPDX-License-Identifier: MIT */
/* series_groups.h - sums of samples by common columns. Private. */
#ifndef PROBING_STORE_SERIES_GROUPS_H
#define PROBING_STORE_SERIES_GROUPS_H

#include <stddef.h>
#include <stdint.h>

/* The common values of a group; 0 in columns that do not group. No padding: keys are compared as bytes. */
struct series_key {
	uint64_t thread, stack; /* pid << 32 | tid */
	uint32_t cpu, flags;
};
_Static_assert(sizeof(struct series_key) == 24, "no padding");

struct series_group {
	struct series_key key;
	uint64_t samples, weight; /* samples 0: free */
};

/* Zeroed it is empty. Groups may be in any of the slots. */
struct series_groups {
	struct series_group *slots;
	size_t n, n_slots; /* n_slots: 0 or a power of two */
};

/* Returns SQLite's code. */
int series_groups_add(struct series_groups *groups, const struct series_key *key, uint64_t weight);
/* Remove all groups; keeps the memory. */
void series_groups_clear(struct series_groups *groups);
void series_groups_done(struct series_groups *groups);

#endif
