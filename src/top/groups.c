/* SPDX-License-Identifier: MIT */
/* groups.c - see groups.h. Two frames are in one group when their keys, 64-bit hashes, are the same.
 * These are odd; groups that are no frames have even ones. */
#include "src/top/groups.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/util.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return text ? hash_bytes(hash, text, strlen(text)) : hash;
}

static uint64_t function_key(const struct profile_frame *frame)
{
	if (frame->function != 0)
		return mix64((uint64_t)frame->function);
	return hash_text(hash_text(HASH_START + frame->kind, frame->name), frame->module);
}

static uint64_t key_of(enum grouping by, const struct profile_frame *frame)
{
	switch (by) {
	case GROUP_LINES:
		return mix64(function_key(frame) + (uint64_t)frame->line);
	case GROUP_MODULES:
		return hash_text(HASH_START, profile_frame_module(frame));
	default:
		return function_key(frame);
	}
}

static struct group describe(enum grouping by, uint64_t key, const struct profile_frame *frame,
			     const struct name_function *function)
{
	struct group group = {
		.key = key,
		.name = frame->name,
		.file = frame->file,
		.module = frame->module,
		.line = by == GROUP_LINES ? frame->line
			: function        ? function->first_line
					  : 0,
		.kind = frame->kind,
		.role = frame->role,
	};

	if (by == GROUP_MODULES) {
		group.file = profile_frame_module(frame);
		group.name = path_base_name(group.file);
		group.module = NULL;
		group.line = 0;
		group.role = ROLE_NONE;
	}
	return group;
}

static int add_group(struct groups *groups, const struct group *group)
{
	if (grow(&groups->items, groups->n, &groups->allocated, sizeof *groups->items) < 0)
		return -ENOMEM;
	groups->items[groups->n++] = *group;
	return 0;
}

static int add_special(struct groups *groups)
{
	static const char *const special[GROUP_N_SPECIAL] = { "[no stack]", "[no Python]" };
	int r = 0;

	for (int i = 0; i < GROUP_N_SPECIAL && r >= 0; i++)
		r = add_group(groups,
			      &(struct group){ .key = 2 + 2 * (uint64_t)i, .name = special[i], .kind = FRAME_N_KINDS });
	return r;
}

static int add_frame(struct groups *groups, const struct profile_frame *frame, const struct name_function *function)
{
	uint64_t key = key_of(groups->by, frame) | 1;
	const struct id_slot *slot = id_map_find(&groups->index, key);
	struct group group;

	if (grow(&groups->of_frame, groups->n_frames, &groups->frames_allocated, sizeof *groups->of_frame) < 0)
		return -ENOMEM;
	groups->of_frame[groups->n_frames] = slot ? slot->id : (uint32_t)groups->n;
	if (!slot) {
		group = describe(groups->by, key, frame, function);
		if (id_map_add(&groups->index, key, (uint32_t)groups->n) < 0 || add_group(groups, &group) < 0)
			return -ENOMEM;
	}
	groups->n_frames++;
	return 0;
}

int groups_update(struct groups *groups, const struct top_names *names)
{
	const struct profile *profile = top_names_profile(names);
	int r = 0;

	if (groups->n == 0)
		r = add_special(groups);
	while (r >= 0 && groups->n_frames < profile->n_frames)
		r = add_frame(groups, &profile->frames[groups->n_frames], top_names_function(names, groups->n_frames));
	return r;
}

void groups_reset(struct groups *groups, enum grouping by)
{
	groups->by = by;
	groups->n = groups->n_frames = 0;
	id_map_clear(&groups->index);
}

void groups_done(struct groups *groups)
{
	free(groups->items);
	free(groups->of_frame);
	id_map_done(&groups->index);
	memset(groups, 0, sizeof *groups);
}
