/* frame_objects.c - evaluations where each has a frame object of its own (up to 3.10).
 *
 * The loop keeps a pointer to its frame object, and another into the bytecode that it
 * runs, in registers or slots of its native frame. Where, is the same in all calls of one
 * compiled function; after a few samples the captured bytes alone tell the evaluations.
 *
 * The loop is an exported function. Parts of it that the compiler has put elsewhere
 * (.cold) have no name in a stripped file: they are the outermost native frame that holds
 * a frame object and its bytecode, since a function that the loop calls may still have
 * both in registers that it does not use. In a recursion nothing tells a frame's bytecode
 * from its caller's, and nothing is learnt.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "unwind/stitch/merge.h"

struct live_frame {
	uint64_t address;
	size_t depth; /* 0: innermost */
	const struct py_code *code;
	bool is_recursion; /* its caller runs the same bytecode */
};

/* Learning needs no more of a deep stack than its ends. */
enum { MAX_LIVE = 256, MAX_HOLDERS = 128, MAX_OTHERS = 16 };

static bool can_be_frame(uint64_t address)
{
	return address != 0 && address % sizeof(uint64_t) == 0;
}

static struct place *place_of(struct merge *merge, size_t native)
{
	return places_find(merge->places, py_runtime_module(merge->runtime)->id,
			   merge_own_address(merge, &merge->native->frames[native]));
}

/* Evaluations by learnt places alone. *ret_all: every one of them told its frame. */
static int find_settled(struct merge *merge, bool *ret_all)
{
	*ret_all = true;
	for (size_t i = 0; i < merge->native->n_frames; i++) {
		const struct native_frame *frame = &merge->native->frames[i];
		struct py_anchor anchor = { 0 };
		struct place *place;
		int r;

		if (!merge_is_interpreter(merge, frame))
			continue;
		place = place_of(merge, i);
		if (!place || !place_is_settled(place))
			continue;
		if (location_read(&place->frame[merge_view(i)], 0, merge->native, i, &anchor.top) < 0) {
			*ret_all = false;
			continue;
		}
		if (!can_be_frame(anchor.top))
			continue;
		anchor.address = anchor.top;
		/* On its way in it still has its caller's: then no frame of its own either. */
		if (merge->n > 0 && merge->evaluations[merge->n - 1].anchor.top == anchor.top)
			merge->n--;
		r = merge_add(merge, i, place, &anchor);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct live_frame *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

/* Whether one of n is near an end. */
static bool is_near_end(size_t i, size_t n, size_t distance)
{
	return i < distance || i + distance >= n;
}

/* The thread's frame objects as they are now, with their codes, by address. -ENOMEM. */
static int read_live(struct merge *merge, size_t *ret_n)
{
	int n_live = merge_live(merge);
	size_t n = 0;

	for (size_t k = 0; n_live > 0 && k < (size_t)n_live; k++) {
		const struct py_code *code;
		uint64_t end, outer;
		int r;

		if (!is_near_end(k, (size_t)n_live, MAX_LIVE))
			continue;
		r = grow(&merge->live_frames, n, &merge->live_frames_allocated, sizeof *merge->live_frames);
		if (r < 0)
			return r;
		merge->frames.n = 0;
		r = py_walk(merge->runtime, merge->live[k].top, &merge->frames, &end, &outer);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || merge->frames.n != 1)
			continue;
		code = merge->frames.frames[0].code;
		if (n > 0 && merge->live_frames[n - 1].code->bytecode == code->bytecode)
			merge->live_frames[n - 1].is_recursion = true;
		merge->live_frames[n++] = (struct live_frame){ merge->live[k].top, k, code, false };
	}
	merge->frames.n = 0;
	if (n > 0)
		qsort(merge->live_frames, n, sizeof *merge->live_frames, by_address);
	*ret_n = n;
	return 0;
}

static const struct live_frame *live_frame_at(const struct merge *merge, size_t n, uint64_t address)
{
	struct live_frame key = { .address = address };

	return n ? bsearch(&key, merge->live_frames, n, sizeof key, by_address) : NULL;
}

/*
 * The innermost live frame, from a depth on, that a native frame holds together with its
 * bytecode. What it saved of its caller's registers leads further out.
 */
static const struct live_frame *held_frame(struct merge *merge, size_t n_live, size_t native, size_t depth)
{
	uint64_t values[LOCATION_N];
	const struct live_frame *found = NULL;
	size_t n = 0;

	for (int location = 0; location < LOCATION_N; location++)
		if (location_value(merge->native, native, location, &values[n]) == 0)
			n++;
	for (size_t i = 0; i < n; i++) {
		const struct live_frame *frame = live_frame_at(merge, n_live, values[i]);

		if (!frame || frame->depth < depth || (found && found->depth <= frame->depth))
			continue;
		for (size_t k = 0; k < n; k++)
			if (values[k] - frame->code->bytecode < frame->code->bytecode_bytes) {
				found = frame;
				break;
			}
	}
	return found;
}

static bool is_found(const struct merge *merge, size_t native)
{
	for (size_t i = 0; i < merge->n; i++)
		if (merge->evaluations[i].native == native)
			return true;
	return false;
}

static bool is_known_loop(struct merge *merge, size_t native)
{
	const struct place *place = place_of(merge, native);

	return place && place_is_settled(place);
}

/* Native frames next to each other that hold the same frame object. */
struct holders {
	const struct live_frame *frame; /* NULL: none yet */
	size_t loop;                    /* the one that is taken for its evaluation */
	size_t others[MAX_OTHERS], n_others;
};

static void add_holder(struct merge *merge, struct holders *holders, size_t native)
{
	size_t other = native;

	/* The outermost, unless one is known. */
	if (!is_known_loop(merge, holders->loop)) {
		other = holders->loop;
		holders->loop = native;
	}
	if (holders->n_others < MAX_OTHERS)
		holders->others[holders->n_others++] = other;
}

/* One of them is the evaluation: learn where it holds its frame; the others are none. */
static void vote(struct merge *merge, const struct holders *holders, struct place *place)
{
	uint64_t frame = holders->frame->address;

	place_vote_anchor(place, 0);
	for (size_t i = 0; i < holders->n_others; i++) {
		struct place *other = place_of(merge, holders->others[i]);

		if (other && other != place)
			place_vote_against(other);
	}
	location_vote(&place->frame[merge_view(holders->loop)], merge->native, holders->loop, frame, frame + 1, NULL);
}

static int take(struct merge *merge, const struct holders *holders, bool learn)
{
	const struct live_frame *frame = holders->frame;
	struct py_anchor anchor;
	struct place *place;
	int r;

	if (!frame || (frame->is_recursion && !is_known_loop(merge, holders->loop)))
		return 0;
	r = places_learn(merge->places, py_runtime_module(merge->runtime),
			 merge_own_address(merge, &merge->native->frames[holders->loop]), &place);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (learn)
		vote(merge, holders, place);
	anchor = (struct py_anchor){ .address = frame->address, .top = frame->address };
	return is_found(merge, holders->loop) ? 0 : merge_add(merge, holders->loop, place, &anchor);
}

/* Which native frames run the frame objects that are there now. */
static int pair_live(struct merge *merge, bool learn)
{
	struct holders holders = { 0 };
	size_t n_live;
	int r;

	r = read_live(merge, &n_live);
	for (size_t i = 0; i < merge->native->n_frames && r >= 0; i++) {
		const struct live_frame *frame;

		if (!is_near_end(i, merge->native->n_frames, MAX_HOLDERS)) {
			holders.frame = NULL; /* who else holds it is not seen */
			continue;
		}
		if (!merge_is_interpreter(merge, &merge->native->frames[i]))
			continue;
		frame = held_frame(merge, n_live, i, holders.frame ? holders.frame->depth : 0);
		if (!frame)
			continue;
		if (frame == holders.frame) {
			add_holder(merge, &holders, i);
			continue;
		}
		r = take(merge, &holders, learn);
		holders = (struct holders){ .frame = frame, .loop = i };
	}
	return r < 0 ? r : take(merge, &holders, learn);
}

/* The loop is known from the start, by its name. -ENOMEM. */
static int know_loop(struct merge *merge)
{
	uint64_t loop = py_runtime_loop(merge->runtime);
	const struct module *module = py_runtime_module(merge->runtime);
	struct place *place;
	int r;

	loop -= (uint64_t)py_runtime_bias(merge->runtime);
	if (py_runtime_loop(merge->runtime) == 0 || places_find(merge->places, module->id, loop))
		return 0;
	r = places_learn(merge->places, module, loop, &place);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	place_settle(place);
	return 0;
}

int merge_find_frame_objects(struct merge *merge)
{
	bool all;
	int r;

	r = know_loop(merge);
	if (r < 0)
		return r;
	merge->n = 0;
	merge->chain_is_whole = true; /* each frame names its caller: frames.c compares */
	r = find_settled(merge, &all);
	if (r < 0 || (all && merge->n > 0 && !merge->explore))
		return r;
	r = pair_live(merge, true);
	if (r < 0 || all)
		return r;
	/* With what has just been learnt, and then what still did not tell. */
	merge->n = 0;
	r = find_settled(merge, &all);
	return r < 0 ? r : pair_live(merge, false);
}
