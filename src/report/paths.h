/* SPDX-License-Identifier: MIT */
/* paths.h - each stack of a profile once, as it is shown, with what was spent on it. */
#ifndef PROBING_REPORT_PATHS_H
#define PROBING_REPORT_PATHS_H

#include "src/profile/profile.h"

/* What a whole profile adds up to, and what its sums count. */
struct whole {
	uint64_t samples, weight;
	bool by_weight;   /* sums count weights; otherwise, for want of them, samples */
	const char *unit; /* of weights, where they are not nanoseconds; NULL: they are */
};
struct whole whole_of(const struct profile *profile);
/* What sums count of a total, and of all. */
uint64_t whole_value(const struct whole *whole, const struct profile_total *total);
uint64_t whole_all(const struct whole *whole);
/* Percent of all. */
double whole_share(const struct whole *whole, uint64_t value);

/*
 * paths_each - call @take for each distinct stack with samples.
 * @path: indices of frames, outermost first, borrowed for the call; @n_path 0: nothing of it is shown.
 * @total: of the stack, whichever threads it was met in.
 * Errors: -ENOMEM.
 */
int paths_each(const struct profile *profile, bool show_interpreter,
	       void (*take)(void *data, const int32_t *path, size_t n_path, const struct profile_total *total),
	       void *data);

#endif
