/* SPDX-License-Identifier: MIT */
/* stacks.h - the places of a stack as readers of addresses want them: innermost first, with inlined functions together,
 * and without small nodes.
 */
#ifndef PROBING_EXPORT_STACKS_H
#define PROBING_EXPORT_STACKS_H

#include "src/export/fold.h"
#include "src/export/path.h"

/* Ended with stacks_done(). */
struct stacks {
	const struct profile *profile;
	const struct export_options *options;
	struct path path;
	struct call_tree *tree; /* only if small nodes are dropped; otherwise NULL */
	uint32_t *nodes;
	bool is_rest; /* of the last one: all of it was dropped */
};

/* stacks_init - both arguments outlive @ret. Errors: -ENOMEM; -EOVERFLOW too many nodes. */
int stacks_init(const struct profile *profile, const struct export_options *options, struct stacks *ret);
void stacks_done(struct stacks *stacks);

/* stacks_read - put the frames of a stack, -1: none, into path. -ENOMEM. */
int stacks_read(struct stacks *stacks, int32_t stack);

/* Name of what has no place: "[rest]", "[no stack]"; NULL: the path has frames. */
const char *stacks_nowhere(const struct stacks *stacks);

/* Number of frames from path.frames[at] on that are inlined into each other, innermost first; always 1 if the path is
 * inverted. */
unsigned stacks_count_inlined(const struct stacks *stacks, size_t at);

#endif
