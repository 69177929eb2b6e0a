/* SPDX-License-Identifier: MIT */
/* walk.c - anchors and the frames between them.
 *
 * up to 3.10:    thread -> innermost frame object -> f_back ...; each is an
 *                evaluation of its own.
 * 3.11:          thread -> _PyCFrame -> innermost frame -> previous ... up to
 *                the frame whose entry flag is set.
 * 3.12:          the same, but an evaluation ends at its shim frame, which lies
 *                on the native stack beside the _PyCFrame.
 * 3.13 and on:   thread -> innermost frame -> previous ...; the shims on that
 *                chain are the anchors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum {
	MAX_FRAMES_A_SAMPLE = 4 * PY_MAX_FRAMES,
	MAX_TABLE_BYTES_A_SAMPLE = 64 << 20,
};

/* From 3.14 on, the low bits of a code pointer are a tag; before, they are 0. */
#define CODE_TAG_MASK 3u

void py_frames_done(struct py_frames *frames)
{
	free(frames->frames);
	memset(frames, 0, sizeof *frames);
}

static void forget_memory(struct py_runtime *runtime)
{
	page_cache_forget(&runtime->page_cache);
	runtime->sample++;
}

void py_begin_sample(struct py_runtime *runtime)
{
	runtime->n_samples++;
	runtime->frames_left = MAX_FRAMES_A_SAMPLE;
	runtime->table_bytes_left = MAX_TABLE_BYTES_A_SAMPLE;
	runtime->record = NULL;
	forget_memory(runtime);
}

int py_expect_thread(struct py_runtime *runtime, pid_t tid)
{
	return page_cache_expect(&runtime->page_cache, tid);
}

int py_look_again(struct py_runtime *runtime, pid_t tid)
{
	forget_memory(runtime);
	return py_expect_thread(runtime, tid);
}

bool py_anchor_tells_top(const struct py_runtime *runtime)
{
	return runtime->layout.field[ANCHOR] != ANCHOR_SHIM;
}

bool py_anchor_is_frame(const struct py_runtime *runtime)
{
	return runtime->layout.field[ANCHOR] == ANCHOR_FRAME;
}

size_t py_anchor_bytes(const struct py_runtime *runtime)
{
	if (runtime->layout.field[ANCHOR] == ANCHOR_CFRAME)
		return reader_field(runtime, CFRAME_PREVIOUS) + sizeof(uint64_t);
	return runtime->layout.frame_bytes;
}

static void parse_frame(const struct py_runtime *runtime, const uint8_t *bytes, struct frame_head *ret)
{
	*ret = (struct frame_head){
		.code = word_at(bytes, reader_field(runtime, FRAME_CODE)) & ~(uint64_t)CODE_TAG_MASK,
		.previous = word_at(bytes, reader_field(runtime, FRAME_PREVIOUS)),
		.is_entry = runtime->layout.field[ENTRY] == ENTRY_EACH ||
			    (reader_has(runtime, FRAME_ENTRY) && bytes[reader_field(runtime, FRAME_ENTRY)] != 0),
		.is_shim = runtime->layout.field[ENTRY] == ENTRY_OWNER &&
			   bytes[reader_field(runtime, FRAME_OWNER)] >= OWNER_SHIM,
	};
	if (reader_has(runtime, FRAME_INSTRUCTION))
		ret->instruction = word_at(bytes, reader_field(runtime, FRAME_INSTRUCTION));
	else
		ret->instruction = half_at(bytes, reader_field(runtime, FRAME_LAST_INSTRUCTION));
	if (runtime->layout.field[ENTRY] == ENTRY_EACH) /* otherwise frames are no objects */
		ret->type = word_at(bytes, reader_field(runtime, OBJECT_TYPE));
	if (reader_has(runtime, FRAME_BYTECODE_INDEX))
		ret->bytecode_index = half_at(bytes, reader_field(runtime, FRAME_BYTECODE_INDEX));
}

/* Whether the memory cannot be a frame, by its owner or type. */
static bool is_foreign(const struct py_runtime *runtime, const uint8_t *bytes, const struct frame_head *frame)
{
	if (reader_has(runtime, FRAME_OWNER) &&
	    bytes[reader_field(runtime, FRAME_OWNER)] > runtime->layout.field[MAX_OWNER])
		return true;
	return runtime->layout.field[ENTRY] == ENTRY_EACH && runtime->frame_type != 0 &&
	       frame->type != runtime->frame_type;
}

void py_prefetch(struct py_runtime *runtime, const uint64_t *addresses, size_t n)
{
	struct py_code *results[PY_PREFETCH];
	uint64_t codes[PY_PREFETCH];
	size_t n_read = 0;

	n = MIN(n, (size_t)PY_PREFETCH);
	page_cache_prepare(&runtime->page_cache, addresses, n, runtime->layout.frame_bytes);
	for (; n_read < n; n_read++) {
		uint8_t bytes[MAX_HEAD_BYTES];
		struct frame_head head;

		if (page_cache_read(&runtime->page_cache, addresses[n_read], bytes, runtime->layout.frame_bytes) < 0)
			break;
		parse_frame(runtime, bytes, &head);
		codes[n_read] = head.code;
	}
	if (n_read > 0)
		(void)reader_codes(runtime, codes, n_read, results); /* the walk reports errors of single codes */
}

/* Convert a recorded frame to a frame head. */
static int take_recorded(const struct py_runtime *runtime, const struct python_entry *entry, struct frame_head *ret)
{
	*ret = (struct frame_head){
		.code = entry->code,
		.previous = entry->previous,
		.instruction = entry->instruction,
		.type = entry->type,
		.bytecode_index = entry->bytecode_index,
		.is_entry = runtime->layout.field[ENTRY] == ENTRY_EACH || entry->is_entry != 0,
		.is_shim = runtime->layout.field[ENTRY] == ENTRY_OWNER && entry->owner >= OWNER_SHIM,
	};
	return reader_has(runtime, FRAME_OWNER) && entry->owner > runtime->layout.field[MAX_OWNER] ? -EBADMSG : 0;
}

int reader_frame(struct py_runtime *runtime, uint64_t address, struct frame_head *ret)
{
	const struct python_entry *entry;
	uint8_t bytes[MAX_HEAD_BYTES];
	int r;

	if (address == 0 || address % sizeof(uint64_t) != 0)
		return -EBADMSG;
	if (runtime->frames_left == 0)
		return -ELOOP;
	runtime->frames_left--;
	entry = reader_recorded(runtime, PYTHON_ENTRY_FRAME, address);
	if (entry)
		return take_recorded(runtime, entry, ret);
	r = page_cache_read(&runtime->page_cache, address, bytes, runtime->layout.frame_bytes);
	if (r < 0)
		return r;
	parse_frame(runtime, bytes, ret);
	return is_foreign(runtime, bytes, ret) ? -EBADMSG : 0;
}

int py_anchor_parse(const struct py_runtime *runtime, const void *bytes, uint64_t address, struct py_anchor *ret)
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

static int read_cframe(struct py_runtime *runtime, uint64_t address, struct py_anchor *ret)
{
	const struct python_entry *entry = reader_recorded(runtime, PYTHON_ENTRY_CFRAME, address);
	uint8_t bytes[32];
	int r;

	if (entry) {
		*ret = (struct py_anchor){ .address = address,
					   .top = entry->instruction,
					   .outer_anchor = entry->previous };
		return 0;
	}
	r = page_cache_read(&runtime->page_cache, address, bytes, py_anchor_bytes(runtime));
	return r < 0 ? r : py_anchor_parse(runtime, bytes, address, ret);
}

static int live_cframes(struct py_runtime *runtime, uint64_t state, struct py_anchor *anchors, size_t max)
{
	uint64_t root = state + reader_field(runtime, THREAD_ROOT_CFRAME), address;
	size_t n = 0;
	int r;

	r = reader_top(runtime, state, reader_field(runtime, THREAD_CFRAME), &address);
	if (r < 0)
		return r;
	while (address != root) {
		if (n == max)
			return -ELOOP;
		r = read_cframe(runtime, address, &anchors[n]);
		if (r < 0)
			return r;
		/* Stacks grow down: an outer evaluation has a higher address. */
		if (anchors[n].outer_anchor != root && anchors[n].outer_anchor <= address)
			return -ELOOP;
		address = anchors[n++].outer_anchor;
	}
	return (int)n;
}

/* Follow the frames of a thread. Shims are the anchors; if each frame is an evaluation, all frames are. */
static int live_frames(struct py_runtime *runtime, uint64_t state, struct py_anchor *anchors, size_t max)
{
	bool each = runtime->layout.field[ENTRY] == ENTRY_EACH;
	struct circle circle = { 0 };
	uint64_t address, top;
	size_t n = 0;
	int r;

	r = reader_top(runtime, state, reader_field(runtime, THREAD_FRAME), &address);
	if (r < 0)
		return r;
	top = address;
	while (address != 0) {
		struct frame_head frame;

		if (n == max || circle_met(&circle, address))
			return -ELOOP;
		r = reader_frame(runtime, address, &frame);
		if (r < 0)
			return r;
		if (each || frame.is_shim) {
			anchors[n++] = (struct py_anchor){ .address = address,
							   .top = top,
							   .outer_top = frame.previous };
			top = frame.previous;
		}
		address = frame.previous;
	}
	return (int)n;
}

static int live_of_state(struct py_runtime *runtime, uint64_t state, struct py_anchor *anchors, size_t max)
{
	if (runtime->layout.field[ANCHOR] == ANCHOR_CFRAME)
		return live_cframes(runtime, state, anchors, max);
	return live_frames(runtime, state, anchors, max);
}

static int by_address(const void *a, const void *b)
{
	const struct py_anchor *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

int py_live_anchors(struct py_runtime *runtime, pid_t tid, bool anew, struct py_anchor *anchors, size_t max)
{
	struct thread_slot states[PY_MAX_STATES];
	int r = 0, n_states, n = 0;

	if (runtime->record)
		n_states = reader_recorded_states(runtime, states, PY_MAX_STATES);
	else
		n_states = reader_states(runtime, tid, anew, states, PY_MAX_STATES);
	if (n_states < 0)
		return n_states;
	for (int i = 0; i < n_states; i++) {
		int n_more = live_of_state(runtime, states[i].state, anchors + n, max - (size_t)n);

		if (n_more < 0)
			r = n_more;
		else
			n += n_more;
	}
	/* Evaluations of a nested interpreter lie below those that called it. */
	if (n_states > 1 && !py_anchor_is_frame(runtime))
		qsort(anchors, (size_t)n, sizeof *anchors, by_address);
	return n > 0 ? n : r;
}

bool py_is_outermost(struct py_runtime *runtime, const struct py_anchor *anchor)
{
	struct frame_head frame;

	if (runtime->layout.field[ANCHOR] != ANCHOR_SHIM)
		return false;
	return anchor->outer_top == 0 || (reader_frame(runtime, anchor->outer_top, &frame) == 0 && frame.is_shim);
}

static int append(struct py_runtime *runtime, struct py_frames *frames, size_t n_new, uint64_t address,
		  const struct frame_head *head)
{
	int r;

	r = grow(&frames->frames, frames->n, &frames->allocated, sizeof *frames->frames);
	if (r >= 0)
		r = grow(&runtime->walk_codes, n_new, &runtime->walk_codes_allocated, sizeof *runtime->walk_codes);
	if (r >= 0)
		r = grow(&runtime->walk_results, n_new, &runtime->walk_results_allocated,
			 sizeof *runtime->walk_results);
	if (r < 0)
		return r;
	runtime->walk_codes[n_new] = head->code;
	frames->frames[frames->n++] = (struct py_frame){
		.address = address,
		.kept = head->instruction,
		.bytecode_index = head->bytecode_index,
	};
	return 0;
}

static int32_t instruction_offset(const struct py_code *code, uint64_t offset)
{
	return offset < code->bytecode_bytes ? (int32_t)offset : PY_INSTRUCTION_NONE;
}

/* Compute the frame's current instruction. -ENOMEM. */
static int locate(struct py_runtime *runtime, uint64_t code, struct py_frame *frame)
{
	uint64_t start = frame->code->bytecode;

	if (reader_has(runtime, FRAME_LAST_INSTRUCTION)) { /* 32 bits, -1 before the first instruction */
		frame->instruction = instruction_offset(frame->code,
							frame->kept * reader_field(runtime, LAST_INSTRUCTION_BYTES));
		frame->pointer = start + (uint64_t)MAX(frame->instruction, 0);
		return 0;
	}
	frame->pointer = frame->kept;
	if (runtime->record && py_code_at(runtime, frame->pointer) == frame->code)
		start = reader_bytecode_start(runtime, frame->pointer);
	else if (frame->bytecode_index != 0 && reader_bytecode(runtime, code, frame->bytecode_index, &start) < 0) {
		frame->instruction = PY_INSTRUCTION_UNKNOWN;
		return 0;
	}
	frame->instruction = instruction_offset(frame->code, frame->pointer - start);
	return start == frame->code->bytecode ? 0 : reader_add_bytecode(runtime, frame->code, start);
}

/* Take the codes of the last n frames from the record; read frames that it lacks from memory. */
static int recorded_codes(struct py_runtime *runtime, const struct py_frame *frames, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct python_entry *entry = reader_recorded(runtime, PYTHON_ENTRY_FRAME, frames[i].address);

		r = entry ? reader_recorded_code(runtime, entry, &runtime->walk_results[i])
			  : reader_codes(runtime, &runtime->walk_codes[i], 1, &runtime->walk_results[i]);
	}
	return r;
}

/* Resolve the codes of the last n frames and drop the interpreter's internal ones. */
static int resolve(struct py_runtime *runtime, struct py_frames *all, size_t n)
{
	struct py_frame *frames = all->frames + all->n - n;
	size_t kept = 0;
	int r;

	r = runtime->record ? recorded_codes(runtime, frames, n)
			    : reader_codes(runtime, runtime->walk_codes, n, runtime->walk_results);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r >= 0; i++) {
		frames[kept] = frames[i];
		frames[kept].code = runtime->walk_results[i];
		r = locate(runtime, runtime->walk_codes[i], &frames[kept]);
		kept += !frames[kept].code->is_internal;
	}
	all->n -= n - kept;
	return r;
}

static int collect(struct py_runtime *runtime, uint64_t top, struct py_frames *frames, uint64_t *ret_end,
		   uint64_t *ret_outer)
{
	struct circle circle = { 0 };
	uint64_t address = top;
	size_t n_new = 0;

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
		if (circle_met(&circle, address))
			return -ELOOP;
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

/* A frame with a code object defines the type of frames. */
static void learn_frame_type(struct py_runtime *runtime, uint64_t frame)
{
	struct frame_head head;

	if (reader_frame(runtime, frame, &head) == 0)
		runtime->frame_type = head.type;
}

int py_walk(struct py_runtime *runtime, uint64_t top, struct py_frames *frames, uint64_t *ret_end, uint64_t *ret_outer)
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
	if (runtime->layout.field[ENTRY] == ENTRY_EACH && runtime->frame_type == 0)
		learn_frame_type(runtime, top);
	*ret_end = end;
	*ret_outer = outer;
	return 0;
}

int reader_walk_one(struct py_runtime *runtime, uint64_t address, struct py_frames *frames)
{
	size_t before = frames->n;
	struct frame_head head;
	int r;

	r = reader_frame(runtime, address, &head);
	if (r < 0)
		return r;
	if (head.is_shim)
		return -EBADMSG;
	if (frames->n >= PY_MAX_FRAMES) {
		frames->is_cut = true;
		return -ELOOP;
	}
	r = append(runtime, frames, 0, address, &head);
	if (r < 0)
		return r;
	r = resolve(runtime, frames, 1);
	if (r < 0)
		frames->n = before;
	return r;
}

bool py_calls_into(struct py_runtime *runtime, uint64_t frame, uint64_t inner)
{
	struct circle circle = { 0 };

	while (inner != 0 && !circle_met(&circle, inner)) {
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

	for (size_t i = 0; i < n;) {
		struct frame_head head;

		if (reader_frame(runtime, address, &head) < 0 || head.is_shim)
			return false;
		/* Internal frames had been dropped. */
		if (address == frames[i].address) {
			if (i > 0 && head.instruction != frames[i].kept)
				return false;
			i++;
		}
		address = head.previous;
	}
	return true;
}
