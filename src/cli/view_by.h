/* SPDX-License-Identifier: MIT */
/* view_by.h - "--by": stacks in groups, by what the program did. For verbs that make a tree. */
#ifndef PROBING_CLI_VIEW_BY_H
#define PROBING_CLI_VIEW_BY_H

#include <argp.h>

#include "src/cli/view.h"

enum { KEY_VIEW_BY = 0xd00 };

#define VIEW_BY_ROW                                                                                                         \
	{                                                                                                                   \
		"by", KEY_VIEW_BY, "WHAT", 0,                                                                               \
			"Group stacks by what the program did: step, span, phase, or, of torch, module, stage (forward or " \
			"backward), or torch: both; or by rank of the distributed job",                                     \
			0                                                                                                   \
	}

/* view_by_parse - the option. An unknown word ends the process (argp_error). */
void view_by_parse(struct argp_state *state, const char *argument, struct view *view);

/* view_by_check - 0, or prints that the format cannot group stacks and returns an exit status. */
int view_by_check(const struct view *view, const struct exporter *exporter);

#endif
