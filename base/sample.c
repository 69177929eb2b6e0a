/* SPDX-License-Identifier: MIT */
/* sample.c - the words for the enumerations of sample.h. */
#include "base/sample.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

static const char *const stack_end_names[STACK_N_ENDS] = {
	[STACK_COMPLETE] = "complete",     [STACK_COMPLETED] = "completed",
	[STACK_TRUNCATED] = "truncated",   [STACK_NO_UNWIND_INFO] = "no unwind info",
	[STACK_BAD_MEMORY] = "bad memory", [STACK_FRAME_LIMIT] = "frame limit",
};

static const char *const verdict_names[VERDICT_N] = {
	[VERDICT_EXACT] = "exact",         [VERDICT_VERIFIED] = "verified", [VERDICT_APPROXIMATE] = "approximate",
	[VERDICT_NO_PYTHON] = "no_python", [VERDICT_PYTHON] = "python",
};

static const char *const frame_kind_names[FRAME_N_KINDS] = {
	[FRAME_PYTHON] = "python", [FRAME_NATIVE] = "native", [FRAME_KERNEL] = "kernel",
	[FRAME_TASK] = "task",     [FRAME_WAIT] = "wait",     [FRAME_UNSAMPLED] = "unsampled",
};

static const char *const thread_state_names[STATE_N] = {
	[STATE_RUNNING] = "running", [STATE_RUNNABLE] = "runnable", [STATE_SLEEP] = "sleep",
	[STATE_LOCK] = "lock",       [STATE_GIL] = "gil",           [STATE_IO] = "io",
	[STATE_CHILD] = "child",     [STATE_BLOCKED] = "blocked",   [STATE_AWAIT] = "await",
};

const char *stack_end_name(enum stack_end end)
{
	return (unsigned)end < STACK_N_ENDS ? stack_end_names[end] : "?";
}

const char *verdict_name(enum verdict verdict)
{
	return (unsigned)verdict < VERDICT_N ? verdict_names[verdict] : "?";
}

int verdict_parse(const char *text, enum verdict *ret)
{
	for (int verdict = 0; text && verdict < VERDICT_N; verdict++)
		if (strcmp(text, verdict_names[verdict]) == 0) {
			*ret = (enum verdict)verdict;
			return 0;
		}
	if (!text || strcmp(text, "native") != 0)
		return -EINVAL;
	*ret = VERDICT_NO_PYTHON;
	return 0;
}

const char *frame_kind_name(enum frame_kind kind)
{
	return (unsigned)kind < FRAME_N_KINDS ? frame_kind_names[kind] : "?";
}

int frame_kind_parse(const char *text, enum frame_kind *ret)
{
	for (int kind = 0; text && kind < FRAME_N_KINDS; kind++)
		if (strcmp(text, frame_kind_names[kind]) == 0) {
			*ret = (enum frame_kind)kind;
			return 0;
		}
	return -EINVAL;
}

const char *thread_state_name(enum thread_state state)
{
	return (unsigned)state < STATE_N ? thread_state_names[state] : "?";
}
