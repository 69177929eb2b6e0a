/* SPDX-License-Identifier: MIT */
/* prefetch.h - captured bytes, asked for before they are needed. Private to this folder.
 *
 * They are cold, and a walk that has to wait for each word that is not there takes many times what it
 * computes. There are two ways to have them in time:
 *
 * by guess: a slot knows how large its last frame was and who called it, so that the places of return addresses
 *     can be guessed before they are read, some frames ahead of the walk, and of the next sample's stack. Too far
 *     ahead too few guesses are right, and lines asked for in vain are in the way of those that
 *     are needed; of every five of a C++ program's frames one is not the expected.
 * in order: all lines of the next sample's stack, some with each frame of this one's. More at once would
 *     only wait for each other.
 *
 * How many lines in order a machine's memory gives in the time that it takes to answer for one makes the one or
 * the other twice as fast. So both are tried now and then, in turns, and the better one is kept.
 */
#ifndef PROBING_UNWIND_NATIVE_PREFETCH_H
#define PROBING_UNWIND_NATIVE_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"
#include "unwind/native/native.h"
#include "unwind/native/pc_table.h"

enum {
	PREFETCH_FRAMES = 12,         /* guessed before the walk */
	PREFETCH_FIRST_FRAMES = 8,    /* guessed of the next sample's stack */
	PREFETCH_BYTES_A_FRAME = 384, /* of the next sample's stack, in order */
	PREFETCH_LINE_BYTES = 64,
	PREFETCH_THREADS = 64,
};

enum prefetch_way { PREFETCH_BY_GUESS, PREFETCH_IN_ORDER, PREFETCH_N_WAYS };

/* Zeroed to begin with. */
struct prefetch {
	enum prefetch_way way;
	uintptr_t next, end; /* of the sample after this one, in order: what has not been asked for yet */
	/* Where stacks begin: a thread's captured bytes may go on behind that. */
	struct stack_start {
		pid_t tid;
		uint64_t address; /* 0: not known */
	} starts[PREFETCH_THREADS];
	struct prefetch_trial {
		unsigned n_samples; /* since the last one began */
		int score;          /* pairs of stretches that guessing has won, less those that it has lost */
		uint64_t ns[PREFETCH_N_WAYS], n_frames[PREFETCH_N_WAYS]; /* of this pair */
		uint64_t began_ns; /* the walk under way; 0: its time does not matter */
	} trial;
};

/* That sample is walked after the one that is walked now. */
void prefetch_expect(struct prefetch *prefetch, const struct pc_table *pcs, const struct sample *sample);

/* A walk begins; it has ended. */
void prefetch_begin(struct prefetch *prefetch, const struct pc_table *pcs, const struct sample *sample);
void prefetch_done(struct prefetch *prefetch, const struct native_stack *stack);

/* What a walk has taken, for the choice; the end of prefetch_done(). */
void prefetch_note(struct prefetch *prefetch, uint64_t ns, size_t n_frames);

/* ---- In order ---- */

/* So many bytes more of the next sample's. */
static inline void prefetch_ask(struct prefetch *prefetch, uintptr_t n_bytes)
{
	uintptr_t stop = MIN(prefetch->next + n_bytes, prefetch->end);

	for (; prefetch->next < stop; prefetch->next += PREFETCH_LINE_BYTES)
		__builtin_prefetch((const void *)prefetch->next);
	/* GCC drops what does nothing but prefetch. */
	__asm__ volatile("");
}

/* ---- By guess ---- */

struct prefetch_guess {
	const struct pc_slot *slot; /* of the next frame to be asked for */
	uint64_t start;             /* of that frame, from the dump's beginning */
	unsigned lead;              /* frames between the walk and here */
};

/* So many frames more. */
static inline void prefetch_guess_on(struct prefetch_guess *prefetch_guess, const struct pc_table *pcs,
				     const struct sample *sample, unsigned n_frames)
{
	for (unsigned i = 0; i < n_frames; i++) {
		uint64_t end = prefetch_guess->start + prefetch_guess->slot->bytes;

		if (prefetch_guess->slot->bytes < sizeof end || end > sample->stack_bytes)
			break;
		/* The return address; the frame pointer is mostly saved right below it. */
		__builtin_prefetch(sample->stack + end - sizeof end);
		prefetch_guess->start = end;
		prefetch_guess->slot = &pcs->slots[prefetch_guess->slot->caller];
		prefetch_guess->lead++;
	}
	__asm__ volatile("");
}

/* The walk has gone on by a frame: two more, until the lead is as large as it shall be. */
static inline void prefetch_guess_advance(struct prefetch_guess *prefetch_guess, const struct pc_table *pcs,
					  const struct sample *sample, const struct pc_slot *next, uint64_t next_start)
{
	if (prefetch_guess->lead == 0)
		*prefetch_guess = (struct prefetch_guess){ .slot = next, .start = next_start };
	else
		prefetch_guess->lead--;
	if (prefetch_guess->lead < PREFETCH_FRAMES)
		prefetch_guess_on(prefetch_guess, pcs, sample, 2);
}

#endif
