/* SPDX-License-Identifier: MIT */
/* announce_targets.c - the first lines of a recording of several processes. */
#include <stdio.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record_options.h"

enum { NAMED = 8 };

void record_announce_all(const struct record_options *options, const struct recording *recording)
{
	const struct targets *targets = &recording->targets;

	if (options->quiet)
		return;
	targets_print_refused(targets, "recorded");
	if (targets->n == 1)
		return;
	cli_say("recording %zu processes: ", targets->n);
	for (size_t i = 0; i < targets->n && i < NAMED; i++) {
		CLEANUP(freep) char *name = proc_text(targets->pids[i], "comm", 64);

		cli_say("%s%d", i > 0 ? ", " : "", (int)targets->pids[i]);
		if (name && name[0])
			cli_say(" (%s)", name);
	}
	if (targets->n > NAMED)
		cli_say(" and %zu others", targets->n - NAMED);
	cli_say(", at %g Hz%s\n", options->capture.hz, options->duration_s > 0 ? "" : "; Ctrl-C ends it");
}
