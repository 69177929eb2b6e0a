/* SPDX-License-Identifier: MIT */
/* gil_state.h - whether a sample's thread held the GIL, and collected garbage. Private. */
#ifndef PROBING_PIPELINE_GIL_STATE_H
#define PROBING_PIPELINE_GIL_STATE_H

#include "base/sample.h"
#include "unwind/cpython/cpython.h"

struct gil_state {
	enum answer gil, gc;
};

/*
 * gil_state_read - right after the sample's stack was made, whose window on memory it uses.
 * @runtime: of its process; NULL: it has none, and nothing is known.
 * @stack:   before asyncio's tasks were put into it.
 */
void gil_state_read(struct py_runtime *runtime, const struct sample *sample, const struct stack *stack,
		    struct gil_state *ret);

#endif
