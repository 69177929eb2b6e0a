/* SPDX-License-Identifier: MIT */
/* memory.c - a stack from memory alone, of a thread that may run meanwhile; see stitch.h.
 *
 * Nothing was captured, so only another reading can confirm one. Memory is read twice. If
 * both show the same frames at the same addresses, and all but the innermost, which may
 * run on, at the same instructions, that is the stack. Otherwise it is read a third time; if
 * that differs from the second one, too, their common frames are certain: they
 * existed all the time. The frame that the innermost of them had called is kept as
 * well: its own memory named its caller, which existed before and after. Frames called
 * from there may mix two moments, and are dropped.
 */
#include "unwind/stitch/stitch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

/* Read the thread list again in one of ANEW_EVERY stacks, to find interpreters that a thread has entered. */
enum { READINGS = 3, ANEW_EVERY = 16 };

struct reading {
	struct py_frames frames; /* innermost first */
	int error;               /* -ESRCH: the interpreter does not know the thread */
};

struct memory_stitcher {
	struct reading readings[2]; /* used alternately */
	struct py_anchor *anchors;
	struct frame *frames;
	size_t n_frames, frames_allocated;
	uint64_t n_stitched;
};

int memory_stitcher_new(struct memory_stitcher **ret)
{
	CLEANUP(memory_stitcher_freep) struct memory_stitcher *stitcher = NULL;

	stitcher = calloc(1, sizeof *stitcher);
	if (!stitcher)
		return -ENOMEM;
	stitcher->anchors = calloc(PY_MAX_ANCHORS, sizeof *stitcher->anchors);
	if (!stitcher->anchors)
		return -ENOMEM;
	*ret = TAKE(stitcher);
	return 0;
}

void memory_stitcher_free(struct memory_stitcher *stitcher)
{
	if (!stitcher)
		return;
	for (size_t i = 0; i < N_ELEMENTS(stitcher->readings); i++)
		py_frames_done(&stitcher->readings[i].frames);
	free(stitcher->anchors);
	free(stitcher->frames);
	free(stitcher);
}

void memory_stitcher_freep(struct memory_stitcher **stitcher)
{
	memory_stitcher_free(*stitcher);
}

/* Read the next frame objects in one call: each has its own memory. */
static void prefetch(struct memory_stitcher *stitcher, struct py_runtime *runtime, size_t first, size_t n_anchors)
{
	size_t n = MIN(n_anchors - first, (size_t)PY_PREFETCH);
	uint64_t tops[PY_PREFETCH];

	for (size_t i = 0; i < n; i++)
		tops[i] = stitcher->anchors[first + i].top;
	py_prefetch(runtime, tops, n);
}

static int walk_all(struct memory_stitcher *stitcher, struct py_runtime *runtime, size_t n, struct py_frames *frames)
{
	uint64_t end, outer;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (i % PY_PREFETCH == 0 && py_anchor_is_frame(runtime))
			prefetch(stitcher, runtime, i, n);
		if (stitcher->anchors[i].top != 0)
			r = py_walk(runtime, stitcher->anchors[i].top, frames, &end, &outer);
	}
	return r;
}

/* Only -ENOMEM is returned; other errors are part of the reading. */
static int read_once(struct memory_stitcher *stitcher, struct py_runtime *runtime, pid_t tid, bool anew,
		     struct reading *reading)
{
	int r;

	reading->frames.n = 0;
	reading->frames.is_cut = false;
	py_begin_sample(runtime);
	r = py_live_anchors(runtime, tid, anew, stitcher->anchors, PY_MAX_ANCHORS);
	if (r > 0)
		r = walk_all(stitcher, runtime, (size_t)r, &reading->frames);
	if (r < 0)
		reading->frames.n = 0;
	reading->error = MIN(r, 0);
	return r == -ENOMEM ? r : 0;
}

static bool is_same_place(const struct py_frame *a, const struct py_frame *b)
{
	return a->address == b->address && a->code == b->code;
}

static bool has_stood_still(const struct py_frame *a, const struct py_frame *b)
{
	return is_same_place(a, b) && a->kept == b->kept && a->bytecode_index == b->bytecode_index;
}

/*
 * Number of outermost frames that both readings share. If the last of them has executed further, its callees may
 * differ.
 */
static size_t n_in_common(const struct py_frames *a, const struct py_frames *b, bool *ret_went_on)
{
	size_t n = 0, most = MIN(a->n, b->n);

	*ret_went_on = false;
	while (n < most && !*ret_went_on) {
		const struct py_frame *left = &a->frames[a->n - 1 - n], *right = &b->frames[b->n - 1 - n];

		if (!is_same_place(left, right))
			break;
		*ret_went_on = !has_stood_still(left, right);
		n++;
	}
	return n;
}

static bool agree(const struct reading *a, const struct reading *b)
{
	bool went_on;

	if (a->error < 0 || b->error < 0)
		return a->error == -ESRCH && b->error == -ESRCH;
	return a->frames.n == b->frames.n && n_in_common(&a->frames, &b->frames, &went_on) == a->frames.n;
}

static int emit(struct memory_stitcher *stitcher, const struct py_frames *frames, size_t first, size_t n_certain)
{
	stitcher->n_frames = 0;
	for (size_t i = first; i < frames->n; i++) {
		struct frame frame = { .kind = FRAME_PYTHON, .is_uncertain = frames->n - i > n_certain };
		int r;

		r = grow(&stitcher->frames, stitcher->n_frames, &stitcher->frames_allocated, sizeof *stitcher->frames);
		if (r < 0)
			return r;
		frame.python.code = frames->frames[i].code;
		frame.python.instruction = frames->frames[i].instruction;
		stitcher->frames[stitcher->n_frames++] = frame;
	}
	return 0;
}

/* The last two readings differ: emit the common frames, and one uncertain callee from the last reading. */
static int emit_common(struct memory_stitcher *stitcher, const struct reading *before, const struct reading *last)
{
	bool went_on;
	size_t n = n_in_common(&before->frames, &last->frames, &went_on);
	size_t n_kept = MIN(n + (n > 0), last->frames.n);

	return emit(stitcher, &last->frames, last->frames.n - n_kept, n);
}

int stitch_memory(struct memory_stitcher *stitcher, struct py_runtime *runtime, pid_t tid, struct stack *ret)
{
	struct stack stack = { .end = STACK_TRUNCATED, .verdict = VERDICT_NO_PYTHON };
	struct reading *last = NULL, *before = NULL;
	bool is_settled = false, anew = stitcher->n_stitched++ % ANEW_EVERY == 0;
	int r = 0;

	for (int i = 0; runtime && i < READINGS && !is_settled; i++) {
		before = last;
		last = &stitcher->readings[i % 2];
		r = read_once(stitcher, runtime, tid, anew && i == 0, last);
		if (r < 0)
			return r;
		is_settled = before && agree(before, last);
	}
	stitcher->n_frames = 0;
	if (runtime && !is_settled) {
		stack.verdict = VERDICT_APPROXIMATE;
		r = emit_common(stitcher, before, last);
	} else if (runtime && last->frames.n > 0) {
		stack.verdict = VERDICT_PYTHON;
		r = emit(stitcher, &last->frames, 0, last->frames.n);
	}
	if (r < 0)
		return r;
	stack.frames = stitcher->frames;
	stack.n_frames = stitcher->n_frames;
	stack.python_cut = last && last->frames.is_cut;
	*ret = stack;
	return 0;
}
