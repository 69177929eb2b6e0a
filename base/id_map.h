/* SPDX-License-Identifier: MIT */
/* id_map.h - a hash table from 64-bit keys to 32-bit ids, for the hot paths.
 *
 * Open addressing with linear probing, at most two thirds full. The key 0 is
 * reserved. Nothing is ever removed singly.
 */
#ifndef PROBING_BASE_ID_MAP_H
#define PROBING_BASE_ID_MAP_H

#include "base/util.h"

struct id_map {
	struct id_slot {
		uint64_t key; /* 0: free */
		uint32_t id;
	} * slots;
	size_t n, n_slots; /* n_slots is 0 or a power of two */
};

/* NULL: not there. The slot is valid until the next addition; its id may be changed. */
static inline struct id_slot *id_map_find(const struct id_map *map, uint64_t key)
{
	size_t mask = map->n_slots - 1;

	if (map->n_slots == 0)
		return NULL;
	for (size_t i = mix64(key) & mask;; i = (i + 1) & mask) {
		if (map->slots[i].key == key)
			return &map->slots[i];
		if (map->slots[i].key == 0)
			return NULL;
	}
}

/* The key must not be there yet, nor be 0. -ENOMEM, -EINVAL. */
int id_map_add(struct id_map *map, uint64_t key, uint32_t id);
void id_map_clear(struct id_map *map);
void id_map_done(struct id_map *map);

#endif
