/* SPDX-License-Identifier: MIT */
/* run.h - a recording under way: the loop between its start and its end. */
#ifndef PROBING_CLI_RECORD_RUN_H
#define PROBING_CLI_RECORD_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/capture/capture.h"
#include "src/cli/record/background.h"
#include "src/cli/record/least_privilege.h"
#include "src/pipeline/pipeline.h"
#include "src/target/target.h"

/* ---- run.c ---- */

struct matching;
struct picture;

struct recording {
	struct capture *capture;
	struct pipeline *pipeline;
	pid_t pid;                 /* the command, or the first of the targets */
	struct targets targets;    /* when the last of these has ended the recording does */
	bool is_child;             /* we started it: signals are passed on, its status is reaped */
	double duration_s;         /* of recorded time, see recording_recorded_ns(); 0: until it ends */
	double delay_s;            /* after which a recording that starts paused resumes; negative: by command */
	struct control control;    /* commands; opened or empty before the loop, closed by its opener */
	struct matching *matching; /* processes to add as they start; NULL: none */
	size_t n_joined;           /* number of added ones */
	bool follows_children;     /* of those recorded */
	struct picture *picture;   /* to be made when it has ended; borrowed */
	bool follows_waits;        /* has no pauses: a wait needs both of its context switches */
	bool is_always_on;         /* batches may wait for seconds, to disturb the machine less */
	struct background background;
	struct privilege_needs needs; /* of privileges, from the loop's beginning on */
	uint64_t writer_capabilities; /* the writing thread's */
	bool progress;                /* show a progress line on stderr */
	bool is_paused;
	uint64_t paused_ns; /* CLOCK_MONOTONIC, since when; of a recording that is paused */
	/* Results. */
	uint64_t pauses_ns;       /* total of pauses, without the current one */
	uint64_t began_ns;        /* CLOCK_MONOTONIC, start of the loop */
	uint64_t recorded_ns;     /* from then to its end, pauses left out */
	struct event_loop *loop;  /* while it runs; else NULL */
	int end_timer;            /* a source of the loop; -1: there is none */
	unsigned n_flushes_asked; /* and not answered yet */
	bool child_ended;
	int child_status;   /* as waitpid(2) gives it */
	int restrict_error; /* why it kept more privileges than it needs; 0: it did not */
	int error;          /* negative errno on which recording stopped early */
};

/* Block the signals the loop takes; @ret_before: the mask to give to a child. */
void recording_block_signals(sigset_t *ret_before);

/*
 * recording_run - take events until the duration is over, the process has
 * ended, or a signal (attached only: a child decides itself) or a command ends it.
 * A recording that starts paused has a paused capture (capture_options), and is_paused set.
 * Errors: what epoll, signalfd and pidfd_open report. Errors while
 * recording are in recording->error, so that earlier data can be kept.
 */
int recording_run(struct recording *recording);

/* Take all events until there are no more. Negative errno. */
int recording_take_all(struct recording *recording);

/* Wait for the child's end after recording has stopped, passing signals on. */
void recording_wait_child(struct recording *recording);

/* ---- control.c: pausing, resuming and querying a recording, for run.c ---- */

/* Time that was recorded up to now: pauses do not count. */
uint64_t recording_recorded_ns(const struct recording *recording);

/* Errors go to recording->error. Takes all earlier samples first. */
void recording_pause(struct recording *recording);
void recording_resume(struct recording *recording);

/* The end of a recording ends its pause, too. */
void recording_end_pause(struct recording *recording);

/* Execute the commands in the FIFO. Returns whether to end. */
bool recording_obey(struct recording *recording);

/* Answer pending flush commands once the data are in the file. Call it before a flush of our own. */
void recording_answer_flush(struct recording *recording);
/* At the end, when all data are in the file; @error: negative: they are not. */
void recording_answer_last(struct recording *recording, int error);

#endif
