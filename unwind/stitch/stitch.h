/* SPDX-License-Identifier: MIT */
/* stitch.h - one stack out of native and Python frames.
 *
 * The rule needs no symbol names from 3.11 on (before: frame_objects.c). Every evaluation of the interpreter keeps
 * its anchor on its own native frame: where an anchor lies in [SP, CFA), that
 * native frame is an evaluation, and the Python frames that the anchor leads
 * to belong right above it. Where in the frame the anchor lies is the same for
 * all calls of one compiled function, so after a few samples the captured
 * bytes alone tell the evaluations of a stack, at the sample's instant.
 *
 * What the captured bytes prove, and what was read afterwards, is compared:
 * - each anchor names the next outer one (or its top frame): none is missing;
 * - each evaluation's chain of frames ends at its own anchor;
 * - the bytecode pointer that the evaluation keeps in a register or slot lies
 *   in the bytecode of the function that memory shows.
 * - the callers of that function within its evaluation are known, or its calls last (callers.c).
 * If all of that holds the stack is verified.
 *
 * Of a thread that stood still as far as the kernel tells (is_still in struct sample) memory is as of the sample: what it
 * shows is taken as it is, unless captured bytes contradict it, or the thread is on its way into an evaluation; the
 * stack is verified. Whoever asks sees to it that the thread stood still to the end, or stitches again.
 *
 * Of a thread that is held (struct sample) memory is as of the sample: nothing has to be
 * learnt or compared. The stack is exact where each live anchor has its native frame.
 * The same holds where the frames were read in the sample's own interrupt: that record
 * stands for memory. Where it does not fit, the sample is stitched as if there were none.
 */
#ifndef PROBING_STITCH_H
#define PROBING_STITCH_H

#include "base/sample.h"
#include "unwind/cpython/cpython.h"
#include "unwind/native/native.h"

struct stitcher;

/* What is learnt is kept per interpreter build and serves all processes. */
int stitcher_new(struct stitcher **ret);
void stitcher_free(struct stitcher *stitcher);
void stitcher_freep(struct stitcher **stitcher);

/*
 * stitch - merge one sample's stack.
 * @space:   the sampled process; resolves native frames to modules.
 * @runtime: its interpreter; NULL where it has none: the verdict is native.
 * @native:  what native_unwind() made of the sample.
 * @ret:     frames are borrowed from the stitcher until its next use.
 * A failed merge is not an error: the verdict says how far to believe.
 * Errors: -ENOMEM.
 */
int stitch(struct stitcher *stitcher, struct address_space *space, struct py_runtime *runtime,
	   struct native_stack *native, struct stack *ret);

/* ---- Where nothing was captured (memory.c) ---- */

struct memory_stitcher;
int memory_stitcher_new(struct memory_stitcher **ret);
void memory_stitcher_free(struct memory_stitcher *stitcher);
void memory_stitcher_freep(struct memory_stitcher **stitcher);

/*
 * stitch_memory - the Python frames of a thread, as its memory has them now.
 * It may run meanwhile. The verdict is python where two readings agree, approximate where they
 * do not: then only what they have in common is certain, and only that and what it had called
 * is kept. It is native where the interpreter has no frames of the thread.
 * @runtime: NULL: the process has none.
 * @ret:     frames are borrowed from the stitcher until its next use. Its end is truncated:
 *           there is no native part.
 * Errors: -ENOMEM.
 */
int stitch_memory(struct memory_stitcher *stitcher, struct py_runtime *runtime, pid_t tid, struct stack *ret);

/* Where a function of an interpreter was found to keep one thing that its Python frames are known by. */
struct stitch_place {
	unsigned module;        /* id of struct module */
	uint64_t address;       /* of the function, its own in the module */
	const char *holds;      /* "anchor", "bytecode", "next" or "frame" (anchor_locations.h); static */
	bool is_leaf;           /* where it is innermost; else: where it has called something */
	uint64_t below_cfa;     /* bytes from the CFA down to it; 0: it is in a register ... */
	unsigned reg;           /* ... of this DWARF number */
	uint32_t agreed, tries; /* with what memory showed */
};

/* The n-th that has been learnt; false: there are no more. */
bool stitcher_place(const struct stitcher *stitcher, size_t n, struct stitch_place *ret);

#endif
