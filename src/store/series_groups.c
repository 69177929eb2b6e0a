/* SPDX-License-Identifier: MIT */
/*
 * series_groups.c - a hash table of sums; see series_groups.h.
 *
 * Open addressing, at most half full, so that a free slot always ends a search.
 */
#include "src/store/series_groups.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { MIN_SLOTS = 1024 };

static uint64_t hash_key(const struct series_key *key)
{
	return mix64(key->thread ^ key->stack * 0x9e3779b97f4a7c15u ^ ((uint64_t)key->cpu << 40) ^
		     ((uint64_t)key->flags << 20));
}

static struct series_group *find_slot(struct series_group *slots, size_t n_slots, const struct series_key *key)
{
	size_t at = hash_key(key) & (n_slots - 1);

	while (slots[at].samples > 0 && memcmp(&slots[at].key, key, sizeof *key) != 0)
		at = (at + 1) & (n_slots - 1);
	return &slots[at];
}

/* Make room for one more group. */
static int make_room(struct series_groups *groups)
{
	size_t n_slots = MAX(2 * groups->n_slots, (size_t)MIN_SLOTS);
	struct series_group *slots;

	if (2 * (groups->n + 1) <= groups->n_slots)
		return SQLITE_OK;
	slots = calloc(n_slots, sizeof *slots);
	if (!slots)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < groups->n_slots; i++)
		if (groups->slots[i].samples > 0)
			*find_slot(slots, n_slots, &groups->slots[i].key) = groups->slots[i];
	free(groups->slots);
	groups->slots = slots;
	groups->n_slots = n_slots;
	return SQLITE_OK;
}

int series_groups_add(struct series_groups *groups, const struct series_key *key, uint64_t weight)
{
	struct series_group *group;
	int code = make_room(groups);

	if (code != SQLITE_OK)
		return code;
	group = find_slot(groups->slots, groups->n_slots, key);
	if (group->samples == 0) {
		group->key = *key;
		groups->n++;
	}
	group->samples++;
	/* Saturate: a damaged file may contain any weights. */
	group->weight = MIN(group->weight + weight, (uint64_t)INT64_MAX);
	return SQLITE_OK;
}

void series_groups_clear(struct series_groups *groups)
{
	if (groups->slots)
		memset(groups->slots, 0, groups->n_slots * sizeof *groups->slots);
	groups->n = 0;
}

void series_groups_done(struct series_groups *groups)
{
	free(groups->slots);
	*groups = (struct series_groups){ 0 };
}
