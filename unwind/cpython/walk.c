/* walk.c - anchors and the frames between them.
 *
 * 3.11:          thread -> _PyCFrame -> innermost frame -> previous ... up to
 *                the frame whose entry flag is set.
 * 3.12:          the same, but an evaluation ends at its shim frame, which lies
 *                on the native stack beside the _PyCFrame.
 * 3.13 and on:   thread -> innermost frame -> previous ...; the shims on that
 *                chain are the anchors.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { MAX_FRAMES_A_SAMPLE = 4 * PY_MAX_FRAMES, MAX_TABLE_BYTES_A_SAMPLE = 64 << 20 };

/* From 3.14 the low bits of a code pointer are a tag; before they are 0. */
#define CODE_TAG_MASK 3u

void py_frames_done(struct py_frames *frames)
{
	free(frames->frames);
	memset(frames, 0, sizeof *frames);
}

void py_begin_sample(struct py_runtime *runtime)
{
	runtime->frames_left = MAX_FRAMES_A_SAMPLE;
	runtime->table_bytes_left = MAX_TABLE_BYTES_A_SAMPLE;
	window_forget(&runtime->window);
	memset(runtime->codes.seen, 0, sizeof runtime->codes.seen);
}

static bool has(const struct py_runtime *runtime, enum layout_field field)
{
	return runtime->layout.field[field] != ABSENT;
}

bool py_anchor_tells_top(const struct py_runtime *runtime)
{
	return runtime->layout.field[ANCHOR] == ANCHOR_CFRAME;
}

size_t py_anchor_bytes(const struct py_runtime *runtime)
{
	if (runtime->layout.field[ANCHOR] == ANCHOR_CFRAME)
		return reader_field(runtime, CFRAME_PREVIOUS) + sizeof(uint64_t);
	return FRAME_HEAD_BYTES;
}

static void parse_frame(const struct py_runtime *runtime, const uint8_t *bytes, struct frame_head *ret)
{
	ret->code = word_at(bytes, reader_field(runtime, FRAME_CODE)) & ~(uint64_t)CODE_TAG_MASK;
	ret->previous = word_at(bytes, reader_field(runtime, FRAME_PREVIOUS));
	ret->instruction = word_at(bytes, reader_field(runtime, FRAME_INSTRUCTION));
	ret->is_entry = has(runtime, FRAME_ENTRY) && bytes[reader_field(runtime, FRAME_ENTRY)] != 0;
	ret->is_shim = runtime->layout.field[ENTRY] == ENTRY_OWNER &&
		       bytes[reader_field(runtime, FRAME_OWNER)] == OWNER_CSTACK;
}

int reader_frame(struct py_runtime *runtime, uint64_t address, struct frame_head *ret)
{
	uint8_t bytes[FRAME_HEAD_BYTES];
	int r;

	if (address == 0 || address % sizeof(uint64_t) != 0)
		return -EBADMSG;
	if (runtime->frames_left == 0)
		return -ELOOP;
	runtime->frames_left--;
	r = window_read(&runtime->window, address, bytes, sizeof bytes);
	if (r < 0)
		return r;
	if (has(runtime, FRAME_OWNER) && bytes[reader_field(runtime, FRAME_OWNER)] > OWNER_CSTACK)
		return -EBADMSG;
	parse_frame(runtime, bytes, ret);
	return 0;
}

int py_anchor_parse(const struct py_runtime *runtime, const void *bytes, uint64_t address,
		    struct py_anchor *ret)
{
	struct py_anchor anchor = { .address = address };
	struct frame_head shim;

	if (runtime->layout.field[ANCHOR] == ANCHOR_CFRAME) {
		anchor.top = word_at(bytes, reader_field(runtime, CFRAME_FRAME));
		anchor.outer_anchor = word_at(bytes, reader_field(runtime, CFRAME_PREVIOUS));
	} else {
		parse_frame(runtime, bytes, &shim);
		if (!shim.is_shim)
			return -EBADMSG;
		anchor.outer_top = shim.previous;
	}
	*ret = anchor;
	return 0;
}

static int live_cframes(struct py_runtime *runtime, uint64_t state, struct py_anchor *anchors, size_t max,
			uint64_t *ret_top)
{
	uint64_t root = state + reader_field(runtime, THREAD_ROOT_CFRAME), address;
	size_t n = 0;
	int r;

	r = window_read(&runtime->window, state + reader_field(runtime, THREAD_CFRAME), &address,
			sizeof address);
	if (r < 0)
		return r;
	*ret_top = 0;
	while (address != root) {
		uint8_t bytes[32];

		if (n == max)
			return -ELOOP;
		r = window_read(&runtime->window, address, bytes, py_anchor_bytes(runtime));
		if (r < 0)
			return r;
		py_anchor_parse(runtime, bytes, address, &anchors[n]);
		/* Stacks grow down: an outer evaluation lies higher. */
		if (anchors[n].outer_anchor != root && anchors[n].outer_anchor <= address)
			return -ELOOP;
		if (n == 0)
			*ret_top = anchors[n].top;
		address = anchors[n++].outer_anchor;
	}
	return (int)n;
}

static int live_shims(struct py_runtime *runtime, uint64_t state, struct py_anchor *anchors, size_t max,
		      uint64_t *ret_top)
{
	uint64_t address;
	size_t n = 0;
	int r;

	r = window_read(&runtime->window, state + reader_field(runtime, THREAD_FRAME), &address,
			sizeof address);
	if (r < 0)
		return r;
	*ret_top = address;
	for (size_t i = 0; address != 0; i++) {
		struct frame_head frame;

		if (i == PY_MAX_FRAMES || n == max)
			return -ELOOP;
		r = reader_frame(runtime, address, &frame);
		if (r < 0)
			return r;
		if (frame.is_shim)
			anchors[n++] = (struct py_anchor){ .address = address, .outer_top = frame.previous };
		address = frame.previous;
	}
	return (int)n;
}

int py_live_anchors(struct py_runtime *runtime, pid_t tid, struct py_anchor *anchors, size_t max,
		    uint64_t *ret_top)
{
	uint64_t state;
	int r;

	r = reader_thread(runtime, tid, &state);
	if (r < 0)
		return r;
	if (runtime->layout.field[ANCHOR] == ANCHOR_CFRAME)
		return live_cframes(runtime, state, anchors, max, ret_top);
	return live_shims(runtime, state, anchors, max, ret_top);
}

static int append(struct py_runtime *runtime, struct py_frames *frames, size_t n_new, uint64_t address,
		  const struct frame_head *head)
{
	int r;

	r = grow(&frames->frames, frames->n, &frames->allocated, sizeof *frames->frames);
	if (r >= 0)
		r = grow(&runtime->walk_codes, n_new, &runtime->walk_codes_allocated,
			 sizeof *runtime->walk_codes);
	if (r >= 0)
		r = grow(&runtime->walk_results, n_new, &runtime->walk_results_allocated,
			 sizeof *runtime->walk_results);
	if (r < 0)
		return r;
	runtime->walk_codes[n_new] = head->code;
	frames->frames[frames->n++] = (struct py_frame){
		.address = address,
		.pointer = head->instruction,
	};
	return 0;
}

static int32_t instruction_offset(const struct py_code *code, uint64_t pointer)
{
	uint64_t offset = pointer - code->bytecode;

	return offset < code->bytecode_bytes ? (int32_t)offset : PY_INSTRUCTION_NONE;
}

/* Turn the code addresses of the last n frames into codes, and leave out what is nobody's function. */
static int resolve(struct py_runtime *runtime, struct py_frames *all, size_t n)
{
	struct py_frame *frames = all->frames + all->n - n;
	size_t kept = 0;
	int r;

	r = reader_codes(runtime, runtime->walk_codes, n, runtime->walk_results);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		frames[kept] = frames[i];
		frames[kept].code = runtime->walk_results[i];
		frames[kept].instruction = instruction_offset(frames[kept].code, frames[kept].pointer);
		kept += !frames[kept].code->is_internal;
	}
	all->n -= n - kept;
	return 0;
}

static int collect(struct py_runtime *runtime, uint64_t top, struct py_frames *frames, uint64_t *ret_end,
		   uint64_t *ret_outer)
{
	uint64_t address = top, mark = 0;
	size_t n_new = 0, next_mark = 64;

	for (;;) {
		struct frame_head head;
		int r;

		r = reader_frame(runtime, address, &head);
		if (r < 0)
			return r;
		if (head.is_shim) {
			*ret_end = address;
			*ret_outer = head.previous;
			return 0;
		}
		if (address == mark)
			return -ELOOP;
		if (n_new == next_mark) { /* Brent: every cycle is met within twice its length */
			mark = address;
			next_mark *= 2;
		}
		if (frames->n < PY_MAX_FRAMES) {
			r = append(runtime, frames, n_new, address, &head);
			if (r < 0)
				return r;
		} else {
			frames->is_cut = true;
		}
		n_new++;
		if (head.is_entry) {
			*ret_end = address;
			*ret_outer = head.previous;
			return 0;
		}
		address = head.previous;
	}
}

int py_walk(struct py_runtime *runtime, uint64_t top, struct py_frames *frames, uint64_t *ret_end,
	    uint64_t *ret_outer)
{
	size_t before = frames->n;
	uint64_t end, outer;
	int r;

	r = collect(runtime, top, frames, &end, &outer);
	if (r >= 0 && frames->n > before)
		r = resolve(runtime, frames, frames->n - before);
	if (r < 0) {
		frames->n = before;
		return r;
	}
	*ret_end = end;
	*ret_outer = outer;
	return 0;
}

bool py_calls_into(struct py_runtime *runtime, uint64_t frame, uint64_t inner)
{
	for (unsigned i = 0; i < PY_MAX_FRAMES && inner != 0; i++) {
		struct frame_head head;

		if (inner == frame)
			return true;
		if (reader_frame(runtime, inner, &head) < 0 || head.is_shim || head.is_entry)
			return false;
		inner = head.previous;
	}
	return false;
}

bool py_callers_stay(struct py_runtime *runtime, const struct py_frame *frames, size_t n)
{
	uint64_t address = n > 0 ? frames[0].address : 0;

	window_forget(&runtime->window);
	for (size_t i = 0; i < n;) {
		struct frame_head head;

		if (reader_frame(runtime, address, &head) < 0 || head.is_shim)
			return false;
		/* Frames of nobody's functions had been left out. */
		if (address == frames[i].address) {
			if (i > 0 && head.instruction != frames[i].pointer)
				return false;
			i++;
		}
		address = head.previous;
	}
	return true;
}
