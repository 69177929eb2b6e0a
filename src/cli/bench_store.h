/* SPDX-License-Identifier: MIT */
/* bench_store.h - the runs of a command as one recording. */
#ifndef PROBING_CLI_BENCH_STORE_H
#define PROBING_CLI_BENCH_STORE_H

#include <stddef.h>

#include "src/cli/bench_command.h"
#include "src/cli/new_file_options.h"
#include "src/cli/progress.h"

struct bench_result {
	char *recording; /* its file; NULL: it was only timed */
	struct bench_measure measure;
};

/*
 * bench_store - write one file of all recordings.
 * @results: in the order of time.
 * @command: as one line.
 * @out:     options of the file; its path is set.
 * Returns 0, or prints a message and returns an exit status; the caller calls progress_end().
 */
int bench_store(const struct bench_result *results, size_t n, const char *command, const struct new_file_options *out,
		struct progress *progress);

#endif
