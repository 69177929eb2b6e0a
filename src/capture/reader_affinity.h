/* SPDX-License-Identifier: MIT */
/* reader_affinity.h - the processor on which samples are read. Private.
 *
 * Memory is as of a sample only if its reader takes the processor from the sampled thread (descheduled.c).
 * So the reading thread moves to the processor of the samples. A move costs some ten microseconds: if
 * samples come alternately from several processors, it stays on one of them. If it does not get a processor (a
 * real-time thread runs there), it would read samples too late, or lose them: then it runs on any.
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
	unsigned wanted;   /* processor of the last samples */
	unsigned n_wanted; /* so many in a row */
	unsigned n_stayed; /* samples from our processor, since the move to it */
	unsigned needed;   /* samples in a row that cause a move */
	unsigned n_late;   /* samples in a row that had waited for long */
	unsigned rest;     /* samples until it is tried again to be there in time */
	unsigned next_rest;
};

/* Of the calling thread, from now on. */
void reader_affinity_begin(struct reader_affinity *follow);

/* Note a sample of that processor, and how long it waited. */
void reader_affinity_note(struct reader_affinity *follow, unsigned cpu, uint64_t late_ns);

/* Whether to move to another processor, or to run on any again. */
bool reader_affinity_wants(const struct reader_affinity *follow);

/* Go to where samples come from, if that is allowed. Best when all that waited has been read. */
void reader_affinity_go(struct reader_affinity *follow);
/* The reader runs on the processor that it wanted: reset the counts that decide on the next move. */
void reader_affinity_went(struct reader_affinity *follow);

/* Run on any processor that was allowed before. */
void reader_affinity_end(struct reader_affinity *follow);

#endif
