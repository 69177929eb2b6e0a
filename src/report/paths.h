/* SPDX-License-Identifier: MIT */
/* paths.h - each distinct shown stack of a profile, with its totals. */
#ifndef PROBING_REPORT_PATHS_H
#define PROBING_REPORT_PATHS_H

#include "src/profile/profile.h"

/* Totals of a profile, and the unit of its sums. */
struct whole {
	uint64_t samples, weight;
	bool by_weight;   /* sums are weights; false: samples, because there are no weights */
	const char *unit; /* of weights, where they are not nanoseconds; NULL: they are */
};
struct whole whole_of(const struct profile *profile);
/* The value of a total in that unit, and of all. */
uint64_t whole_value(const struct whole *whole, const struct profile_total *total);
uint64_t whole_all(const struct whole *whole);
/* Percent of all. */
double whole_share(const struct whole *whole, uint64_t value);

/*
 * paths_each - call @take for each distinct stack with samples.
 * @path: indices of frames, outermost first, borrowed for the call; @n_path 0: no frame is shown.
 * @total: of the stack, in all threads.
 * Errors: -ENOMEM.
 */
int paths_each(const struct profile *profile, bool show_interpreter,
	       void (*take)(void *data, const int32_t *path, size_t n_path, const struct profile_total *total),
	       void *data);

#endif
