/* recording_run.h - a recording under way: the loop between its start and its end. */
#ifndef PROBING_CLI_RECORDING_RUN_H
#define PROBING_CLI_RECORDING_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cli/targets.h"
#include "src/pipeline/pipeline.h"
#include "src/record/record.h"

struct recording {
	struct capture *capture;
	struct pipeline *pipeline;
	pid_t pid;          /* the command, or the first of the targets */
	struct targets targets; /* when the last of these has ended the recording does */
	bool is_child;      /* we started it: signals are passed on, its status is reaped */
	double duration_s;  /* 0: until it ends */
	bool progress;      /* a line that is kept up to date on stderr */
	uint64_t started_ns; /* CLOCK_MONOTONIC */
	/* What became of it. */
	bool child_ended;
	int child_status;   /* as waitpid(2) gives it */
	int error;          /* negative errno on which recording stopped early */
};

/* Block the signals the loop takes; @ret_before: the mask to give to a child. */
void recording_block_signals(sigset_t *ret_before);

/*
 * recording_run - take events until the duration is over, the process has
 * ended, or a signal asks for the end (attached only: a child decides itself).
 * Errors: what epoll, signalfd and pidfd_open report. What goes wrong while
 * recording is in recording->error, so that what is there can be kept.
 */
int recording_run(struct recording *recording);

/* Wait for the child's end after recording has stopped, passing signals on. */
void recording_wait_child(struct recording *recording);

#endif
