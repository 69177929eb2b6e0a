/* intern.h - frames and stacks get their ids. Private.
 *
 * Ids are dense from 1. A frame is a place: a native address of a module, a
 * line of a code object, a kernel address. A stack is a node of the
 * calling-context tree.
 */
#ifndef PROBING_INTERN_H
#define PROBING_INTERN_H

#include "base/id_map.h"
#include "base/sample.h"
#include "src/pipeline/batch.h"

struct intern {
	struct id_map native, anonymous, kernel; /* address -> frame */
	struct id_map lines;        /* code and line -> frame */
	struct id_map instructions; /* code and instruction -> frame, without decoding a line table */
	struct id_map stacks;       /* parent and frame -> stack */
	struct id_map totals;       /* thread and stack -> index in the batch's totals + 1 */
	uint8_t *module_is_known;   /* by module id */
	size_t n_modules;
	uint32_t n_frames, n_stacks, n_codes;
};

void intern_done(struct intern *intern);

/* The stack's id (0: no frames); new rows are appended to the batch. -ENOMEM. */
int intern_stack(struct intern *intern, struct batch *batch, const struct stack *stack, uint32_t *ret);

/* Add a sample to its thread's total in this batch. @thread: dense index. -ENOMEM. */
int intern_total(struct intern *intern, struct batch *batch, uint32_t thread, const struct sample_row *row);

/* The batch has been handed over: totals start anew. */
void intern_flushed(struct intern *intern);

#endif
