/* SPDX-License-Identifier: MIT */
/* reader_affinity.h - on which processor samples are read. Private.
 *
 * Memory is as of a sample only where its reader takes the processor from the sampled thread (descheduled.c).
 * So the reading thread goes where the samples come from. To go there costs some ten microseconds: where
 * samples come from several processors in turns it stays on one of them. Where others do not let it in there (a
 * thread of real-time priority) it would see samples too late, if not lose them: then it goes wherever it may.
 */
#ifndef PROBING_CAPTURE_READER_AFFINITY_H
#define PROBING_CAPTURE_READER_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct reader_affinity {
	cpu_set_t allowed; /* before we bound ourselves */
	bool is_on, is_bound;
	unsigned cpu;      /* where we are, if bound */
	unsigned wanted;   /* where the last samples came from */
	unsigned n_wanted; /* so many in a row */
	unsigned n_stayed; /* samples from where we are, since we came */
	unsigned needed;   /* samples in a row that we go for */
	unsigned n_late;   /* samples in a row that had waited for long */
	unsigned rest;     /* samples until it is tried again to be there in time */
	unsigned next_rest;
};

/* Of the calling thread, from now on. */
void reader_affinity_begin(struct reader_affinity *follow);

/* A sample was taken there, and had to wait for so long: take note of it. */
void reader_affinity_note(struct reader_affinity *follow, unsigned cpu, uint64_t late_ns);

/* Shall we go to another processor, or be free again? */
bool reader_affinity_wants(const struct reader_affinity *follow);

/* Go to where samples come from, if that is allowed. Best when all that waited has been read. */
void reader_affinity_go(struct reader_affinity *follow);
/* The reader runs on the processor that it wanted: reset the counts that decide on the next move. */
void reader_affinity_went(struct reader_affinity *follow);

/* Go wherever we might have gone before. */
void reader_affinity_end(struct reader_affinity *follow);

#endif
