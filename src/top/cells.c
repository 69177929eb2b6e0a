/* SPDX-License-Identifier: MIT */
/* cells.c - see cells.h. */
#include "src/top/cells.h"

#include <errno.h>
#include <string.h>

int cells_add(struct cells *cells, const struct cell *cell)
{
	uint64_t key = ((uint64_t)cell->thread + 1) << 32 | cell->stack;
	const struct id_slot *slot = id_map_find(&cells->index, key);
	struct cell *item;

	if (!slot) {
		if (grow(&cells->items, cells->n, &cells->allocated, sizeof *cells->items) < 0 ||
		    id_map_add(&cells->index, key, (uint32_t)cells->n) < 0)
			return -ENOMEM;
		item = &cells->items[cells->n++];
		*item = (struct cell){ .thread = cell->thread, .stack = cell->stack };
	} else {
		item = &cells->items[slot->id];
	}
	item->samples += cell->samples;
	item->weight += cell->weight;
	cells->samples += cell->samples;
	cells->weight += cell->weight;
	return 0;
}

int cells_add_all(struct cells *cells, const struct cells *more)
{
	int r = 0;

	for (size_t i = 0; i < more->n && r >= 0; i++)
		r = cells_add(cells, &more->items[i]);
	return r;
}

void cells_clear(struct cells *cells)
{
	cells->n = 0;
	cells->samples = cells->weight = 0;
	id_map_clear(&cells->index);
}

void cells_done(struct cells *cells)
{
	free(cells->items);
	id_map_done(&cells->index);
	memset(cells, 0, sizeof *cells);
}
