/* functions.h - self and total time of every function of a profile. */
#ifndef PROBING_REPORT_FUNCTIONS_H
#define PROBING_REPORT_FUNCTIONS_H

#include "src/store/store.h"

struct function_time {
	const struct profile_frame *frame; /* where most of its time was spent; NULL: no function */
	const char *name;
	uint64_t self, total; /* in the unit of the sums */
};

struct function_sums {
	struct function_time *items; /* each was seen at least once; in no useful order */
	size_t n_items;
	uint64_t samples, weight_ns; /* of the whole profile */
	bool by_weight;              /* unit: that of weights; otherwise, for want of them, samples */
	const char *unit;            /* of weights, where they are not nanoseconds; NULL: they are */
};

/*
 * functions_sum - add up a profile by function.
 * A function that calls itself counts once in its total. Samples without a
 * stack are one item of no function, "[no stack]".
 * @ret: ended with functions_done(); borrows from the profile.
 * Errors: -ENOMEM.
 */
int functions_sum(const struct profile *profile, bool show_interpreter, struct function_sums *ret);
void functions_done(struct function_sums *sums);

#endif
