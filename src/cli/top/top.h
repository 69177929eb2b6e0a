/* SPDX-License-Identifier: MIT */
/* top.h - the options of `probing top`, and the live view under way: samples in, keys in, pictures out. */
#ifndef PROBING_CLI_TOP_H
#define PROBING_CLI_TOP_H

#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/capture/capture.h"
#include "src/cli/view.h"
#include "src/pipeline/pipeline.h"
#include "src/top/top.h"

/* ---- options.c ---- */

enum { TOP_FLEET_WINDOW_S = 60 }; /* hosts send their samples about that often */

struct top_arguments {
	pid_t pid;
	const char *address; /* of a fleet; NULL: a process is shown */
	struct view view;    /* of a fleet */
	bool has_window;     /* an option has set top.window_s */
	char **command;      /* NULL: attach to pid */
	mode_t mode;         /* of output; 0: default */
	const char *output;  /* file for the command's output; NULL: discard it */
	struct capture_options capture;
	struct top_options top;
	double delay_s;    /* between two refreshes */
	unsigned n_frames; /* end after so many; 0: do not */
	unsigned n_rows;   /* of each, in batches */
	bool batch, exit, async, subprocesses;
};

/* Fills a struct top_arguments with preset defaults; checks it as a whole. Strings are argv's. */
extern const struct argp top_argp;

/* ---- watch.c: state of the displayed process, from /proc and its interpreter ---- */

struct top_watch;

/* -ENOMEM. */
int top_watch_new(pid_t pid, struct top_watch **ret);
void top_watch_free(struct top_watch *watch);

/* Read which thread holds the GIL, and whether garbage is being collected; some times a second. */
void top_watch_look(struct top_watch *watch, uint64_t now_ns);

/* top_watch_read - shares, threads and CPU time since the last call. @ret: these fields are set; borrowed. */
void top_watch_read(struct top_watch *watch, uint64_t now_ns, struct top_status *ret);

/* ---- run.c: the loop ---- */

/* The displayed process, and its tools. Filled by verb_top.c. */
struct top_session {
	const struct top_arguments *arguments;
	struct pipeline_options pipeline_options;
	struct capture *capture;
	struct pipeline *pipeline;
	struct top *top;
	struct top_watch *watch;
	struct screen *screen; /* NULL: frames are printed */
	int keys;              /* where keys come from; -1: nowhere */
	/*
	 * Instead of capture, pipeline and watch, before each refresh: put what is to be shown into top, and say what it is
	 * of. Returns 0, -EAGAIN to try again at the next one, or an error that ends the view.
	 */
	int (*fetch)(void *data, struct top *top, struct top_status *ret);
	void *fetch_data;
	pid_t pid;
	bool is_child;
	char *command; /* of the process, for the header */
	/* Results. */
	int signal;        /* that ended it; 0: none */
	int error;         /* negative errno that ended it */
	bool end_command;  /* the user wants the command to end, too */
	bool write_failed; /* error is of printing */
};

/* Block the signals that the loop takes. @ret_before: the mask to give to a child. */
void top_block_signals(sigset_t *ret_before);

/* A pipeline into a new store, replacing any earlier one. Returns an error of top_begin() or pipeline_new(). */
int top_start_pipeline(struct top_session *session);

/* Until q, a signal, enough frames, or, by option or in batches, the end of the process. Errors are in
 * session->error. */
void top_run(struct top_session *session);

/* ---- fleet.c: the last samples that the hosts of a fleet have sent ---- */

struct top_fleet;

/*
 * top_fleet_open - connect.
 * @session: gets the functions that fetch samples.
 * @ret: ended with top_fleet_close(), also after a failure.
 * Returns 0, or prints a message and returns an exit status.
 */
int top_fleet_open(const struct top_arguments *arguments, struct top_session *session, struct top_fleet **ret);
void top_fleet_close(struct top_fleet *fleet);

/* top_fleet_fail - the sentence for an error that ended the view; for return statements. */
int top_fleet_fail(const struct top_fleet *fleet, int error);

#endif
