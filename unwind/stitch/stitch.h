/* SPDX-License-Identifier: MIT */
/* stitch.h - one stack from native and Python frames.
 *
 * The rule needs no symbol names from 3.11 on (before: frame_objects.c). Every evaluation of the
 * interpreter has its anchor on its own native frame: if an anchor lies in [SP, CFA), that native
 * frame is an evaluation, and the anchor's Python frames belong right above it. The anchor's
 * distance from the CFA is the same for all calls of one compiled function. So after a few samples
 * the captured bytes alone show the evaluations of a stack, at the sample's instant.
 *
 * Stitching compares the captured bytes with later reads:
 * - each anchor names the next outer one (or its top frame): none is missing;
 * - each evaluation's chain of frames ends at its own anchor;
 * - the bytecode pointer in the evaluation's register or slot lies in the
 *   bytecode of the function that memory shows;
 * - the callers of that function within its evaluation are known, or its calls last (callers.c).
 * If all of these hold, the stack is verified.
 *
 * If a thread has not run since the sample by the kernel's records (is_still in struct sample), memory is as of the
 * sample: stitching accepts it, unless captured bytes contradict it, or the thread is entering an evaluation; the
 * stack is verified. The caller ensures that the thread did not run until the end, or stitches again.
 *
 * For a stopped thread (is_held in struct sample) memory is as of the sample: nothing has to be
 * learnt or compared. The stack is exact if each live anchor has its native frame.
 * The same holds if the frames were read in the sample's own interrupt: that record
 * replaces memory. If it does not fit, the sample is stitched as if there were none.
 */
#ifndef PROBING_STITCH_H
#define PROBING_STITCH_H

#include "base/sample.h"
#include "unwind/cpython/cpython.h"
#include "unwind/native/native.h"

struct stitcher;

/* Learnt facts belong to an interpreter build and serve all its processes. */
int stitcher_new(struct stitcher **ret);
void stitcher_free(struct stitcher *stitcher);
void stitcher_freep(struct stitcher **stitcher);

/*
 * stitch - merge one sample's stack.
 * @space:   the sampled process; resolves native frames to modules.
 * @runtime: its interpreter; NULL if it has none: the verdict is no_python.
 * @native:  the result of native_unwind() for the sample.
 * @ret:     frames are borrowed from the stitcher until its next use.
 * A failed merge is not an error: the verdict says how sure the stack is.
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
 * stitch_memory - the Python frames of a thread, as of now in memory.
 * It may run meanwhile. The verdict is python if two readings agree, approximate if they
 * do not: then only their common frames are certain, and the result has only these and the
 * function they had called. It is no_python if the interpreter has no frames of the thread.
 * @runtime: NULL: the process has none.
 * @ret:     frames are borrowed from the stitcher until its next use. Its end is truncated:
 *           there is no native part.
 * Errors: -ENOMEM.
 */
int stitch_memory(struct memory_stitcher *stitcher, struct py_runtime *runtime, pid_t tid, struct stack *ret);

/* A learnt location of one variable by which an interpreter's function refers to its Python frames. */
struct stitch_place {
	unsigned module;        /* id of struct module */
	uint64_t address;       /* of the function, its own in the module */
	const char *holds;      /* "anchor", "bytecode", "next" or "frame" (anchor_locations.h); static */
	bool is_leaf;           /* where it is innermost; else: where it has called something */
	uint64_t below_cfa;     /* bytes from the CFA down to it; 0: it is in a register ... */
	unsigned reg;           /* ... of this DWARF number */
	uint32_t agreed, tries; /* with memory */
};

/* The n-th that has been learnt; false: there are no more. */
bool stitcher_place(const struct stitcher *stitcher, size_t n, struct stitch_place *ret);

#endif
