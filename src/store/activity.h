/* SPDX-License-Identifier: MIT */
/* activity.h - what a program did at a moment, by its own rows: its step, and the spans that were open. Private.
 *
 * Rows of `steps` and `spans` (docs/rings.md) become two kinds of timelines in memory: the steps of a thread and of its
 * process, and the spans of a thread. A moment is looked up in them by binary search; successive moments of one thread
 * cost a few comparisons.
 */
#ifndef PROBING_STORE_ACTIVITY_H
#define PROBING_STORE_ACTIVITY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct activity;

struct doing {
	bool has_step;
	int64_t step;
	const char *span, *phase; /* innermost and outermost open span; NULL: none. Borrowed */
};

/*
 * activity_load - of a recording; one without such rows is no error.
 * @ret: ended with activity_free(). Errors: -ENOMEM; -EBADMSG a block is damaged; -E2BIG more than 16 million rows;
 * negative errno of reading.
 */
int activity_load(sqlite3 *db, struct activity **ret);

/*
 * activity_load_passes - the same of the passes of torch's modules (docs/torch.md) in place of spans: of a moment, the span is the
 * module that began last in the thread and goes on, and the phase is its stage: forward, backward, step, data.
 */
int activity_load_passes(sqlite3 *db, struct activity **ret);
void activity_free(struct activity *activity);

/* A number that differs where rows were added since. */
int64_t activity_version(sqlite3 *db);

/* activity_find - at a moment (CLOCK_REALTIME, ns). */
void activity_find(struct activity *activity, int64_t pid, int64_t tid, uint64_t time_ns, struct doing *ret);

#endif
