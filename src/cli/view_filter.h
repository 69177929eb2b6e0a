/* SPDX-License-Identifier: MIT */
/* view_filter.h - what of a profile is shown, once it is in memory. Private to view.c. */
#ifndef PROBING_CLI_VIEW_FILTER_H
#define PROBING_CLI_VIEW_FILTER_H

#include "src/cli/view.h"

/* view_filter - drop totals and samples of what the view does not show. The tree stays as it is. -ENOMEM. */
int view_filter(struct profile *profile, const struct view *view);

#endif
