/* SPDX-License-Identifier: MIT */
/* id_map.c - see id_map.h. */
#include "base/id_map.h"

#include <errno.h>
#include <string.h>

static void insert(struct id_map *map, uint64_t key, uint32_t id)
{
	size_t mask = map->n_slots - 1, i = mix64(key) & mask;

	while (map->slots[i].key != 0)
		i = (i + 1) & mask;
	map->slots[i] = (struct id_slot){ .key = key, .id = id };
	map->n++;
}

static int enlarge(struct id_map *map)
{
	struct id_map larger = { .n_slots = MAX(map->n_slots * 2, (size_t)256) };

	larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->n_slots; i++)
		if (map->slots[i].key != 0)
			insert(&larger, map->slots[i].key, map->slots[i].id);
	free(map->slots);
	*map = larger;
	return 0;
}

int id_map_add(struct id_map *map, uint64_t key, uint32_t id)
{
	if (key == 0)
		return -EINVAL;
	if (3 * (map->n + 1) > 2 * map->n_slots) {
		int r = enlarge(map);

		if (r < 0)
			return r;
	}
	insert(map, key, id);
	return 0;
}

void id_map_clear(struct id_map *map)
{
	if (map->n_slots > 0)
		memset(map->slots, 0, map->n_slots * sizeof *map->slots);
	map->n = 0;
}

void id_map_done(struct id_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof *map);
}
