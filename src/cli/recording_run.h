/* SPDX-License-Identifier: MIT */
/* recording_run.h - a recording under way: the loop between its start and its end. */
#ifndef PROBING_CLI_RECORDING_RUN_H
#define PROBING_CLI_RECORDING_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cli/control.h"
#include "src/cli/least_privilege.h"
#include "src/cli/targets.h"
#include "src/pipeline/pipeline.h"
#include "src/capture/capture.h"

struct matching;
struct picture;

struct recording {
	struct capture *capture;
	struct pipeline *pipeline;
	pid_t pid;                 /* the command, or the first of the targets */
	struct targets targets;    /* when the last of these has ended the recording does */
	bool is_child;             /* we started it: signals are passed on, its status is reaped */
	double duration_s;         /* of recorded time, see recording_recorded_ns(); 0: until it ends */
	double delay_s;            /* after which a recording that begins paused goes on; negative: when told to */
	struct control control;    /* commands; opened or empty before the loop, closed by who opened it */
	struct matching *matching; /* who else is meant, as they start; NULL: nobody */
	size_t n_joined;           /* of them */
	bool follows_children;     /* of those recorded */
	struct picture *picture;   /* to be made when it has ended; borrowed */
	bool follows_waits;        /* has no pauses: a wait needs both of its context switches */
	bool keeps_newest; /* always on: what was gathered may wait for seconds, for the sake of a quiet machine */
	struct privilege_needs needs; /* of privileges, from the loop's beginning on */
	uint64_t writer_capabilities; /* the writing thread's */
	bool progress;                /* a line that is kept up to date on stderr */
	bool is_paused;
	uint64_t paused_ns; /* CLOCK_MONOTONIC, since when; of a recording that is paused */
	/* What became of it. */
	uint64_t pauses_ns;       /* how long it was paused, the current pause left out */
	uint64_t began_ns;        /* CLOCK_MONOTONIC, when the loop did */
	uint64_t recorded_ns;     /* from then to its end, pauses left out */
	int end_timer;            /* of the loop, which owns it; -1: there is none */
	unsigned n_flushes_asked; /* and not answered yet */
	bool child_ended;
	int child_status;   /* as waitpid(2) gives it */
	int restrict_error; /* why it went on with more privileges than it needs; 0: it did not */
	int error;          /* negative errno on which recording stopped early */
};

/* Block the signals the loop takes; @ret_before: the mask to give to a child. */
void recording_block_signals(sigset_t *ret_before);

/*
 * recording_run - take events until the duration is over, the process has
 * ended, or a signal (attached only: a child decides itself) or a command asks for the end.
 * One that shall begin paused has a capture that is (capture_options), and is_paused set.
 * Errors: what epoll, signalfd and pidfd_open report. What goes wrong while
 * recording is in recording->error, so that what is there can be kept.
 */
int recording_run(struct recording *recording);

/* Take what has been sampled, until there is no more. Negative errno. */
int recording_take_all(struct recording *recording);

/* Wait for the child's end after recording has stopped, passing signals on. */
void recording_wait_child(struct recording *recording);

#endif
