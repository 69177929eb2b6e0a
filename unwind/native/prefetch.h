/* SPDX-License-Identifier: MIT */
/* prefetch.h - prefetching of captured bytes. Private to this folder.
 *
 * They are cold, and an unwinding that waits for each missing word takes many times longer than
 * its computation. There are two ways to have them in time:
 *
 * by guess: a slot has the size of its last frame and its last caller. So it guesses the places of return
 *     addresses before they are read, some frames ahead of the unwinding, and of the next sample's stack. Too
 *     far ahead too few guesses are right, and useless lines delay the needed ones; one in five of a C++
 *     program's frames differs from the guess.
 * in order: all lines of the next sample's stack, some with each frame of this one. More at once would
 *     only wait for each other.
 *
 * One or the other is twice as fast, depending on the lines that a machine's memory delivers in order
 * within one latency. So both are tried from time to time, in turns, and the better one is used.
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
	uintptr_t next, end; /* of the sample after this one, in order: not prefetched yet */
	/* Where stacks begin: a thread's captured bytes may extend beyond. */
	struct stack_start {
		pid_t tid;
		uint64_t address; /* 0: not known */
	} starts[PREFETCH_THREADS];
	struct prefetch_trial {
		unsigned n_samples; /* since the last one began */
		int score;          /* pairs of intervals won by guessing, minus pairs lost */
		uint64_t ns[PREFETCH_N_WAYS], n_frames[PREFETCH_N_WAYS]; /* of this pair */
		uint64_t began_ns; /* the walk under way; 0: its time does not matter */
	} trial;
};

/* That sample is walked after the one that is walked now. */
void prefetch_expect(struct prefetch *prefetch, const struct pc_table *pcs, const struct sample *sample);

/* A walk begins; it has ended. */
void prefetch_begin(struct prefetch *prefetch, const struct pc_table *pcs, const struct sample *sample);
void prefetch_done(struct prefetch *prefetch, const struct native_stack *stack);

/* Duration of an unwinding, for the choice; the end of prefetch_done(). */
void prefetch_note(struct prefetch *prefetch, uint64_t ns, size_t n_frames);

/* ---- In order ---- */

/* So many bytes more of the next sample's. */
static inline void prefetch_ask(struct prefetch *prefetch, uintptr_t n_bytes)
{
	uintptr_t stop = MIN(prefetch->next + n_bytes, prefetch->end);

	for (; prefetch->next < stop; prefetch->next += PREFETCH_LINE_BYTES)
		__builtin_prefetch((const void *)prefetch->next);
	/* GCC removes functions that only prefetch. */
	__asm__ volatile("");
}

/* ---- By guess ---- */

struct prefetch_guess {
	const struct pc_slot *slot; /* of the next frame to prefetch */
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

/* The unwinder has advanced by a frame: prefetch two more, until the lead has its full size. */
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
