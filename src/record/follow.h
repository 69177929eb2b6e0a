/* follow.h - on which processor samples are read. Private.
 *
 * Memory is as of a sample only where its reader takes the processor from the sampled thread (still.c).
 * So the reading thread goes where the samples come from. To go there costs some ten microseconds: where
 * samples come from several processors in turns it stays on one of them.
 */
#ifndef PROBING_RECORD_FOLLOW_H
#define PROBING_RECORD_FOLLOW_H

#include <sched.h>
#include <stdbool.h>

struct follow {
	cpu_set_t allowed;   /* before we bound ourselves */
	bool is_on, is_bound;
	unsigned cpu;        /* where we are, if bound */
	unsigned wanted;     /* where the last samples came from */
	unsigned n_wanted;   /* so many in a row */
	unsigned n_stayed;   /* samples from where we are, since we came */
	unsigned needed;     /* samples in a row that we go for */
};

/* Of the calling thread, from now on. */
void follow_begin(struct follow *follow);

/* A sample was taken there: take note of it. */
void follow_note(struct follow *follow, unsigned cpu);

/* Shall we go to another processor? */
bool follow_wants(const struct follow *follow);

/* Go to where samples come from, if that is allowed. Best when all that waited has been read. */
void follow_go(struct follow *follow);
/* We are there: it is decided anew from here. */
void follow_went(struct follow *follow);

/* Go wherever we might have gone before. */
void follow_end(struct follow *follow);

#endif
