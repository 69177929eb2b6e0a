/* SPDX-License-Identifier: MIT */
/* timeline.h - the metrics of a recording as a picture of characters: probing report --timeline. */
#ifndef PROBING_CLI_TIMELINE_H
#define PROBING_CLI_TIMELINE_H

#include <stdbool.h>

#include "src/cli/view.h"

/*
 * timeline_print - on stdout. @path: NULL: probing.db in this folder. @view: its times and PIDs select.
 * Returns 0, or prints a message and returns an exit status: as cli_open_recording(); there are no metrics (EXIT_NO_INPUT).
 */
int timeline_print(const char *path, const struct view *view, bool is_ascii);

#endif
