/* SPDX-License-Identifier: MIT */
/* series_groups.h - what samples add up to, by what they have in common. Private. */
#ifndef PROBING_STORE_SERIES_GROUPS_H
#define PROBING_STORE_SERIES_GROUPS_H

#include <stddef.h>
#include <stdint.h>

/* What the samples of a group agree in; 0 in what nobody asks for. No padding: keys are compared as bytes. */
struct series_key {
	uint64_t thread, stack; /* pid << 32 | tid */
	uint32_t cpu, flags;
};
_Static_assert(sizeof(struct series_key) == 24, "no padding");

struct series_group {
	struct series_key key;
	uint64_t samples, weight; /* samples 0: free */
};

/* Zeroed it is empty. Groups stand in any of the slots. */
struct series_groups {
	struct series_group *slots;
	size_t n, n_slots; /* n_slots: 0 or a power of two */
};

/* Returns SQLite's code. */
int series_groups_add(struct series_groups *groups, const struct series_key *key, uint64_t weight);
/* No groups any more; the memory stays. */
void series_groups_clear(struct series_groups *groups);
void series_groups_done(struct series_groups *groups);

#endif
