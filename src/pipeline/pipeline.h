/* pipeline.h - from captured events to rows.
 *
 * Two threads. The capturing thread (the caller's) keeps the processes and
 * their address spaces, unwinds, stitches and interns; what is new goes into a
 * batch. Once a flush interval the batch is handed to the writing thread,
 * which puts it into the store in one transaction and then looks names up,
 * so that neither the disk nor debug information is ever in the way of a
 * sample. The two share nothing but the queue of batches, and on the way back a
 * list of places where generated code has been replaced.
 */
#ifndef PROBING_PIPELINE_H
#define PROBING_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sample.h"
#include "src/record/record.h"
#include "src/store/store.h"

struct pipeline;

struct pipeline_counts {
	uint64_t samples;
	uint64_t by_verdict[VERDICT_N];
	uint64_t by_end[STACK_N_ENDS];
	uint64_t python_cut; /* stacks whose Python part was cut */
	uint64_t n_stacks, n_frames;
	uint64_t first_sample_ns; /* CLOCK_MONOTONIC; 0: none yet */
};

/*
 * pipeline_new - start the writing thread.
 * @store: taken over on success; its run row has been put.
 */
int pipeline_new(struct store *store, struct pipeline **ret);

/* Ends the thread without marking the run as clean. NULL is fine. */
void pipeline_free(struct pipeline *pipeline);
void pipeline_freep(struct pipeline **pipeline);

/*
 * pipeline_attach - make a running process known: its maps, its interpreter.
 * @python: receives its Python's version ("" where none was found) and
 *          @python_error why one that is there cannot be read (0: none, or fine).
 * Errors: -ESRCH, -EPERM its memory may not be read, -ENOMEM.
 */
int pipeline_attach(struct pipeline *pipeline, pid_t pid, char *python, size_t python_bytes,
		    int *python_error);

/* pipeline_expect - a child that is about to exec; nothing is known of it yet. */
int pipeline_expect(struct pipeline *pipeline, pid_t pid);

/* Take one event. Errors: -ENOMEM, and what the writing thread met (see pipeline_error). */
int pipeline_event(struct pipeline *pipeline, const struct capture_event *event);

/* Hand over what has been gathered. Does not wait for the disk. */
int pipeline_flush(struct pipeline *pipeline);

/* 0, or the negative errno on which writing has stopped (-ENOSPC, -EIO). */
int pipeline_error(const struct pipeline *pipeline);

/*
 * pipeline_finish - flush, look up all names still missing, mark the run clean.
 * @counters: written as rows of counter, until a NULL name.
 */
struct pipeline_counter {
	const char *name;
	uint64_t value;
};
int pipeline_finish(struct pipeline *pipeline, const struct pipeline_counter *counters);

void pipeline_read_counts(const struct pipeline *pipeline, struct pipeline_counts *ret);

/* The Python seen first: version, or why it could not be read; "" none. Borrowed. */
const char *pipeline_python(const struct pipeline *pipeline);

/* Bytes of the file as of the last write. */
int64_t pipeline_store_bytes(const struct pipeline *pipeline);

#endif
