/* SPDX-License-Identifier: MIT */
/* gil_state.c - the GIL's state at a sample's instant.
 *
 * Only a state read inside the sampling interrupt is of that instant, and always valid.
 * Memory that is read afterwards is of some microseconds later:
 *
 * 1. A thread sampled in the evaluation loop itself ran bytecode, and therefore holds
 *    the GIL. The captured registers show that, whatever memory contains by now.
 * 2. Otherwise memory counts if the stack agrees with it (verified, or memory is all there is): the
 *    thread has not moved on since. If it has, the state is unknown.
 * 3. A thread that no interpreter has, and that runs no Python, holds none.
 *
 * A remaining error: a thread that took or released the GIL within one call of a C function, in the
 * time between the sample and the reading (docs/sql.md has how often).
 */
#include "src/pipeline/gil_state.h"

#include "base/python_record.h"

static enum answer answer_of(enum py_answer told)
{
	return told == PY_YES ? ANSWER_YES : told == PY_NO ? ANSWER_NO : ANSWER_UNKNOWN;
}

static enum answer told_by(uint32_t flags, uint32_t known, uint32_t yes)
{
	if (!(flags & known))
		return ANSWER_UNKNOWN;
	return flags & yes ? ANSWER_YES : ANSWER_NO;
}

/* Rule 1: a Python frame is innermost if its entry frame is the innermost native frame. */
static bool ran_bytecode(const struct sample *sample, const struct stack *stack)
{
	size_t i = 0;

	if (!sample->has_user || stack->verdict == VERDICT_PYTHON || stack->verdict == VERDICT_NO_PYTHON)
		return false;
	while (i < stack->n_frames && stack->frames[i].kind == FRAME_KERNEL)
		i++;
	return i < stack->n_frames && stack->frames[i].kind == FRAME_PYTHON;
}

static void read_now(struct py_runtime *runtime, const struct sample *sample, const struct stack *stack,
		     struct gil_state *ret)
{
	struct py_gil_state now;

	if (py_gil_state_read(runtime, sample->tid, &now) < 0) {
		if (stack->verdict == VERDICT_NO_PYTHON)
			*ret = (struct gil_state){ ANSWER_NO, ANSWER_NO };
		return;
	}
	if (stack->verdict != VERDICT_APPROXIMATE)
		*ret = (struct gil_state){ answer_of(now.gil), answer_of(now.collects) };
}

void gil_state_read(struct py_runtime *runtime, const struct sample *sample, const struct stack *stack,
		    struct gil_state *ret)
{
	*ret = (struct gil_state){ ANSWER_UNKNOWN, ANSWER_UNKNOWN };
	if (!runtime || sample->is_elsewhere)
		return;
	if (sample->python) {
		ret->gil = told_by(sample->python->flags, PYTHON_GIL_KNOWN, PYTHON_GIL_HELD);
		ret->gc = told_by(sample->python->flags, PYTHON_GC_KNOWN, PYTHON_GC_RUNS);
		return;
	}
	read_now(runtime, sample, stack, ret);
	if (ret->gil != ANSWER_YES && py_has_gil(runtime) && ran_bytecode(sample, stack))
		*ret = (struct gil_state){ ANSWER_YES, ANSWER_UNKNOWN };
}
