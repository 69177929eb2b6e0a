/* SPDX-License-Identifier: MIT */
/* bench.h - the runs of a command: each is timed or recorded, and all become one recording. */
#ifndef PROBING_CLI_BENCH_H
#define PROBING_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cli/new_file_options.h"
#include "src/cli/progress.h"

/* ---- bench_command.c: one run ---- */

/* How the command is run. Strings are borrowed. */
struct bench_command {
	char **command;        /* ends with NULL */
	char **record_options; /* of probing record, ends with NULL */
	bool show_output;      /* false: discard its output */
};

struct bench_measure {
	uint64_t started_ns; /* CLOCK_REALTIME */
	double wall_s, user_s, sys_s;
	int64_t max_rss_bytes;
	int exit_status; /* as a shell has it */
};

/*
 * bench_measure - run it once and wait for its end.
 * @recording: the file to record it into; NULL: only measure it. With a recording the times include the recorder's.
 * Errors: those of fork(2) and wait4(2). The command's result is in exit_status.
 */
int bench_measure(const struct bench_command *command, const char *recording, struct bench_measure *ret);

/* ---- bench_store.c: the recording of all runs ---- */

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
