/* SPDX-License-Identifier: MIT */
/*
 * order.c - references between a profile's rows: acyclic, in order; samples by time.
 *
 * A file may list a stack before its parent, or let stacks be their own
 * ancestors. Both are found by the depth of each stack, computed from parents
 * alone: a walk outwards that is longer than there are stacks has no end, and
 * sorting by depth puts every parent before its children.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/profile/profile.h"

enum { DEPTH_UNKNOWN = -1 };

int profile_check_inlined(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		int64_t frame = (int64_t)i;

		for (unsigned n = 0; frame >= 0; n++) {
			if (n > PROFILE_MAX_INLINED)
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

/* Compute the depth of a stack and of its ancestors up to a known one. */
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
 * Turn each stack's depth into its rank by depth.
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

/* Samples of equal time are sorted by thread, then by stack, so the order is deterministic. */
static int compare_samples(const void *a, const void *b)
{
	const struct profile_sample *left = a, *right = b;

	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	if (left->stack != right->stack)
		return left->stack < right->stack ? -1 : 1;
	return left->weight < right->weight ? -1 : left->weight > right->weight;
}

void profile_order_samples(struct profile *profile)
{
	for (size_t i = 1; i < profile->n_samples; i++)
		if (compare_samples(&profile->samples[i - 1], &profile->samples[i]) > 0) {
			qsort(profile->samples, profile->n_samples, sizeof *profile->samples, compare_samples);
			return;
		}
}
