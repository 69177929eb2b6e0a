/* SPDX-License-Identifier: MIT */
/*
 * profile_order.c - references between a profile's rows: found, acyclic, in order.
 *
 * Ids are dense in what our writer made: then an id's index is its distance
 * from the first. Other ids are searched for; the rows come in their order.
 *
 * A file may list a stack before its parent, or let stacks be their own
 * ancestors. Both are found by the depth of each stack, computed from parents
 * alone: a walk outwards that is longer than there are stacks has no end, and
 * sorting by depth puts every parent before its children.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/profile_private.h"

enum { DEPTH_UNKNOWN = -1 };

int row_index_add(struct row_index *map, int64_t id)
{
	int r;

	if (map->n >= INT32_MAX || (map->n > 0 && id <= map->ids[map->n - 1]))
		return -EBADMSG;
	r = grow(&map->ids, map->n, &map->allocated, sizeof *map->ids);
	if (r < 0)
		return r;
	map->ids[map->n++] = id;
	return 0;
}

int row_index_find(const struct row_index *map, int64_t id, int32_t *ret)
{
	size_t low = 0, high = map->n;
	uint64_t guess;

	if (map->n == 0 || id < map->ids[0])
		return -EBADMSG;
	guess = (uint64_t)id - (uint64_t)map->ids[0];
	if (guess < map->n && map->ids[guess] == id) {
		*ret = (int32_t)guess;
		return 0;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == map->n || map->ids[low] != id)
		return -EBADMSG;
	*ret = (int32_t)low;
	return 0;
}

int profile_check_inlined(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		int64_t frame = (int64_t)i;

		for (unsigned n = 0; frame >= 0; n++) {
			if (n > MAX_INLINED)
				return -EBADMSG;
			frame = profile->frames[frame].inlined_into;
		}
	}
	return 0;
}

static bool is_ordered(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_stacks; i++)
		if (profile->stacks[i].parent >= (int32_t)i)
			return false;
	return true;
}

/* Depth of one stack and of those on the way to the nearest one that is known. */
static int measure(const struct profile *profile, int32_t stack, int32_t *depths)
{
	int32_t at = stack, n = 0, depth;

	while (at >= 0 && depths[at] == DEPTH_UNKNOWN) {
		if ((size_t)++n > profile->n_stacks)
			return -EBADMSG;
		at = profile->stacks[at].parent;
	}
	depth = at >= 0 ? depths[at] + n : n - 1;
	for (at = stack; n > 0; n--) {
		depths[at] = depth--;
		at = profile->stacks[at].parent;
	}
	return 0;
}

/*
 * Turn each stack's depth into its place in the order of depths.
 * @starts: n + 1 zeros.
 */
static void rank(int32_t *depths, size_t n, int32_t *starts)
{
	for (size_t i = 0; i < n; i++)
		starts[depths[i] + 1]++;
	for (size_t i = 1; i <= n; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < n; i++)
		depths[i] = starts[depths[i]]++;
}

static int move_stacks(struct profile *profile, const int32_t *places)
{
	struct profile_stack *moved;

	moved = reallocarray(NULL, profile->n_stacks, sizeof *moved);
	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		struct profile_stack stack = profile->stacks[i];

		if (stack.parent >= 0)
			stack.parent = places[stack.parent];
		moved[places[i]] = stack;
	}
	for (size_t i = 0; i < profile->n_totals; i++)
		if (profile->totals[i].stack >= 0)
			profile->totals[i].stack = places[profile->totals[i].stack];
	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].stack >= 0)
			profile->samples[i].stack = places[profile->samples[i].stack];
	free(profile->stacks);
	profile->stacks = moved;
	return 0;
}

int profile_order_stacks(struct profile *profile)
{
	CLEANUP(freep) int32_t *places = NULL;
	CLEANUP(freep) int32_t *starts = NULL;
	size_t n = profile->n_stacks;

	if (is_ordered(profile))
		return 0;
	places = reallocarray(NULL, n, sizeof *places);
	starts = calloc(n + 1, sizeof *starts);
	if (!places || !starts)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		places[i] = DEPTH_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		int r = measure(profile, (int32_t)i, places);

		if (r < 0)
			return r;
	}
	rank(places, n, starts);
	return move_stacks(profile, places);
}
