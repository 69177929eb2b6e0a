/* SPDX-License-Identifier: MIT */
/* exercise.h - all of the interpreter's reader let loose on one memory.
 *
 * Shared by fuzz_cpython.c, where memory lies, and tools/cut_image.c, which keeps the
 * memory without which some answer would be another.
 */
#ifndef PROBING_FUZZ_EXERCISE_H
#define PROBING_FUZZ_EXERCISE_H

#include "tests/unit/memory_image.h"
#include "unwind/cpython/cpython.h"
#include "unwind/cpython/object.h"

enum { EXERCISE_MAX_ANCHORS = 256, EXERCISE_MAX_LOCALS = 64, EXERCISE_MAX_ITEMS = 64 };

static inline uint64_t exercise_mix(uint64_t hash, uint64_t value)
{
	return mix64(hash * 31 + value);
}

static inline uint64_t exercise_mix_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = exercise_mix(hash, (uint8_t)*text);
	return hash;
}

static inline uint64_t exercise_mix_frames(const struct py_frames *frames, size_t first, uint64_t hash)
{
	for (size_t i = first; i < frames->n; i++) {
		const struct py_frame *frame = &frames->frames[i];

		hash = exercise_mix_text(exercise_mix_text(hash, frame->code->qualname), frame->code->file);
		hash = exercise_mix(hash, (uint64_t)py_code_line(frame->code, frame->instruction));
		hash = exercise_mix(exercise_mix(hash, frame->pointer), (uint64_t)(int64_t)frame->instruction);
	}
	return hash;
}

/* Query known frames. */
static inline uint64_t exercise_known(struct py_runtime *runtime, const struct py_frames *frames, size_t first,
				      uint64_t hash)
{
	const struct py_frame *innermost = &frames->frames[first], *outermost = &frames->frames[frames->n - 1];

	hash = exercise_mix(hash, (uint64_t)(int64_t)py_look_again(runtime, 1));
	hash = exercise_mix(hash, py_calls_into(runtime, outermost->address, innermost->address));
	return exercise_mix(hash, py_callers_stay(runtime, innermost, frames->n - first));
}

/* Read variables without a time limit. */
static inline uint64_t exercise_locals(struct py_runtime *runtime, const struct py_frame *frame, uint64_t hash)
{
	struct py_locals locals = { 0 };

	hash = exercise_mix(hash, (uint64_t)(int64_t)py_locals_read(runtime, frame->address, UINT64_MAX, &locals));
	for (size_t i = 0; i < locals.n; i++) {
		hash = exercise_mix_text(exercise_mix_text(hash, locals.locals[i].name), locals.locals[i].value);
		hash = exercise_mix_text(hash, locals.locals[i].type);
	}
	hash = exercise_mix(hash, locals.is_cut);
	py_locals_done(&locals);
	return hash;
}

static inline uint64_t exercise_names(struct py_runtime *runtime, uint64_t hash)
{
	struct py_thread_names names = { 0 };

	hash = exercise_mix(hash, (uint64_t)(int64_t)py_thread_names_read(runtime, &names));
	for (size_t i = 0; i < names.n; i++)
		hash = exercise_mix_text(exercise_mix(hash, names.names[i].ident), names.names[i].name);
	py_thread_names_done(&names);
	return hash;
}

/* Find a set of weak references that every interpreter with threads has: threading._dangling.data. */
static inline int exercise_find_set(struct py_runtime *runtime, struct item_walk *ret)
{
	uint64_t interpreter, module, references, set;
	int r;

	r = reader_interpreters(runtime, &interpreter);
	if (r >= 0)
		r = object_module_dict(runtime, interpreter, "threading", &module);
	if (r >= 0)
		r = object_dict_find(runtime, module, "_dangling", &references);
	if (r >= 0)
		r = object_attribute(runtime, references, "data", &set);
	return r < 0 ? r : object_set_walk(runtime, set, ret);
}

static inline uint64_t exercise_set(struct py_runtime *runtime, uint64_t hash)
{
	struct item_walk walk = { 0 };
	struct object_type type;
	uint64_t item, target = 0;
	int r;

	r = exercise_find_set(runtime, &walk);
	for (unsigned i = 0; i < EXERCISE_MAX_ITEMS && r >= 0 && (r = object_item_next(runtime, &walk, &item)) > 0;
	     i++) {
		hash = exercise_mix(hash, (uint64_t)(int64_t)object_weakref_target(runtime, item, &target));
		hash = exercise_mix(hash, target);
		if (object_type_of(runtime, target, &type) >= 0)
			hash = exercise_mix_text(hash, type.name);
	}
	return exercise_mix(hash, (uint64_t)(int64_t)r);
}

/* Walk one evaluation and append its frames. */
static inline uint64_t exercise_walk(struct py_runtime *runtime, uint64_t top, struct py_frames *frames,
				     uint64_t *ret_outer, uint64_t hash)
{
	size_t first = frames->n;
	uint64_t end = 0;

	*ret_outer = 0;
	hash = exercise_mix(hash, (uint64_t)(int64_t)py_walk(runtime, top, frames, &end, ret_outer));
	hash = exercise_mix(exercise_mix(hash, end), *ret_outer);
	if (frames->n > first)
		hash = exercise_known(runtime, frames, first, exercise_mix_frames(frames, first, hash));
	return hash;
}

static inline void exercise_prefetch(struct py_runtime *runtime, const struct py_anchor *anchors, size_t n)
{
	uint64_t addresses[PY_PREFETCH];

	n = MIN(n, (size_t)PY_PREFETCH);
	for (size_t i = 0; i < n; i++)
		addresses[i] = anchors[i].top ? anchors[i].top : anchors[i].address;
	py_prefetch(runtime, addresses, n);
}

/* Parse an anchor from its bytes like captured ones, in memory of exactly that size. */
static inline uint64_t exercise_parse(struct py_runtime *runtime, struct remote *remote, uint64_t address,
				      uint64_t hash)
{
	size_t n_bytes = py_anchor_bytes(runtime);
	CLEANUP(freep) uint8_t *bytes = malloc(n_bytes);
	struct py_anchor anchor = { 0 };

	if (py_anchor_is_frame(runtime) || !bytes || remote_read(remote, RADDR(address), bytes, n_bytes) < 0)
		return hash;
	hash = exercise_mix(hash, (uint64_t)(int64_t)py_anchor_parse(runtime, bytes, address, &anchor));
	return exercise_mix(exercise_mix(hash, anchor.top), anchor.outer_top);
}

static inline uint64_t exercise_thread(struct py_runtime *runtime, struct remote *remote, pid_t tid, uint64_t hash)
{
	struct py_anchor anchors[EXERCISE_MAX_ANCHORS];
	struct py_frames frames = { 0 };
	struct py_state state = { 0 };
	uint64_t top = 0;
	int n;

	py_begin_sample(runtime);
	hash = exercise_mix(hash, (uint64_t)(int64_t)py_state_of(runtime, tid, &state));
	hash = exercise_mix(exercise_mix(hash, state.holds_gil * 3u + state.collects), state.ident);
	n = py_live_anchors(runtime, tid, false, anchors, EXERCISE_MAX_ANCHORS);
	hash = exercise_mix(hash, (uint64_t)(int64_t)n);
	if (n > 0)
		exercise_prefetch(runtime, anchors, (size_t)n);
	for (int i = 0; i < n; i++) {
		hash = exercise_parse(runtime, remote, anchors[i].address, hash);
		hash = exercise_mix(hash, py_is_outermost(runtime, &anchors[i]));
		hash = exercise_walk(runtime, anchors[i].top, &frames, &top, hash);
	}
	if (top != 0) /* 0 below all frames of a thread */
		hash = exercise_walk(runtime, top, &frames, &top, hash);
	for (size_t i = 0; i < MIN(frames.n, (size_t)EXERCISE_MAX_LOCALS); i++)
		hash = exercise_locals(runtime, &frames.frames[i], hash);
	py_frames_done(&frames);
	return hash;
}

/*
 * Run every query of a sample. The hash shows whether all results are equal.
 * @remote: memory of the opened runtime.
 */
static inline uint64_t exercise(const struct memory_image *image, struct remote *remote, struct py_runtime *runtime)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < IMAGE_N_THREADS; i++)
		if (image->threads[i] != 0)
			hash = exercise_thread(runtime, remote, image->threads[i], hash);
	return exercise_mix(exercise_set(runtime, exercise_names(runtime, hash)), py_code_count(runtime));
}

#endif
