/* SPDX-License-Identifier: MIT */
/* grouping.h - grouping of frames by function, line, module or place in a source. */
#ifndef PROBING_REPORT_GROUPING_H
#define PROBING_REPORT_GROUPING_H

#include "src/profile/profile.h"

/* 0: the two are in the same group. */
typedef int frame_order(const struct profile_frame *a, const struct profile_frame *b);

frame_order order_by_function, order_by_line, order_by_module, order_by_source;

/* By frame of a profile, the number of its group; these are dense from 0. */
struct grouping {
	uint32_t *of_frame;
	size_t n;
};

/* @ret: ended with grouping_done(). -ENOMEM. */
int grouping_make(const struct profile *profile, frame_order *order, struct grouping *ret);
void grouping_done(struct grouping *grouping);

#endif
