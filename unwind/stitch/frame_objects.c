/* SPDX-License-Identifier: MIT */
/* frame_objects.c - evaluations with a frame object each (up to 3.10).
 *
 * The loop is an exported function, and each call of it an evaluation. It keeps the
 * pointer to its frame object in a register or a slot of its native frame, at the
 * same place in all calls. The native frames of the loop and the frame objects of the thread
 * have the same number and order, and outer ones change less: so they are
 * paired from the outermost on, as long as the native frame contains the pointer, and its
 * place gets a vote. After a few samples the captured bytes alone show the evaluations.
 *
 * Parts of the loop that the compiler has put elsewhere (.cold) have no name in a
 * stripped file. They appear as a gap: the frame object that called an evaluation is not
 * the next one's, but is in a native frame between them, at the loop's place.
 */
#include <errno.h>

#include "base/util.h"
#include "unwind/stitch/merge.h"

/* An evaluation that is starting still shows its caller's frame: it has none of its own yet. */
static bool is_callers(const struct merge *merge, uint64_t frame)
{
	return merge->n > 0 && merge->evaluations[merge->n - 1].anchor.top == frame;
}

static struct place *place_of(struct merge *merge, size_t native)
{
	const struct native_frame *frame = &merge->native->frames[native];
	struct place *place;

	if (!merge_is_interpreter(merge, frame))
		return NULL;
	place = places_find(merge->places, py_runtime_module(merge->runtime)->id, merge_own_address(merge, frame));
	return place && place_is_settled(place) ? place : NULL;
}

static int add(struct merge *merge, size_t native, struct place *place, uint64_t frame)
{
	struct py_anchor anchor = { .address = frame, .top = frame };

	return merge_add(merge, native, place, &anchor);
}

/* Find evaluations by captured bytes alone. *ret_all: all of them show their frames. */
static int find_told(struct merge *merge, bool *ret_all)
{
	int r = 0;

	merge->n = 0;
	*ret_all = true;
	for (size_t i = 0; i < merge->native->n_frames && r >= 0; i++) {
		struct place *place = place_of(merge, i);
		uint64_t frame;

		if (!place)
			continue;
		if (location_read(&place->frame[merge_view(i)], 0, merge->native, i, &frame) < 0) {
			*ret_all = false;
			continue;
		}
		if (is_callers(merge, frame))
			merge->n--;
		r = add(merge, i, place, frame);
	}
	return r;
}

static bool holds(struct merge *merge, size_t native, uint64_t frame)
{
	for (int location = 0; location < LOCATION_N; location++) {
		uint64_t value;

		if (location_value(merge->native, native, location, &value) == 0 && value == frame)
			return true;
	}
	return false;
}

/* Whether a native frame of the loop runs a frame object; votes for the frame's location. */
static bool runs(struct merge *merge, size_t native, struct place *place, uint64_t frame)
{
	struct location_votes *votes = &place->frame[merge_view(native)];
	uint64_t told;

	if (location_is_settled(votes))
		return location_read(votes, 0, merge->native, native, &told) == 0 && told == frame;
	if (!holds(merge, native, frame))
		return false;
	location_vote(votes, merge->native, native, frame, frame + 1, NULL);
	return true;
}

/* Pair the loop's native frames with the thread's frame objects, from the outermost on. */
static void learn(struct merge *merge)
{
	int n_live = merge_live(merge);

	if (!native_is_whole(merge->native))
		return;
	for (size_t i = merge->native->n_frames; i-- > 0 && n_live > 0;) {
		struct place *place = place_of(merge, i);

		if (place && !runs(merge, i, place, merge->live[--n_live].top))
			return;
	}
}

/* Likewise pair native frames whose captured bytes do not show the frame yet. */
static int pair_untold(struct merge *merge)
{
	int n_live = merge_live(merge), r = 0;

	if (!native_is_whole(merge->native))
		return 0;
	for (size_t i = merge->native->n_frames; i-- > 0 && n_live > 0 && r >= 0;) {
		struct place *place = place_of(merge, i);
		uint64_t frame;

		if (!place)
			continue;
		frame = merge->live[--n_live].top;
		if (!holds(merge, i, frame))
			break;
		if (location_read(&place->frame[merge_view(i)], 0, merge->native, i, &frame) < 0)
			r = add(merge, i, place, frame);
	}
	return r;
}

/* The caller of an evaluation's frame object, from live memory; 0: none. */
static uint64_t caller_of(struct merge *merge, size_t n)
{
	uint64_t end, outer = 0;
	size_t before = merge->frames.n;

	if (py_walk(merge->runtime, merge->evaluations[n].anchor.top, &merge->frames, &end, &outer) < 0)
		outer = 0;
	merge->frames.n = before;
	return outer;
}

/* Find the native frame in between that holds a frame object at the loop's location. */
static int find_unnamed(struct merge *merge, const struct place *loop, size_t first, size_t end, uint64_t frame)
{
	for (size_t i = first; i < end; i++) {
		struct place *place;
		uint64_t value;
		int r;

		if (!merge_is_interpreter(merge, &merge->native->frames[i]) ||
		    location_read(&loop->frame[VIEW_CALLER], 0, merge->native, i, &value) < 0 || value != frame)
			continue;
		r = places_learn(merge->places, py_runtime_module(merge->runtime),
				 merge_own_address(merge, &merge->native->frames[i]), &place);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		place_vote_anchor(place, 0);
		location_vote(&place->frame[VIEW_CALLER], merge->native, i, frame, frame + 1, NULL);
		return add(merge, i, place, frame);
	}
	return 0;
}

static int fill_gaps(struct merge *merge)
{
	int r = 0;

	for (size_t n = 0; n + 1 < merge->n && r >= 0; n++) {
		const struct evaluation *inner = &merge->evaluations[n], *outer = inner + 1;
		uint64_t caller = caller_of(merge, n);

		if (caller != 0 && caller != outer->anchor.top)
			r = find_unnamed(merge, inner->place, inner->native + 1, outer->native, caller);
	}
	return r;
}

/* Add the loop by its symbol. -ENOMEM. */
static int know_loop(struct merge *merge)
{
	uint64_t loop = py_runtime_loop(merge->runtime) - (uint64_t)py_runtime_bias(merge->runtime);
	const struct module *module = py_runtime_module(merge->runtime);
	struct place *place;
	int r;

	if (py_runtime_loop(merge->runtime) == 0 || places_find(merge->places, module->id, loop))
		return 0;
	r = places_learn(merge->places, module, loop, &place);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	place_settle(place);
	return 0;
}

/* The next call of the loop, at this native frame or further out. */
static size_t next_loop(struct merge *merge, size_t native)
{
	while (native < merge->native->n_frames && !place_of(merge, native))
		native++;
	return native;
}

static size_t count_loops(struct merge *merge, size_t native)
{
	size_t n = 0;

	for (; native < merge->native->n_frames; native = next_loop(merge, native + 1))
		n++;
	return n;
}

/*
 * Each call of the loop runs one frame object, and memory has all of them: the n-th call runs the n-th frame. The
 * innermost call may be starting or ending, without a frame. *ret: whether the numbers agree.
 */
static int pair_held(struct merge *merge, bool *ret)
{
	int n_live = merge_live(merge), r = 0;
	size_t native = next_loop(merge, 0);

	*ret = false;
	if (n_live > 0 && native < merge->native->n_frames && !holds(merge, native, merge->live[0].top))
		native = next_loop(merge, native + 1);
	if (n_live < 0 || count_loops(merge, native) != (size_t)n_live)
		return 0;
	for (int i = 0; i < n_live && r >= 0; i++) {
		r = merge_add(merge, native, place_of(merge, native), &merge->live[i]);
		native = next_loop(merge, native + 1);
	}
	*ret = true;
	return r;
}

/* If a part of the loop has no symbol, find it by the frame it holds. */
static int find_held(struct merge *merge)
{
	bool agree;
	int n_live, r;

	r = pair_held(merge, &agree);
	if (r < 0 || agree)
		return r;
	r = pair_untold(merge);
	if (r >= 0)
		r = fill_gaps(merge);
	n_live = merge_live(merge);
	merge->chain_is_whole = n_live == -ESRCH || (n_live >= 0 && merge->n == (size_t)n_live);
	return r;
}

/* Whether the locations of all found evaluations are settled. */
static bool is_learnt(const struct merge *merge)
{
	for (size_t n = 0; n < merge->n; n++) {
		const struct evaluation *evaluation = &merge->evaluations[n];

		if (!location_is_settled(&evaluation->place->frame[merge_view(evaluation->native)]))
			return false;
	}
	return merge->n > 0;
}

int merge_find_frame_objects(struct merge *merge)
{
	bool all;
	int r;

	merge->chain_is_whole = true; /* each frame refers to its caller; frames.c compares */
	r = know_loop(merge);
	if (r >= 0 && merge_is_held(merge)) {
		merge->n = 0;
		return find_held(merge);
	}
	if (r >= 0)
		r = find_told(merge, &all);
	if (r < 0 || (all && !merge->explore_anyway && (!merge->explore || is_learnt(merge))))
		return r;
	learn(merge);
	if (!all)
		r = find_told(merge, &all);
	if (r >= 0 && !all)
		r = pair_untold(merge);
	return r < 0 ? r : fill_gaps(merge);
}
