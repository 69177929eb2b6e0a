/* frame_objects.c - evaluations where each has a frame object of its own (up to 3.10).
 *
 * The loop keeps a pointer to its frame object, and another into the bytecode that it
 * runs, in registers or slots of its native frame. Only the loop has both: a function
 * that it calls may still have its caller's in registers that it does not use, so of
 * the native frames that hold a frame and its bytecode the outermost is the loop.
 * Where in the native frame the pointer is, is the same in all calls of one compiled
 * function; after a few samples the captured bytes alone tell the evaluations.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "unwind/stitch/merge.h"

struct live_frame {
	uint64_t address;
	size_t depth; /* 0: innermost */
	const struct py_code *code;
};

enum { NO_DEPTH = -1 };

static bool can_be_frame(uint64_t address)
{
	return address != 0 && address % sizeof(uint64_t) == 0;
}

/* Evaluations by learnt places alone. False: some native frame is one, and would not tell its frame. */
static int find_settled(struct merge *merge, bool *ret_all)
{
	unsigned module = py_runtime_module(merge->runtime)->id;

	*ret_all = true;
	for (size_t i = 0; i < merge->native->n_frames; i++) {
		const struct native_frame *frame = &merge->native->frames[i];
		struct py_anchor anchor = { 0 };
		struct place *place;
		int r;

		if (!merge_is_interpreter(merge, frame))
			continue;
		place = places_find(merge->places, module, merge_own_address(merge, frame));
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

/* The thread's frame objects as they are now, with their codes, by address. -ENOMEM. */
static int read_live(struct merge *merge, size_t *ret_n)
{
	int n_live = merge_live(merge);
	size_t n = 0;

	for (int k = 0; k < n_live; k++) {
		uint64_t end, outer;
		int r;

		r = grow(&merge->live_frames, n, &merge->live_frames_allocated, sizeof *merge->live_frames);
		if (r < 0)
			return r;
		merge->frames.n = 0;
		r = py_walk(merge->runtime, merge->live[k].top, &merge->frames, &end, &outer);
		if (r == -ENOMEM)
			return r;
		if (r < 0 || merge->frames.n != 1)
			continue;
		merge->live_frames[n++] = (struct live_frame){ merge->live[k].top, (size_t)k,
							       merge->frames.frames[0].code };
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

/* The outermost live frame that a native frame holds together with its bytecode. */
static const struct live_frame *held_frame(struct merge *merge, size_t n_live, size_t native)
{
	uint64_t values[LOCATION_N];
	const struct live_frame *found = NULL;
	size_t n = 0;

	for (int location = 0; location < LOCATION_N; location++)
		if (location_value(merge->native, native, location, &values[n]) == 0)
			n++;
	for (size_t i = 0; i < n; i++) {
		const struct live_frame *frame = live_frame_at(merge, n_live, values[i]);

		if (!frame || (found && found->depth >= frame->depth))
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

/* A native frame is the evaluation of a frame object: learn where it holds it. */
static int learn(struct merge *merge, size_t native, uint64_t frame)
{
	struct py_anchor anchor = { .address = frame, .top = frame };
	struct place *place;
	int r;

	r = places_learn(merge->places, py_runtime_module(merge->runtime),
			 merge_own_address(merge, &merge->native->frames[native]), &place);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	place_vote_anchor(place, 0);
	location_vote(&place->frame[merge_view(native)], merge->native, native, frame, frame + 1, NULL);
	return is_found(merge, native) ? 0 : merge_add(merge, native, place, &anchor);
}

/* Which native frames run the frame objects that are there now. */
static int pair_live(struct merge *merge)
{
	const struct live_frame *held = NULL;
	size_t n_live, holder = 0;
	int r;

	r = read_live(merge, &n_live);
	for (size_t i = 0; i < merge->native->n_frames && r >= 0; i++) {
		const struct live_frame *frame;

		if (!merge_is_interpreter(merge, &merge->native->frames[i]))
			continue;
		frame = held_frame(merge, n_live, i);
		if (!frame)
			continue;
		if (held && frame != held)
			r = learn(merge, holder, held->address);
		held = frame;
		holder = i;
	}
	return r >= 0 && held ? learn(merge, holder, held->address) : r;
}

int merge_find_frame_objects(struct merge *merge)
{
	bool all;
	int r;

	merge->n = 0;
	merge->chain_is_whole = true; /* each frame names its caller: frames.c compares */
	r = find_settled(merge, &all);
	if (r < 0 || (all && merge->n > 0 && !merge->explore))
		return r;
	return pair_live(merge);
}
