/* SPDX-License-Identifier: MIT */
/* evaluations.c - which native frames are evaluations.
 *
 * Captured bytes first: a native frame in a settled place has its anchor at
 * the learnt distance. Live anchors teach new places; they are believed only
 * where the captured bytes at their address hold the same anchor.
 */
#include <errno.h>

#include "base/util.h"
#include "unwind/stitch/merge.h"

enum { MAX_ANCHOR_BYTES = 96 };

static int captured_anchor(struct merge *merge, uint64_t address, struct py_anchor *ret)
{
	uint8_t bytes[MAX_ANCHOR_BYTES];
	size_t n_bytes = py_anchor_bytes(merge->runtime);
	int r;

	if (n_bytes > sizeof bytes)
		return -EFAULT;
	r = native_stack_read(merge->native, address, bytes, n_bytes);
	if (r < 0)
		return r;
	return py_anchor_parse(merge->runtime, bytes, address, ret);
}

uint64_t merge_own_address(const struct merge *merge, const struct native_frame *frame)
{
	return native_frame_lookup(frame) - (uint64_t)py_runtime_bias(merge->runtime);
}

bool merge_is_interpreter(const struct merge *merge, const struct native_frame *frame)
{
	return py_runtime_owns(merge->runtime, native_frame_lookup(frame));
}

int merge_add(struct merge *merge, size_t native, struct place *place, const struct py_anchor *anchor)
{
	size_t at = merge->n;
	int r;

	r = grow(&merge->evaluations, merge->n, &merge->allocated, sizeof *merge->evaluations);
	if (r < 0)
		return r;
	for (; at > 0 && merge->evaluations[at - 1].native > native; at--)
		merge->evaluations[at] = merge->evaluations[at - 1];
	merge->n++;
	merge->evaluations[at] = (struct evaluation){
		.native = native,
		.place = place,
		.anchor = *anchor,
		.captured_instruction = PY_INSTRUCTION_UNKNOWN,
	};
	return 0;
}

/* Find evaluations by learnt locations alone. */
static int find_settled(struct merge *merge)
{
	unsigned module = py_runtime_module(merge->runtime)->id;

	merge->n = 0;
	for (size_t i = 0; i < merge->native->n_frames; i++) {
		const struct native_frame *frame = &merge->native->frames[i];
		struct py_anchor anchor;
		struct place *place;
		int r;

		if (!merge_is_interpreter(merge, frame) || frame->cfa == 0)
			continue;
		place = places_find(merge->places, module, merge_own_address(merge, frame));
		if (!place || !place_is_settled(place))
			continue;
		/* An evaluation that is starting or ending has no anchor, and thus no Python frame. */
		if (captured_anchor(merge, frame->cfa - place->anchor_distance, &anchor) < 0)
			continue;
		r = merge_add(merge, i, place, &anchor);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether the anchor of evaluation n leads to that of evaluation n + 1. */
static bool leads_on(const struct merge *merge, size_t n)
{
	const struct py_anchor *inner = &merge->evaluations[n].anchor;

	/* Shims refer to the outer top frame; its chain must end at the outer shim. */
	return inner->outer_anchor == 0 || inner->outer_anchor == merge->evaluations[n + 1].anchor.address;
}

static bool on_this_stack(const struct merge *merge, uint64_t address)
{
	const struct native_stack *native = merge->native;

	return native->n_frames > 0 && address >= native->frames[0].sp &&
	       address < native->frames[native->n_frames - 1].sp;
}

bool merge_is_outermost(const struct merge *merge, size_t n)
{
	const struct py_anchor *anchor = &merge->evaluations[n].anchor;

	if (anchor->outer_anchor != 0)
		return !on_this_stack(merge, anchor->outer_anchor);
	return py_is_outermost(merge->runtime, anchor);
}

/*
 * Whether no other anchor on this stack follows. From 3.13 on, the caller of the evaluation shows that, not the
 * anchor's address.
 */
static bool may_be_last(const struct merge *merge, const struct py_anchor *anchor)
{
	if (anchor->outer_anchor != 0)
		return !on_this_stack(merge, anchor->outer_anchor);
	return !native_is_whole(merge->native) || py_is_outermost(merge->runtime, anchor);
}

/*
 * An interpreter's outermost anchor need not lead to the next one if live memory has it. In captured bytes alone, it
 * may be left from an earlier call.
 */
static void check_chain(struct merge *merge, bool are_live)
{
	/* A leaf that has not created its anchor yet shows a stale one. */
	if (merge->n > 1 && merge->evaluations[0].native == 0 && !leads_on(merge, 0) && !merge_is_outermost(merge, 0)) {
		merge->n--;
		for (size_t i = 0; i < merge->n; i++)
			merge->evaluations[i] = merge->evaluations[i + 1];
	}
	merge->chain_is_whole = true;
	for (size_t i = 0; i + 1 < merge->n; i++)
		merge->chain_is_whole &= leads_on(merge, i) || (are_live && merge_is_outermost(merge, i));
	if (merge->n > 0)
		merge->chain_is_whole &= may_be_last(merge, &merge->evaluations[merge->n - 1].anchor);
}

/*
 * Whether the stack shows an interpreter that live memory lacks. Both are sorted by address. Frame objects are not, and
 * cannot show it.
 */
static bool lacks_interpreter(const struct merge *merge)
{
	int k = 0;

	if (py_anchor_is_frame(merge->runtime))
		return false;
	for (size_t n = 0; n < merge->n; n++) {
		uint64_t address = merge->evaluations[n].anchor.address;

		while (k < merge->n_live && merge->live[k].address < address)
			k++;
		if (k < merge->n_live && merge->live[k].address == address)
			continue;
		if (n == merge->n - 1 || merge_is_outermost(merge, n))
			return true;
	}
	return false;
}

int merge_live(struct merge *merge)
{
	pid_t tid = merge->native->sample->tid;

	if (merge->live_is_read)
		return merge->n_live;
	merge->live_is_read = true;
	merge->n_live = py_live_anchors(merge->runtime, tid, false, merge->live, PY_MAX_ANCHORS);
	if (merge->n_live >= 0 && lacks_interpreter(merge))
		merge->n_live = py_live_anchors(merge->runtime, tid, true, merge->live, PY_MAX_ANCHORS);
	return merge->n_live;
}

static bool same_anchor(const struct py_anchor *a, const struct py_anchor *b)
{
	return a->outer_anchor == b->outer_anchor && a->outer_top == b->outer_top;
}

/*
 * The anchor location for the native frame that contains an anchor. Code of the interpreter's JIT runs on the loop's
 * frame and may be all that is visible of it.
 * -ENOENT: it cannot be an evaluation.
 */
static int place_at(struct merge *merge, const struct native_frame *frame, struct place **ret)
{
	const struct mapping *mapping;

	if (merge_is_interpreter(merge, frame))
		return places_learn(merge->places, py_runtime_module(merge->runtime), merge_own_address(merge, frame),
				    ret);
	mapping = address_space_find(merge->space, native_frame_lookup(frame));
	if (!mapping || mapping->module)
		return -ENOENT;
	*ret = &merge->generated;
	return 0;
}

/* Pair live anchors with native frames, both sorted by address. Learn from the pairs, and add them if requested. */
static int pair_live(struct merge *merge, bool add_found)
{
	const struct native_stack *native = merge->native;
	size_t i = 0;

	for (int k = 0; k < merge->n_live; k++) {
		uint64_t address = merge->live[k].address;
		struct py_anchor anchor;
		struct place *place;
		int r;

		while (i < native->n_frames && native->frames[i].cfa <= address)
			i++;
		if (i == native->n_frames)
			break;
		if (address < native->frames[i].sp)
			continue;
		if (captured_anchor(merge, address, &anchor) < 0 || !same_anchor(&anchor, &merge->live[k]))
			continue;
		r = place_at(merge, &native->frames[i], &place);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		if (place != &merge->generated)
			place_vote_anchor(place, native->frames[i].cfa - address);
		if (add_found)
			r = merge_add(merge, i, place, &anchor);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_interpreter_frames(const struct merge *merge)
{
	for (size_t i = 0; i < merge->native->n_frames; i++)
		if (merge_is_interpreter(merge, &merge->native->frames[i]))
			return true;
	return false;
}

/* Whether the anchor has no Python frame: from 3.15 on, a thread's outermost anchor is like that. */
static bool live_is_empty(const struct merge *merge, int k)
{
	return !py_anchor_tells_top(merge->runtime) && merge->live[k].top == merge->live[k].address;
}

/* Whether each live anchor with frames has its native frame. Both are sorted. */
static bool live_is_found(const struct merge *merge)
{
	size_t i = 0;

	for (int k = 0; k < merge->n_live; k++) {
		if (i < merge->n && merge->evaluations[i].anchor.address == merge->live[k].address)
			i++;
		else if (!live_is_empty(merge, k))
			return false;
	}
	return i == merge->n;
}

/* Find all evaluations; memory is as it was at the sample. */
static int find_held(struct merge *merge)
{
	int n = merge_live(merge), r = 0;

	merge->n = 0;
	if (n > 0)
		r = pair_live(merge, true);
	/* A thread unknown to the interpreter runs no Python. */
	merge->chain_is_whole = n == -ESRCH || (n >= 0 && live_is_found(merge));
	return r;
}

/* Whether captured bytes confirm a live anchor whose location is not settled yet. */
static bool live_knows_more(struct merge *merge)
{
	size_t i = 0;

	for (int k = 0; k < merge->n_live; k++) {
		struct py_anchor anchor;
		bool known;

		while (i < merge->n && merge->evaluations[i].anchor.address < merge->live[k].address)
			i++;
		known = i < merge->n && merge->evaluations[i].anchor.address == merge->live[k].address;
		if (!known && on_this_stack(merge, merge->live[k].address) &&
		    captured_anchor(merge, merge->live[k].address, &anchor) == 0 &&
		    same_anchor(&anchor, &merge->live[k]))
			return true;
	}
	return false;
}

int merge_find_evaluations(struct merge *merge)
{
	int r;

	if (py_anchor_is_frame(merge->runtime))
		return merge_find_frame_objects(merge);
	if (merge_is_held(merge))
		return find_held(merge);
	r = find_settled(merge);
	if (r < 0)
		return r;
	check_chain(merge, false);
	if (merge->chain_is_whole && merge->n > 0 && !merge->explore)
		return 0;
	if (merge->n == 0 && !has_interpreter_frames(merge))
		return 0;
	if (merge_live(merge) <= 0)
		return 0;
	if (merge->chain_is_whole && merge->n > 0 && !live_knows_more(merge))
		return 0;
	/* A new anchor exists: use the live anchors that captured bytes confirm. */
	merge->n = 0;
	r = pair_live(merge, true);
	if (r < 0)
		return r;
	check_chain(merge, true);
	return 0;
}
