/* SPDX-License-Identifier: MIT */
/* fold.h - a profile's stacks merged into one call tree. */
#ifndef PROBING_EXPORT_FOLD_H
#define PROBING_EXPORT_FOLD_H

#include "src/export/export.h"
#include "src/export/tree.h"

/*
 * fold_profile - fold all stacks of a profile.
 * Groups are between the root and the outermost frames: a process if
 * samples come from several, a thread with options->by_thread. Samples
 * without a stack are below "[no stack]".
 * @one_line: see struct label_options.
 * @ret: ended with call_tree_free(); borrows strings from the profile.
 * Errors: -ENOMEM; -EOVERFLOW too many nodes.
 */
int fold_profile(const struct profile *profile, const struct export_options *options, bool one_line,
		 struct call_tree **ret);

/* The node of each total of a profile. Ended with fold_places_done(). */
struct fold_places {
	const struct profile *profile; /* borrowed */
	uint32_t *order;               /* of its totals */
	uint32_t *node_of;             /* by order */
	bool by_process, by_thread;    /* whether these have groups */
};

/* fold_profile_places - as fold_profile(), with the node of each total. */
int fold_profile_places(const struct profile *profile, const struct export_options *options, bool one_line,
			struct fold_places *places, struct call_tree **ret);
void fold_places_done(struct fold_places *places);

/* fold_find - the node of a thread's stack, -1: without a stack; it may be an omitted one. 0: there is no such total.
 * */
uint32_t fold_find(const struct fold_places *places, int32_t pid, int32_t tid, int32_t stack);

/*
 * fold_stacks - the same without groups: one tree for all, with the node of each stack.
 * @ret_nodes: by index of the stack + 1, and [0] for samples without one: a node that is not omitted, 0 for
 *   a stack without totals. free(3) ends it.
 */
int fold_stacks(const struct profile *profile, const struct export_options *options, struct call_tree **ret,
		uint32_t **ret_nodes);

#endif
