/* SPDX-License-Identifier: MIT */
/* record_options.h - what was asked of probing record, and what is said about it at the start. */
#ifndef PROBING_CLI_RECORD_OPTIONS_H
#define PROBING_CLI_RECORD_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cli/picture.h"
#include "src/cli/recording_run.h"
#include "src/cli/targets.h"
#include "src/pipeline/pipeline.h"
#include "src/capture/capture.h"

struct record_options {
	struct target_options targets;
	double duration_s, delay_s; /* delay_s negative: until told to begin */
	const char *control;        /* "FIFO" or "FIFO,REPLY"; NULL: none */
	struct capture_options capture;
	const char *event_name; /* NULL: the CPU clock; "list": say what there is, and end */
	struct sampled_event event;
	bool hz_given;
	const char *path;
	mode_t mode;    /* of the recording; 0: not asked for */
	char **command; /* NULL: attach to targets */
	struct pipeline_options pipeline;
	struct picture picture; /* of the recording, when it has ended */
	bool quiet, no_summary;
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
void record_announce(const struct record_options *options, const struct recording *recording, const char *python,
		     int python_error);

/* record_announce_all - of those that were found, who is recorded, where they are several, and who is left out. */
void record_announce_all(const struct record_options *options, const struct recording *recording);

/*
 * record_choose_event - which event, how often, and whether it is to be had here: options->event and those of
 * options->capture. Returns an exit status, after having said why.
 * @ret: what the event's records are made of; NULL: it has none.
 */
int record_choose_event(struct record_options *options, struct tracepoint **ret);

/* record_list_events - what --event takes here, on stdout. Returns an exit status. */
int record_list_events(void);

/* Columns of the run, where the event is not the CPU clock. */
int record_put_event(struct store *store, const struct record_options *options);

/* What weights count, NULL: nanoseconds. And "at 99 Hz", "at every page-faults", in at least 256 bytes. */
const char *record_unit(const struct record_options *options);
const char *record_pace(const struct record_options *options, char *to, size_t n_bytes);

#endif
