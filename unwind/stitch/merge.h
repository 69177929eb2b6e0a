/* SPDX-License-Identifier: MIT */
/* merge.h - one sample's evaluations on their way to a merged stack. Private. */
#ifndef PROBING_MERGE_H
#define PROBING_MERGE_H

#include "unwind/stitch/callers.h"
#include "unwind/stitch/anchor_locations.h"
#include "unwind/stitch/stitch.h"

enum evaluation_state {
	EVALUATION_UNKNOWN,   /* its Python frames could not be read */
	EVALUATION_READ,      /* not compared with captured bytes yet */
	EVALUATION_UNCERTAIN, /* read, but nothing captured confirms the innermost one */
	EVALUATION_MOVED_ON,  /* captured bytes name another function than memory does now */
	EVALUATION_VERIFIED,
};

/* One run of the loop on this stack. */
struct evaluation {
	size_t native; /* index of its native frame */
	struct place *place;
	struct py_anchor anchor;
	uint64_t top;                 /* innermost frame; 0: none or not known */
	size_t first_frame, n_frames; /* in py_frames, innermost first */
	bool is_stale;                /* since the sample its caller has changed, or its captured frame has gone */
	bool is_captured;             /* captured bytes led to its innermost frame */
	enum evaluation_state state;
	struct py_code *captured_code; /* the code that ran, by the captured pointer; NULL: not captured */
	int32_t captured_instruction;  /* PY_INSTRUCTION_UNKNOWN: not captured */
};

struct merge {
	struct places *places;
	struct callers *callers;
	struct address_space *space;
	struct py_runtime *runtime;
	struct native_stack *native;
	bool explore;                   /* compare with live memory also where nothing seems missing */
	bool explore_anyway;            /* also where everything is learnt that can be missing */
	struct evaluation *evaluations; /* innermost first */
	size_t n, allocated;
	struct py_frames frames;
	/* Live anchors, read when they are first needed, and once more after all frames. */
	struct py_anchor *live;
	int n_live; /* negative errno: could not be read */
	bool live_is_read;
	bool has_looked_again;          /* they are later than all frames */
	struct place generated;         /* for all generated code: learns nothing */
	const struct evaluation *asked; /* whether calls of its innermost function last; NULL: none */
	bool seam_is_gone;              /* while frames were read, another stack was behind the seam */
	bool chain_is_whole;            /* no evaluation is missing between the anchors found */
	bool is_recorded;               /* the Python frames were read in the sample's interrupt */
	bool is_refuted;                /* they were, but contradict memory or the native stack */
};

/* Did the walk reach the thread's start? */
static inline bool native_is_whole(const struct native_stack *native)
{
	return native->end == STACK_COMPLETE || native->end == STACK_COMPLETED;
}

/* Is memory, or the record in its place, as of the sample? Then it needs no comparison with captured bytes. */
static inline bool merge_is_held(const struct merge *merge)
{
	return merge->native->sample->is_held || merge->is_recorded;
}

/* Read the thread's anchors from live memory, once. Returns their number or an error. */
int merge_live(struct merge *merge);

/* The file's own address of where a native frame is. */
uint64_t merge_own_address(const struct merge *merge, const struct native_frame *frame);

/* Is this native frame in the interpreter's code? */
bool merge_is_interpreter(const struct merge *merge, const struct native_frame *frame);

/* Is evaluation n the outermost of its interpreter? Its caller, if any, belongs to another interpreter. */
bool merge_is_outermost(const struct merge *merge, size_t n);

/* Insert an evaluation at its position, innermost first. -ENOMEM. */
int merge_add(struct merge *merge, size_t native, struct place *place, const struct py_anchor *anchor);

/* A frame that is the leaf keeps its variables elsewhere than one that calls: VIEW_*. */
static inline int merge_view(size_t native)
{
	return native == 0 ? VIEW_LEAF : VIEW_CALLER;
}

/* The same as merge_find_evaluations() where anchors are frame objects. */
int merge_find_frame_objects(struct merge *merge);

/* Fill evaluations[] from learnt places, else from live anchors. -ENOMEM. */
int merge_find_evaluations(struct merge *merge);

/* Read and check the Python frames of all evaluations found. -ENOMEM. */
int merge_read_frames(struct merge *merge);

/* After the sample: wait, and check whether the noted call lasts. */
void merge_look_again(struct merge *merge);

#endif
