/* fold.h - a profile's stacks merged into one call tree. */
#ifndef PROBING_EXPORT_FOLD_H
#define PROBING_EXPORT_FOLD_H

#include "src/export/export.h"
#include "src/export/tree.h"

/* Where a stack went. */
struct fold_place {
	int32_t pid, tid, stack; /* pid and tid 0 where they are not told apart */
	uint32_t node;
	uint64_t samples, weight_ns;
};

/* Where all of them went: sorted by the first three. Ended with fold_places_done(). */
struct fold_places {
	struct fold_place *items;
	size_t n;
	bool by_process, by_thread;
};

void fold_places_done(struct fold_places *places);

/* fold_find - the node of a thread's stack, -1: nothing; may be one that call_tree_finish() left out. 0: it has none. */
uint32_t fold_find(const struct fold_places *places, int32_t pid, int32_t tid, int32_t stack);

/*
 * fold_profile - fold all stacks of a profile.
 * Groups stand between the root and the outermost frames: a process where
 * samples come from several, a thread with options->by_thread. Samples
 * without a stack go under "[no stack]".
 * @one_line: see struct label_options.
 * @ret: ended with call_tree_free(); borrows strings from the profile.
 * Errors: -ENOMEM; -EOVERFLOW too many nodes.
 */
int fold_profile(const struct profile *profile, const struct export_options *options, bool one_line,
		 struct call_tree **ret);

/* fold_profile_places - the same, and where each stack went. */
int fold_profile_places(const struct profile *profile, const struct export_options *options, bool one_line,
			struct fold_places *places, struct call_tree **ret);

#endif
