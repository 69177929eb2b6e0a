/* SPDX-License-Identifier: MIT */
/* record.h - the options of `probing record`, and the steps of the verb. */
#ifndef PROBING_CLI_RECORD_H
#define PROBING_CLI_RECORD_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/capture/capture.h"
#include "src/cli/record/background.h"
#include "src/cli/record/picture.h"
#include "src/cli/record/run.h"
#include "src/pipeline/pipeline.h"
#include "src/target/target.h"

/* ---- options.c, event.c, announce.c ---- */

struct record_options {
	struct target_options targets;
	double duration_s, delay_s; /* delay_s negative: until the start command */
	const char *control;        /* "FIFO" or "FIFO,REPLY"; NULL: none */
	struct capture_options capture;
	const char *event_name; /* NULL: the CPU clock; "list": list the events, and end */
	struct sampled_event event;
	bool hz_given;
	const char *path;
	mode_t mode;    /* of the recording; 0: default */
	char **command; /* NULL: attach to targets */
	struct pipeline_options pipeline;
	struct picture picture; /* of the recording, when it has ended */
	bool quiet, no_summary;
	bool is_background; /* go on in a process of its own */
	bool is_distinct;   /* the path gets the PID if another recorder writes it */
	char *own_path;     /* that path; NULL: none */
	bool metrics_only;  /* without samples */
	const char *to;     /* URL of a database that gets the recording, too; NULL: none */
};

/* Fills a struct record_options with preset defaults; checks it as a whole. Strings are argv's. */
extern const struct argp record_argp;

/* As the option names them, and the column run.stack_source; by enum capture_source. */
extern const char *const record_source_names[];
extern const char *const record_mode_names[]; /* run.mode; by enum capture_mode */

/*
 * record_announce - print on stderr how it records, and which features are missing and why, unless quiet.
 * @python:       the version, "": none.
 * @python_error: why its frames cannot be read, 0: they can.
 */
void record_announce(const struct record_options *options, const struct recording *recording, const char *python,
		     int python_error);

/* record_announce_all - of several processes found, print the recorded ones, and the ones left out. */
void record_announce_all(const struct record_options *options, const struct recording *recording);

/*
 * record_choose_event - resolve and check the event and its period: options->event and the fields in
 * options->capture. Returns 0, or prints a message and returns an exit status.
 * @ret: the format of the event's records; NULL: it has none.
 */
int record_choose_event(struct record_options *options, struct tracepoint **ret);

/* record_list_events - list the events for --event on stdout. Returns an exit status. */
int record_list_events(void);

/* Whether it records for long, and is to disturb the machine less for it. */
bool record_is_always_on(const struct record_options *options);

/* Columns of the run, where the event is not the CPU clock. */
int record_put_event(struct store *store, const struct record_options *options);

/* The unit of weights, NULL: nanoseconds. And "at 99 Hz", "at every page-faults", in at least 256 bytes. */
const char *record_unit(const struct record_options *options);
const char *record_pace(const struct record_options *options, char *to, size_t n_bytes);

/* ---- defaults.c: from the agent of the process, then from the environment ---- */

/*
 * record_defaults - fill in the rate and the retention: of one process the configuration of its agent, else
 * PROBING_SAMPLE_RATE and PROBING_RETENTION_DAYS; quiet by PROBING_LOGLEVEL. A value of the environment that is none
 * is a usage error.
 */
void record_defaults(struct argp_state *state, struct record_options *options);

/* ---- metrics.c: --metrics-only, metrics of processes and the machine, without samples ---- */

/*
 * record_metrics - until the duration is over, SIGINT or SIGTERM comes, or the processes that were named by number have ended.
 * Signals are blocked (recording_block_signals()). Without a selection of processes: all of the machine.
 * @background: which --background has begun.
 * Returns an exit status, after a message.
 */
int record_metrics(struct record_options *options, struct background *background);

/* ---- ship.c: --to, a process beside the recorder that sends the recording (verb_ship.c) ---- */

/*
 * record_ship - start "probing ship PATH --to URL" in a session of its own. It follows the recording, and goes on after the
 * recorder has ended, until all has been sent: the recorder never waits for it. Its messages are in PATH.ship.log.
 * @path: of the recording, which exists.
 * @ret:  its PID.
 * Errors: those of new_file_open_log(); what posix_spawn(3) reports.
 */
int record_ship(const char *path, const char *url, pid_t *ret);

#endif
