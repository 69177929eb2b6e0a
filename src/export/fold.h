/* fold.h - a profile's stacks merged into one call tree. */
#ifndef PROBING_EXPORT_FOLD_H
#define PROBING_EXPORT_FOLD_H

#include "src/export/export.h"
#include "src/export/tree.h"

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

#endif
