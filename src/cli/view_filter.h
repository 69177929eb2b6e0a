/* SPDX-License-Identifier: MIT */
/* view_filter.h - filters a profile in memory. Private to view.c. */
#ifndef PROBING_CLI_VIEW_FILTER_H
#define PROBING_CLI_VIEW_FILTER_H

#include "src/cli/view.h"

/* view_filter - drop totals and samples outside the view. The tree remains unchanged. -ENOMEM. */
int view_filter(struct profile *profile, const struct view *view);

#endif
