/* SPDX-License-Identifier: MIT */
/* ids.c - see ids.h: open addressing, at most half full, nothing is ever removed. */
#include "src/import/ids.h"

#include <errno.h>
#include <string.h>

enum { FIRST_SLOTS = 256 };

static uint64_t hash_of(const uint8_t *key, size_t n_bytes)
{
	uint64_t hash = mix64(n_bytes + 1), word;

	for (; n_bytes >= sizeof word; key += sizeof word, n_bytes -= sizeof word) {
		memcpy(&word, key, sizeof word);
		hash = mix64(hash ^ word) + 1;
	}
	for (word = 0; n_bytes > 0; n_bytes--)
		word = word << 8 | key[n_bytes - 1];
	return mix64(hash ^ word);
}

static int widen(struct ids *ids)
{
	size_t n_slots = ids->n_slots > 0 ? 2 * ids->n_slots : FIRST_SLOTS;
	struct ids_slot *slots = calloc(n_slots, sizeof *slots);

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < ids->n_slots; i++) {
		size_t at = ids->slots[i].hash & (n_slots - 1);

		if (ids->slots[i].id == 0)
			continue;
		while (slots[at].id != 0)
			at = (at + 1) & (n_slots - 1);
		slots[at] = ids->slots[i];
	}
	free(ids->slots);
	ids->slots = slots;
	ids->n_slots = n_slots;
	return 0;
}

static int store_key(struct ids *ids, const void *key, size_t n_bytes)
{
	size_t needed = ids->n_bytes + n_bytes;

	if (needed > ids->n_allocated) {
		size_t allocated = MAX(2 * ids->n_allocated, needed + 1024);
		char *bytes = realloc(ids->bytes, allocated);

		if (!bytes)
			return -ENOMEM;
		ids->bytes = bytes;
		ids->n_allocated = allocated;
	}
	if (n_bytes > 0)
		memcpy(ids->bytes + ids->n_bytes, key, n_bytes);
	ids->n_bytes = needed;
	return 0;
}

int ids_add(struct ids *ids, const void *key, size_t n_bytes, int64_t *ret)
{
	uint64_t hash = hash_of(key, n_bytes);
	struct ids_slot *slot;
	size_t at;
	int r;

	if ((size_t)ids->n * 2 >= ids->n_slots) {
		r = widen(ids);
		if (r < 0)
			return r;
	}
	for (at = hash & (ids->n_slots - 1);; at = (at + 1) & (ids->n_slots - 1)) {
		slot = &ids->slots[at];
		if (slot->id == 0)
			break;
		if (slot->hash == hash && slot->n_bytes == n_bytes &&
		    (n_bytes == 0 || memcmp(ids->bytes + slot->at, key, n_bytes) == 0)) {
			*ret = slot->id;
			return 0;
		}
	}
	r = store_key(ids, key, n_bytes);
	if (r < 0)
		return r;
	*slot = (struct ids_slot){ .hash = hash, .at = ids->n_bytes - n_bytes, .n_bytes = n_bytes, .id = ++ids->n };
	*ret = slot->id;
	return 1;
}

bool ids_find(const struct ids *ids, const void *key, size_t n_bytes, int64_t *ret)
{
	uint64_t hash = hash_of(key, n_bytes);

	for (size_t at = hash & (ids->n_slots - 1); ids->n_slots > 0 && ids->slots[at].id != 0;
	     at = (at + 1) & (ids->n_slots - 1)) {
		const struct ids_slot *slot = &ids->slots[at];

		if (slot->hash == hash && slot->n_bytes == n_bytes &&
		    (n_bytes == 0 || memcmp(ids->bytes + slot->at, key, n_bytes) == 0)) {
			*ret = slot->id;
			return true;
		}
	}
	return false;
}

void ids_done(struct ids *ids)
{
	free(ids->slots);
	free(ids->bytes);
	*ids = (struct ids){ 0 };
}
