/* SPDX-License-Identifier: MIT */
/* fold_order.h - in which order the totals of a profile are folded: by group, then by stack. */
#ifndef PROBING_EXPORT_FOLD_ORDER_H
#define PROBING_EXPORT_FOLD_ORDER_H

#include "src/profile/profile.h"

/* The key of a folded total; pid and tid are 0 if there are no groups of them. */
struct fold_entry {
	int32_t pid, tid, stack;
};
struct fold_entry fold_entry_of(const struct profile_total *total, bool by_process, bool by_thread);
int fold_compare(const struct fold_entry *left, const struct fold_entry *right);

/* fold_order - indices of the totals, as entries; free(3) ends it. -ENOMEM; -EOVERFLOW 2^32 totals. */
int fold_order(const struct profile *profile, bool by_process, bool by_thread, uint32_t **ret);

/* fold_sort_threads - the threads by pid and tid; free(3) ends the list. -ENOMEM. */
int fold_sort_threads(const struct profile *profile, const struct profile_thread ***ret);

/*
 * fold_find_thread - the first thread that is not before an entry's; NULL: all are.
 * @at: 0, then as the entry before left it: entries come in the threads' order, so one pass serves all.
 */
const struct profile_thread *fold_find_thread(const struct profile_thread *const *threads, size_t n, size_t *at,
					      const struct fold_entry *entry);

#endif
