/* SPDX-License-Identifier: MIT */
/* put_labels.c - labels of totals as the outermost frames of their stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/profile/profile.h"

struct putting {
	struct profile *profile;
	struct profile_stack *stacks;
	size_t n, allocated;
	struct id_map known; /* label and stack, each plus 1 -> the new stack */
	int32_t first_frame; /* of the labels; that of none comes first, that of nothing after the last */
};

static int put_stack(struct putting *putting, int32_t label, int32_t stack, int32_t parent, int32_t frame)
{
	int r;

	if (putting->n == INT32_MAX)
		return -EOVERFLOW;
	r = grow(&putting->stacks, putting->n, &putting->allocated, sizeof *putting->stacks);
	if (r < 0)
		return r;
	putting->stacks[putting->n] = (struct profile_stack){ .parent = parent, .frame = frame };
	return id_map_add(&putting->known, ((uint64_t)(uint32_t)label << 32 | (uint32_t)(stack + 1)) + 1,
			  (uint32_t)putting->n++);
}

static const struct id_slot *find(const struct putting *putting, int32_t label, int32_t stack)
{
	return id_map_find(&putting->known, ((uint64_t)(uint32_t)label << 32 | (uint32_t)(stack + 1)) + 1);
}

/* Copy a stack and its ancestors below a label, the outermost first. @way: room for a stack of each depth. */
static int copy(struct putting *putting, int32_t label, int32_t stack, int32_t *way, int32_t *ret)
{
	const struct profile_stack *stacks = putting->profile->stacks;
	const struct id_slot *slot;
	size_t n = 0;
	int32_t at = stack;
	int r = 0;

	for (; at >= 0 && !find(putting, label, at); at = stacks[at].parent)
		way[n++] = at;
	if (!find(putting, label, at))
		r = put_stack(putting, label, at, -1, putting->first_frame + label);
	while (n > 0 && r >= 0) {
		slot = find(putting, label, at);
		at = way[--n];
		r = put_stack(putting, label, at, (int32_t)slot->id, stacks[at].frame);
	}
	if (r >= 0)
		*ret = (int32_t)find(putting, label, stack)->id;
	return r;
}

/* Time that was not sampled stays as it is: its one frame is its whole stack. */
static int keep(struct putting *putting, int32_t stack, int32_t *ret)
{
	const struct id_slot *slot = find(putting, -1, stack);
	int r;

	if (!slot) {
		r = put_stack(putting, -1, stack, -1, putting->profile->stacks[stack].frame);
		if (r < 0)
			return r;
	}
	*ret = (int32_t)find(putting, -1, stack)->id;
	return 0;
}

/* One for each label, one for none, one for nothing. */
static size_t count_frames(const struct profile *profile)
{
	return profile->n_labels + 2;
}

static int add_frames(struct profile *profile, const char *none)
{
	size_t n = count_frames(profile);
	struct profile_frame *frames;
	int r = 0;

	if (profile->n_frames + n >= INT32_MAX)
		return -EOVERFLOW;
	frames = reallocarray(profile->frames, profile->n_frames + n, sizeof *frames);
	if (!frames)
		return -ENOMEM;
	profile->frames = frames;
	frames[profile->n_frames + n - 1] = (struct profile_frame){ .kind = FRAME_TASK,
								    .name = profile_nothing(profile),
								    .inlined_into = -1 };
	for (size_t i = 0; i <= profile->n_labels && r >= 0; i++) {
		struct profile_frame frame = { .kind = FRAME_TASK, .is_label = true, .inlined_into = -1 };

		if (i == 0)
			r = profile_add_string(profile, none, strlen(none), &frame.name);
		else
			frame.name = profile->labels[i - 1];
		frames[profile->n_frames + i] = frame;
	}
	return r;
}

/* By frame: none of the labels is a root. */
static int widen_roots(struct profile *profile)
{
	bool *roots;

	if (!profile->is_root)
		return 0;
	roots = reallocarray(profile->is_root, profile->n_frames + count_frames(profile), sizeof *roots);
	if (!roots)
		return -ENOMEM;
	memset(roots + profile->n_frames, 0, count_frames(profile) * sizeof *roots);
	profile->is_root = roots;
	return 0;
}

/* As they are read from a file. */
static int compare_totals(const void *a, const void *b)
{
	const struct profile_total *one = a, *other = b;

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	return (one->stack > other->stack) - (one->stack < other->stack);
}

int profile_put_labels(struct profile *profile, const char *none)
{
	CLEANUP(freep) int32_t *way = reallocarray(NULL, profile->n_stacks + 1, sizeof *way);
	CLEANUP(freep) int32_t *placed = reallocarray(NULL, profile->n_totals + 1, sizeof *placed);
	struct putting putting = { .profile = profile, .first_frame = (int32_t)profile->n_frames };
	int r = way && placed ? add_frames(profile, none) : -ENOMEM;

	if (r >= 0)
		r = widen_roots(profile);
	for (size_t i = 0; i < profile->n_totals && r >= 0; i++) {
		const struct profile_total *total = &profile->totals[i];

		r = profile_is_sampled(profile, total->stack)
			    ? copy(&putting, total->label, total->stack, way, &placed[i])
			    : keep(&putting, total->stack, &placed[i]);
	}
	id_map_done(&putting.known);
	if (r < 0) {
		free(putting.stacks);
		return r;
	}
	for (size_t i = 0; i < profile->n_totals; i++) {
		profile->totals[i].stack = placed[i];
		profile->totals[i].label = 0;
	}
	if (profile->n_totals > 0)
		qsort(profile->totals, profile->n_totals, sizeof *profile->totals, compare_totals);
	free(profile->stacks);
	profile->stacks = putting.stacks;
	profile->n_stacks = putting.n;
	profile->n_frames += count_frames(profile);
	profile->nothing = (int32_t)profile->n_frames;
	profile->n_labels = 0;
	return 0;
}
