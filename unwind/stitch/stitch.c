/* SPDX-License-Identifier: MIT */
/* stitch.c - putting the merged stack together, and the verdict; see stitch.h. */
#include "unwind/stitch/stitch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/stitch/merge.h"

/* Also read live memory for the first samples, then for every 16th. */
enum { EXPLORE_FIRST = 512, EXPLORE_EVERY = 16 };

struct stitcher {
	struct places places;
	struct callers callers;
	struct merge merge;
	struct frame *frames;
	size_t n_frames, frames_allocated;
	uint64_t n_stitched;
};

int stitcher_new(struct stitcher **ret)
{
	CLEANUP(stitcher_freep) struct stitcher *stitcher = NULL;
	int r;

	stitcher = calloc(1, sizeof *stitcher);
	if (!stitcher)
		return -ENOMEM;
	stitcher->merge.live = calloc(PY_MAX_ANCHORS, sizeof *stitcher->merge.live);
	if (!stitcher->merge.live)
		return -ENOMEM;
	r = callers_init(&stitcher->callers);
	if (r < 0)
		return r;
	place_init(&stitcher->merge.generated);
	*ret = TAKE(stitcher);
	return 0;
}

void stitcher_free(struct stitcher *stitcher)
{
	if (!stitcher)
		return;
	places_done(&stitcher->places);
	callers_done(&stitcher->callers);
	py_frames_done(&stitcher->merge.frames);
	free(stitcher->merge.evaluations);
	free(stitcher->merge.live);
	free(stitcher->frames);
	free(stitcher);
}

void stitcher_freep(struct stitcher **stitcher)
{
	stitcher_free(*stitcher);
}

static int emit(struct stitcher *stitcher, const struct frame *frame)
{
	int r;

	r = grow(&stitcher->frames, stitcher->n_frames, &stitcher->frames_allocated, sizeof *stitcher->frames);
	if (r < 0)
		return r;
	stitcher->frames[stitcher->n_frames++] = *frame;
	return 0;
}

static int emit_kernel(struct stitcher *stitcher, const struct sample *sample)
{
	int r = 0;

	for (size_t i = 0; i < sample->n_kernel_ips && r >= 0; i++) {
		struct frame frame = { .kind = FRAME_KERNEL };

		frame.kernel.ip = sample->kernel_ips[i];
		r = emit(stitcher, &frame);
	}
	return r;
}

static int emit_native(struct stitcher *stitcher, struct address_space *space, const struct native_frame *native,
		       bool is_evaluation)
{
	struct frame frame = {
		.kind = FRAME_NATIVE,
		.is_evaluation = is_evaluation,
		.without_cfi = native->without_cfi,
	};

	if (address_space_resolve(space, native_frame_lookup(native), &frame.native.module, &frame.native.address) <
	    0) {
		frame.native.module = NULL;
		frame.native.address = native_frame_lookup(native);
	}
	return emit(stitcher, &frame);
}

static int emit_python(struct stitcher *stitcher, const struct py_frame *python, bool is_uncertain)
{
	struct frame frame = { .kind = FRAME_PYTHON, .is_uncertain = is_uncertain };

	frame.python.code = python->code;
	frame.python.instruction = python->instruction;
	frame.python.address = python->address;
	return emit(stitcher, &frame);
}

static int emit_evaluation(struct stitcher *stitcher, const struct merge *merge, const struct evaluation *evaluation)
{
	const struct py_frame *frames = merge->frames.frames + evaluation->first_frame;
	int r = 0;

	for (size_t i = 0; i < evaluation->n_frames && r >= 0; i++) {
		struct py_frame frame = frames[i];

		if (i == 0 && evaluation->captured_code) {
			/* For the same code, the instruction from memory is the next best. */
			if (evaluation->captured_instruction != PY_INSTRUCTION_UNKNOWN ||
			    evaluation->captured_code != frame.code)
				frame.instruction = evaluation->captured_instruction;
			if (evaluation->captured_code != frame.code)
				frame.address = 0; /* the frame now belongs to another function */
			frame.code = evaluation->captured_code;
		}
		r = emit_python(stitcher, &frame, evaluation->state != EVALUATION_VERIFIED);
	}
	return r;
}

static int emit_all(struct stitcher *stitcher, struct merge *merge)
{
	const struct native_stack *native = merge->native;
	size_t n = 0;
	int r;

	r = emit_kernel(stitcher, native->sample);
	for (size_t i = 0; i < native->n_frames && r >= 0; i++) {
		bool is_evaluation = n < merge->n && merge->evaluations[n].native == i;

		if (is_evaluation)
			r = emit_evaluation(stitcher, merge, &merge->evaluations[n++]);
		if (r >= 0)
			r = emit_native(stitcher, merge->space, &native->frames[i], is_evaluation);
	}
	return r;
}

/* Unwinding ended early: read the outer Python frames from memory, so that the Python side of the stack is complete. */
static int emit_outer_python(struct stitcher *stitcher, struct merge *merge)
{
	size_t first = merge->frames.n;
	uint64_t top, end, outer;
	int r, n, k = 0;

	n = merge_live(merge);
	if (merge->n > 0)
		while (k < n && merge->live[k].address <= merge->evaluations[merge->n - 1].anchor.address)
			k++;
	for (; k < n; k++) {
		top = merge->live[k].top;
		r = top ? py_walk(merge->runtime, top, &merge->frames, &end, &outer) : 0;
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			break;
	}
	for (r = 0; first < merge->frames.n && r >= 0; first++)
		r = emit_python(stitcher, &merge->frames.frames[first], true);
	return r < 0 ? r : merge->frames.n > 0;
}

/*
 * Whether the thread is entering an evaluation. For some instructions, its state leads to an anchor without a frame,
 * which still holds stale words. Up to 3.10 this cannot happen, and the loop's calls are counted.
 */
static bool is_entering(const struct merge *merge)
{
	enum { ENTRY_BYTES = 320 }; /* code bytes; the first instruction runs after 237 to 278 in 3.11 and 3.12 */
	const struct native_frame *leaf = &merge->native->frames[0];
	const struct place *place;
	uint64_t own;

	if (!merge->runtime || merge->native->n_frames == 0 || py_anchor_is_frame(merge->runtime) ||
	    !merge_is_interpreter(merge, leaf))
		return false;
	own = merge_own_address(merge, leaf);
	place = places_find(merge->places, py_runtime_module(merge->runtime)->id, own);
	return (place && own - place->start < ENTRY_BYTES) ||
	       own + (uint64_t)py_runtime_bias(merge->runtime) - py_runtime_loop(merge->runtime) < ENTRY_BYTES;
}

static enum verdict judge_held(const struct merge *merge)
{
	if (!merge->chain_is_whole || (merge->native->sample->is_still && is_entering(merge)))
		return VERDICT_APPROXIMATE;
	for (size_t i = 0; i < merge->n; i++)
		if (merge->evaluations[i].state != EVALUATION_VERIFIED)
			return VERDICT_APPROXIMATE;
	if (merge->n == 0)
		return VERDICT_NO_PYTHON;
	/* The uncaptured part of the stack was read after the interrupt. */
	if (merge->native->sample->is_still)
		return VERDICT_VERIFIED;
	return merge->is_recorded && merge->native->end != STACK_COMPLETE ? VERDICT_VERIFIED : VERDICT_EXACT;
}

static enum verdict judge(const struct merge *merge)
{
	if (merge_is_held(merge))
		return judge_held(merge);
	if (merge->n == 0)
		return VERDICT_NO_PYTHON;
	if (!merge->chain_is_whole || merge->is_refuted || merge->seam_is_gone)
		return VERDICT_APPROXIMATE;
	for (size_t i = 0; i < merge->n; i++)
		if (merge->evaluations[i].state != EVALUATION_VERIFIED ||
		    !place_is_settled(merge->evaluations[i].place))
			return VERDICT_APPROXIMATE;
	return VERDICT_VERIFIED;
}

/*
 * Merge with the frames read inside the sample's interrupt. *ret: whether they fit; if anything does not, use none of
 * them.
 */
static int merge_record(struct merge *merge, bool *ret)
{
	int r;

	*ret = false;
	py_begin_sample(merge->runtime);
	py_take_record(merge->runtime, merge->native->sample->python);
	if (!py_record_sufficed(merge->runtime))
		return 0;
	merge->is_recorded = true;
	r = merge_find_evaluations(merge);
	if (r >= 0)
		r = merge_read_frames(merge);
	if (r < 0 || is_entering(merge))
		return r;
	*ret = py_record_sufficed(merge->runtime) &&
	       (judge_held(merge) != VERDICT_APPROXIMATE || !native_is_whole(merge->native));
	merge->is_refuted = !*ret;
	return 0;
}

/* Merge with captured bytes and live memory. */
static int merge_memory(struct merge *merge)
{
	int r;

	merge->is_recorded = false;
	merge->n = 0;
	merge->frames.n = 0;
	merge->live_is_read = false;
	merge->chain_is_whole = true;
	py_begin_sample(merge->runtime);
	r = py_expect_thread(merge->runtime, merge->native->sample->tid);
	if (r >= 0)
		r = merge_find_evaluations(merge);
	return r < 0 ? r : merge_read_frames(merge);
}

static int merge_python(struct merge *merge)
{
	bool done = false;
	int r = 0;

	if (merge->native->sample->python)
		r = merge_record(merge, &done);
	return r < 0 || done ? r : merge_memory(merge);
}

bool stitcher_place(const struct stitcher *stitcher, size_t n, struct stitch_place *ret)
{
	for (size_t i = 0; i < stitcher->places.n; i++)
		for (unsigned variable = 0; variable < PLACE_N_VARIABLES; variable++)
			if (place_variable(stitcher->places.places[i], variable, ret) && n-- == 0)
				return true;
	return false;
}

int stitch(struct stitcher *stitcher, struct address_space *space, struct py_runtime *runtime,
	   struct native_stack *native, struct stack *ret)
{
	struct merge *merge = &stitcher->merge;
	bool whole = native_is_whole(native);
	int r;

	stitcher->n_frames = 0;
	merge->places = &stitcher->places;
	merge->callers = &stitcher->callers;
	merge->space = space;
	merge->runtime = runtime;
	merge->native = native;
	merge->n = 0;
	merge->frames.n = 0;
	merge->frames.is_cut = false;
	merge->live_is_read = false;
	merge->asked = NULL;
	merge->seam_is_gone = false;
	merge->chain_is_whole = true;
	merge->is_recorded = false;
	merge->is_refuted = false;
	merge->explore_anyway = stitcher->n_stitched % EXPLORE_EVERY == 0;
	merge->explore = merge->explore_anyway || stitcher->n_stitched < EXPLORE_FIRST;
	if (runtime && native->sample->has_user) {
		stitcher->n_stitched++;
		callers_ran(&stitcher->callers, native->sample);
		r = merge_python(merge);
		if (r < 0)
			return r;
	}
	*ret = (struct stack){ .end = native->end, .verdict = judge(merge) };
	/* The thread runs Python frames, but none on the unwound stack. */
	if (merge_is_held(merge) && !merge->chain_is_whole && merge->n == 0)
		whole = false;
	r = emit_all(stitcher, merge);
	if (r >= 0 && runtime && native->sample->has_user && !whole) {
		r = emit_outer_python(stitcher, merge);
		if (r > 0)
			ret->verdict = VERDICT_PYTHON;
	}
	if (r < 0)
		return r;
	merge_look_again(merge);
	ret->frames = stitcher->frames;
	ret->n_frames = stitcher->n_frames;
	ret->python_cut = merge->frames.is_cut;
	return 0;
}
