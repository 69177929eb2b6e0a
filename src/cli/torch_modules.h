/* SPDX-License-Identifier: MIT */
/* torch_modules.h - the modules of torch's models of a recording or a process: probing report --by torch. */
#ifndef PROBING_CLI_TORCH_MODULES_H
#define PROBING_CLI_TORCH_MODULES_H

#include <sqlite3.h>
#include <stdbool.h>

#include "src/cli/view.h"

/*
 * torch_modules_print - on stdout. @path: NULL: probing.db in this folder; a number: a process, whose rows are read as they are.
 * @view: its PIDs and, of a recording, its times select. Returns 0, or prints a message and returns an exit status: as
 * endpoint_open(); there are no such rows (EXIT_NO_INPUT).
 */
int torch_modules_print(const char *path, const struct view *view, const struct report_options *options);

/* Whether a recording has rows of torch_trace. */
bool torch_modules_are_there(sqlite3 *db);

#endif
