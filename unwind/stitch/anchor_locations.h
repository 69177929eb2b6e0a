/* SPDX-License-Identifier: MIT */
/* anchor_locations.h - learnt facts of a compiled evaluation function. Private.
 *
 * A struct place is one function (one FDE) of the interpreter whose frames have
 * contained anchors. It learns the anchor's distance from the CFA, and where the
 * function keeps three of its variables: a pointer into the running bytecode
 * (possibly its start), the pointer to the next instruction, and the current
 * frame. A location is a callee-saved register or a slot at a distance from the
 * CFA. Each has two counts: agreements with memory a moment later, and, for
 * pointers into bytecode, samples in which it pointed into any. The second needs
 * no luck: if functions end sooner than memory can be read, hardly one sample
 * agrees with memory, but the right location always points into some bytecode.
 * The first then decides among the few that do.
 */
#ifndef PROBING_UNWIND_STITCH_ANCHOR_LOCATIONS_H
#define PROBING_UNWIND_STITCH_ANCHOR_LOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cpython/cpython.h"
#include "unwind/native/native.h"
#include "unwind/stitch/stitch.h"

enum {
	LOCATION_N_REGISTERS = MACHINE_N_REGS, /* by DWARF number */
	LOCATION_N_SLOTS = 96,                 /* words below the CFA */
	LOCATION_N = LOCATION_N_REGISTERS + LOCATION_N_SLOTS,
	LOCATION_NONE = -1,
	LOCATION_N_BEST = 3,
};

struct location_votes {
	uint32_t tries;
	uint32_t hits[LOCATION_N];   /* agreed with memory */
	uint32_t points[LOCATION_N]; /* held a pointer into bytecode */
	int best[LOCATION_N_BEST];   /* most hits first; LOCATION_NONE behind the last */
};

/* The word at one of a native frame's locations. -ENODATA, -EFAULT: not recoverable there. */
int location_value(struct native_stack *stack, size_t frame, int location, uint64_t *ret);

/* A frame that is the leaf keeps its variables elsewhere than one that calls. */
enum { VIEW_CALLER, VIEW_LEAF, N_VIEWS };

struct place {
	unsigned module;
	uint64_t start, end;      /* own addresses of the module */
	uint64_t anchor_distance; /* CFA minus anchor */
	uint32_t anchor_votes;
	struct location_votes bytecode[N_VIEWS], next[N_VIEWS], frame[N_VIEWS];
};

struct places {
	struct place **places; /* their addresses never change */
	size_t n, allocated;
};

void places_done(struct places *places);

/* Nothing learnt yet. */
void place_init(struct place *place);

/* The place of a module's address; NULL: unknown. */
struct place *places_find(struct places *places, unsigned module, uint64_t address);

/* The same, added where missing; -ENOENT the address is in no known function. */
int places_learn(struct places *places, const struct module *module, uint64_t address, struct place **ret);

/* An anchor was found at that distance from the CFA. */
void place_vote_anchor(struct place *place, uint64_t distance);
/* The distance is certain without votes. */
void place_settle(struct place *place);

bool place_is_settled(const struct place *place);

/*
 * location_vote - count the locations of a native frame that contain a word within [low, high).
 * @codes: for pointers into bytecode: the interpreter with the known bytecode; else NULL.
 */
void location_vote(struct location_votes *votes, struct native_stack *stack, size_t frame, uint64_t low, uint64_t high,
		   struct py_runtime *codes);

/* Whether more votes would change nothing. */
bool location_is_settled(const struct location_votes *votes);

/*
 * location_read - the word at one of the best locations, by rank from 0.
 * Errors: -ENODATA there are no more; -EFAULT not recoverable in this frame.
 */
int location_read(const struct location_votes *votes, unsigned rank, struct native_stack *stack, size_t frame,
		  uint64_t *ret);

/* One of a place's PLACE_N_VARIABLES variables, as learnt so far; false: where it is, is not known. */
enum { PLACE_N_VARIABLES = 1 + 3 * N_VIEWS };
bool place_variable(const struct place *place, unsigned variable, struct stitch_place *ret);

#endif
