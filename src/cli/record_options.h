/* record_options.h - what was asked of probing record, and what is said about it at the start. */
#ifndef PROBING_CLI_RECORD_OPTIONS_H
#define PROBING_CLI_RECORD_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cli/recording_run.h"
#include "src/pipeline/pipeline.h"
#include "src/record/record.h"

struct record_options {
	pid_t pid;
	double duration_s;
	struct capture_options capture;
	const char *path;
	char **command; /* NULL: attach to pid */
	struct pipeline_options pipeline;
	bool quiet;
};

/* Fills a struct record_options, whose defaults are set before; checked as a whole. Strings are argv's. */
extern const struct argp record_argp;

/* As the option names them, and the column run.stack_source; by enum capture_source. */
extern const char *const record_source_names[];
extern const char *const record_mode_names[]; /* run.mode; by enum capture_mode */

/*
 * record_announce - what is recorded, and what is missing for more; on stderr, unless it shall be quiet.
 * @python:       the version that was found, "": none.
 * @python_error: why one that is there cannot be read, 0: it can.
 */
void record_announce(const struct record_options *options, const struct recording *recording,
		     const char *python, int python_error);

#endif
