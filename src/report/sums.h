/* SPDX-License-Identifier: MIT */
/* sums.h - self and total time of every function, line, module, thread or process of a profile. */
#ifndef PROBING_REPORT_SUMS_H
#define PROBING_REPORT_SUMS_H

#include "src/report/grouping.h"
#include "src/report/paths.h"

struct report_sum {
	const struct profile_frame *frame; /* where most of its time was spent; NULL: of no frame */
	const char *name;
	int32_t pid, tid;     /* of a thread or process; 0: of none */
	const char *process;  /* its name, where it is a thread; NULL: not known */
	uint64_t self, total; /* in the unit of struct whole */
	uint64_t samples;     /* of total */
	uint64_t most;        /* of a label: self time of frame's function */
};

struct report_sums {
	struct report_sum *items; /* with at least one sample each; unordered */
	size_t n_items;
	struct whole whole;
};

/*
 * report_sums_of_frames - add up a profile by groups of frames.
 * A frame that is on a stack several times counts once in its total. Samples without a
 * stack are one item of no frame, "[no stack]".
 * @ret: ended with report_sums_done(); borrows from the profile.
 * Errors: -ENOMEM.
 */
int report_sums_of_frames(const struct profile *profile, bool show_interpreter, frame_order *order,
			  struct report_sums *ret);
void report_sums_done(struct report_sums *sums);

/*
 * report_sums_of_tasks - add up a profile by thread, or by process; self and total are the same.
 * As above; a thread whose name is not known is "[thread]", a process "[process]".
 */
int report_sums_of_tasks(const struct profile *profile, bool by_process, struct report_sums *ret);

/*
 * report_sums_of_labels - add up a profile by its totals' labels; frame is the function with the most self time there.
 * @none: the name of those without one; borrowed.
 */
int report_sums_of_labels(const struct profile *profile, bool show_interpreter, const char *none,
			  struct report_sums *ret);

/* The largest first: by self time or by total, then by the other, then by name. */
void report_sums_sort(struct report_sums *sums, bool by_total);

#endif
