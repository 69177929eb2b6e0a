/* SPDX-License-Identifier: MIT */
/* cells.h - number of samples by thread and stack. Private. */
#ifndef PROBING_TOP_CELLS_H
#define PROBING_TOP_CELLS_H

#include "base/id_map.h"

struct cell {
	uint32_t thread; /* index */
	uint32_t stack;  /* id; 0: nothing could be read */
	uint64_t samples, weight;
};

/* One for each pair of thread and stack. */
struct cells {
	struct cell *items;
	size_t n, allocated;
	struct id_map index;
	uint64_t samples, weight; /* of all */
};

/* -ENOMEM. */
int cells_add(struct cells *cells, const struct cell *cell);
int cells_add_all(struct cells *cells, const struct cells *more);
/* Empty it, and keep the memory. */
void cells_clear(struct cells *cells);
void cells_done(struct cells *cells);

#endif
