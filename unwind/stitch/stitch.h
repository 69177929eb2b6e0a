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
 * If all of that holds the stack is verified.
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

#endif
