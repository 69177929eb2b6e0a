/* SPDX-License-Identifier: MIT */
/* top_run.h - the live view under way: samples in, keys in, pictures out. */
#ifndef PROBING_CLI_TOP_RUN_H
#define PROBING_CLI_TOP_RUN_H

#include <signal.h>

#include "src/cli/top_options.h"
#include "src/cli/top_watch.h"
#include "src/pipeline/pipeline.h"

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

#endif
