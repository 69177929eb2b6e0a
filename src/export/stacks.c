/* SPDX-License-Identifier: MIT */
/* stacks.c - see stacks.h. */
#include "src/export/stacks.h"

#include <stdlib.h>

#include "base/util.h"

int stacks_init(const struct profile *profile, const struct export_options *options, struct stacks *ret)
{
	struct stacks stacks = { .profile = profile, .options = options };
	int r = 0;

	if (options->min_share > 0)
		r = fold_stacks(profile, options, &stacks.tree, &stacks.nodes);
	if (r == 0)
		*ret = stacks;
	return r;
}

void stacks_done(struct stacks *stacks)
{
	path_done(&stacks->path);
	call_tree_free(stacks->tree);
	free(stacks->nodes);
	*stacks = (struct stacks){ 0 };
}

int stacks_read(struct stacks *stacks, int32_t stack)
{
	uint32_t node = stacks->tree ? stacks->nodes[stack + 1] : 0;
	int r;

	r = path_read(&stacks->path, stacks->profile, stacks->options, stack);
	if (r < 0)
		return r;
	stacks->is_rest = node != 0 && node == stacks->tree->rest;
	if (node != 0 && stacks->path.n > 0)
		stacks->path.n = MIN(stacks->path.n, (size_t)stacks->tree->nodes[node].depth);
	return 0;
}

const char *stacks_nowhere(const struct stacks *stacks)
{
	if (stacks->is_rest)
		return "[rest]";
	return stacks->path.n == 0 ? profile_nothing(stacks->profile) : NULL;
}

unsigned stacks_count_inlined(const struct stacks *stacks, size_t at)
{
	const int32_t *frames = stacks->path.frames;
	unsigned n = 1;

	/* frames[at] is the innermost; its caller precedes it. */
	while (!stacks->options->inverted && at >= n &&
	       stacks->profile->frames[frames[at - n + 1]].inlined_into == frames[at - n])
		n++;
	return n;
}
