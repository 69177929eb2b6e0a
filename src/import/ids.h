/* SPDX-License-Identifier: MIT */
/* ids.h - numbers equal rows: rows that an import repeats are stored once. */
#ifndef PROBING_IMPORT_IDS_H
#define PROBING_IMPORT_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct ids {
	struct ids_slot {
		uint64_t hash;
		size_t at, n_bytes; /* its key, in bytes */
		int64_t id;         /* 0: free */
	} * slots;
	size_t n_slots; /* 0 or a power of two */
	int64_t n;      /* ids 1 ... n are in use */
	char *bytes;
	size_t n_bytes, n_allocated;
};

/*
 * ids_add - the number of a key.
 * @key: any bytes; copied where they are new.
 * @ret: from 1, in the order of coming.
 * Returns 1 where it is new, 0, or -ENOMEM.
 */
int ids_add(struct ids *ids, const void *key, size_t n_bytes, int64_t *ret);
/* ids_find - the number of a key that was added; false: it was not. */
bool ids_find(const struct ids *ids, const void *key, size_t n_bytes, int64_t *ret);
void ids_done(struct ids *ids);

#endif
