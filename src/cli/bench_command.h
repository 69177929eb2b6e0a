/* SPDX-License-Identifier: MIT */
/* bench_command.h - one run of a command, timed or recorded. */
#ifndef PROBING_CLI_BENCH_COMMAND_H
#define PROBING_CLI_BENCH_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
