/* SPDX-License-Identifier: MIT */
/* await.c - from a coroutine to the one it awaits, and on to the innermost.
 *
 * A coroutine that waits has its frame, in itself (from 3.11) or as an object of its own; the top of that
 * frame's stack is the awaited object. That is another coroutine, or a thin wrapper of one or of a
 * future; the chain ends at anything else. Source: Objects/genobject.c (_PyGen_yf), 3.4 to 3.15.
 */
#include "unwind/cpython/await.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

enum { MAX_AWAITS = 4096, MAX_STACK_SLOTS = 1 << 16, OBJECT_ALIGNMENT = 8 };

enum awaitable { AWAITS_OTHER, AWAITS_COROUTINE, AWAITS_WRAPPER, AWAITS_FUTURE };

static enum awaitable kind_of(struct py_runtime *runtime, uint64_t object)
{
	static const struct {
		const char *type;
		enum awaitable kind;
	} kinds[] = {
		{ "coroutine", AWAITS_COROUTINE },           { "generator", AWAITS_COROUTINE },
		{ "async_generator", AWAITS_COROUTINE },     { "coroutine_wrapper", AWAITS_WRAPPER },
		{ "async_generator_asend", AWAITS_WRAPPER }, { "async_generator_athrow", AWAITS_WRAPPER },
		{ "anext_awaitable", AWAITS_WRAPPER },       { "_asyncio.FutureIter", AWAITS_FUTURE },
	};
	struct object_type type;

	if (object_type_of(runtime, object, &type) < 0)
		return AWAITS_OTHER;
	for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
		if (strcmp(kinds[i].type, type.name) == 0)
			return kinds[i].kind;
	return AWAITS_OTHER;
}

bool await_is_coroutine(struct py_runtime *runtime, uint64_t object)
{
	return kind_of(runtime, object) == AWAITS_COROUTINE;
}

/* @ret_awaits: whether the frame's stack holds the awaited object. */
static int find_frame(struct py_runtime *runtime, uint64_t object, uint64_t *ret, bool *ret_awaits)
{
	int8_t state, awaits, runs;
	uint64_t frame;
	int r;

	if (!reader_has(runtime, GENERATOR_STATE)) {
		r = object_word(runtime, object + reader_field(runtime, GENERATOR_FRAME), &frame);
		if (r < 0)
			return r;
		*ret_awaits = true;
		*ret = frame;
		return frame ? 0 : -ENOENT;
	}
	r = page_cache_read(&runtime->page_cache, object + reader_field(runtime, GENERATOR_STATE), &state,
			    sizeof state);
	if (r < 0)
		return r;
	awaits = (int8_t)runtime->layout.field[GENERATOR_AWAITS];
	runs = (int8_t)runtime->layout.field[GENERATOR_RUNS];
	if (state > runs)
		return -ENOENT;
	*ret_awaits = state >= awaits && state < runs;
	*ret = object + reader_field(runtime, GENERATOR_FRAME);
	return 0;
}

int await_frame(struct py_runtime *runtime, uint64_t object, uint64_t *ret)
{
	bool awaits;

	return find_frame(runtime, object, ret, &awaits);
}

/* Start of a frame's value stack: a pointer in the frame, or the end of its local variables. */
static int stack_bottom(struct py_runtime *runtime, uint64_t frame, uint64_t *ret)
{
	struct frame_head head;
	uint32_t n_locals;
	int r;

	if (reader_has(runtime, FRAME_STACK))
		return object_word(runtime, frame + reader_field(runtime, FRAME_STACK), ret);
	r = reader_frame(runtime, frame, &head);
	if (r >= 0)
		r = page_cache_read(&runtime->page_cache, head.code + reader_field(runtime, CODE_N_LOCALS), &n_locals,
				    sizeof n_locals);
	if (r < 0)
		return r;
	*ret = frame + reader_field(runtime, FRAME_LOCALS) + n_locals * sizeof(uint64_t);
	return 0;
}

static int stack_top(struct py_runtime *runtime, uint64_t frame, uint64_t bottom, uint64_t *ret)
{
	uint64_t start = bottom;
	int32_t depth;
	int r;

	if (reader_has(runtime, FRAME_STACK_TOP))
		return object_word(runtime, frame + reader_field(runtime, FRAME_STACK_TOP), ret);
	r = page_cache_read(&runtime->page_cache, frame + reader_field(runtime, FRAME_STACK_DEPTH), &depth,
			    sizeof depth);
	if (r < 0)
		return r;
	if (depth < 0) /* the frame is running */
		return -ENOENT;
	if (!reader_has(runtime, FRAME_STACK))
		start = frame + reader_field(runtime, FRAME_LOCALS);
	*ret = start + (uint64_t)depth * sizeof(uint64_t);
	return 0;
}

/* The object that a suspended coroutine awaits. -ENOENT: its stack is empty or unknown. */
static int awaited_by_frame(struct py_runtime *runtime, uint64_t frame, uint64_t *ret)
{
	uint64_t bottom, top, slot = reader_field(runtime, AWAITED_SLOT), object;
	int r;

	r = stack_bottom(runtime, frame, &bottom);
	if (r >= 0)
		r = stack_top(runtime, frame, bottom, &top);
	if (r < 0)
		return r;
	if (top < bottom || top - bottom > MAX_STACK_SLOTS * sizeof object || top - bottom < slot * sizeof object)
		return -ENOENT;
	r = object_word(runtime, top - slot * sizeof object, &object);
	if (r < 0)
		return r;
	*ret = object & ~(uint64_t)(OBJECT_ALIGNMENT - 1); /* from 3.14 on, the low bits are a tag */
	return 0;
}

/* The object inside a wrapper: its first field. */
static int unwrap(struct py_runtime *runtime, uint64_t object, uint64_t *ret)
{
	return object_word(runtime, object + reader_field(runtime, OBJECT_SIZE), ret);
}

/* Go one step inwards. 0: the chain has ended. */
static int step(struct py_runtime *runtime, uint64_t *object, struct py_frames *frames, uint64_t *ret_future)
{
	uint64_t frame;
	bool awaits;
	int r;

	switch (kind_of(runtime, *object)) {
	case AWAITS_COROUTINE:
		r = find_frame(runtime, *object, &frame, &awaits);
		if (r >= 0)
			r = reader_walk_one(runtime, frame, frames);
		if (r >= 0)
			r = awaits ? awaited_by_frame(runtime, frame, object) : -ENOENT;
		break;
	case AWAITS_WRAPPER:
		r = unwrap(runtime, *object, object);
		break;
	case AWAITS_FUTURE:
		r = unwrap(runtime, *object, ret_future);
		return r == -ENOMEM ? r : 0;
	default:
		return 0;
	}
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return 1;
}

static void reverse(struct py_frame *frames, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct py_frame other = frames[i];

		frames[i] = frames[n - 1 - i];
		frames[n - 1 - i] = other;
	}
}

int await_walk(struct py_runtime *runtime, uint64_t object, struct py_frames *frames, uint64_t *ret_future)
{
	struct circle circle = { 0 };
	size_t before = frames->n;
	int r = 1;

	*ret_future = 0;
	for (unsigned i = 0; r > 0 && object != 0 && i < MAX_AWAITS && !circle_met(&circle, object); i++)
		r = step(runtime, &object, frames, ret_future);
	if (frames->n > before)
		reverse(frames->frames + before, frames->n - before);
	return r < 0 ? r : 0;
}
