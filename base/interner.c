/* SPDX-License-Identifier: MIT */
/* interner.c - see interner.h. */
#include "base/interner.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct interner *interner, uint32_t id, const void *bytes, size_t n_bytes)
{
	const struct interned *item = &interner->items[id];

	return item->n_bytes == n_bytes &&
	       (n_bytes == 0 || memcmp(interner->bytes + item->offset, bytes, n_bytes) == 0);
}

static int append(struct interner *interner, const void *bytes, size_t n_bytes, uint64_t key)
{
	int r;

	if (n_bytes > UINT32_MAX || interner->n >= UINT32_MAX)
		return -EOVERFLOW;
	while (interner->bytes_allocated - interner->n_bytes <= n_bytes) {
		r = grow(&interner->bytes, interner->bytes_allocated, &interner->bytes_allocated, 1);
		if (r < 0)
			return r;
	}
	r = grow(&interner->items, interner->n, &interner->allocated, sizeof *interner->items);
	if (r >= 0)
		r = id_map_add(&interner->by_hash, key, (uint32_t)interner->n);
	if (r < 0)
		return r;
	if (n_bytes > 0)
		memcpy(interner->bytes + interner->n_bytes, bytes, n_bytes);
	interner->bytes[interner->n_bytes + n_bytes] = '\0';
	interner->items[interner->n++] = (struct interned){ .offset = interner->n_bytes, .n_bytes = (uint32_t)n_bytes };
	interner->n_bytes += n_bytes + 1;
	return 1;
}

/* @ret_key: of the string; of a new one, free. */
static bool find(const struct interner *interner, const void *bytes, size_t n_bytes, uint64_t *ret_key, uint32_t *ret)
{
	uint64_t key = hash_words(HASH_START, bytes, n_bytes) | 1;

	/* If another string has this key, continue with the next key. */
	for (;; key = mix64(key) | 1) {
		const struct id_slot *slot = id_map_find(&interner->by_hash, key);

		*ret_key = key;
		if (!slot)
			return false;
		if (!is_same(interner, slot->id, bytes, n_bytes))
			continue;
		*ret = slot->id;
		return true;
	}
}

bool interner_find(const struct interner *interner, const void *bytes, size_t n_bytes, uint32_t *ret)
{
	uint64_t key;

	return find(interner, bytes, n_bytes, &key, ret);
}

int interner_add(struct interner *interner, const void *bytes, size_t n_bytes, uint32_t *ret)
{
	uint64_t key;
	int r;

	if (find(interner, bytes, n_bytes, &key, ret))
		return 0;
	r = append(interner, bytes, n_bytes, key);
	if (r < 0)
		return r;
	*ret = (uint32_t)interner->n - 1;
	return r;
}

void interner_done(struct interner *interner)
{
	free(interner->bytes);
	free(interner->items);
	id_map_done(&interner->by_hash);
	*interner = (struct interner){ 0 };
}
