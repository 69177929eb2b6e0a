/* cpython_memory.h - an interpreter's memory in a small file, and all of the
 * reader let loose on it. Shared by fuzz_cpython.c and snapshot_python.c.
 *
 * The file, in the machine's byte order:
 *   u8   version: index into memory_versions; the high bit set: the layout
 *        comes from the debug offsets in that memory
 *   u32  thread id
 *   u64  address of _PyRuntime
 *   u64  four addresses more to start from
 *   then pieces to the end: u64 address, u16 length, bytes.
 * Memory exists in whole pages; what no piece fills is zero.
 */
#ifndef PROBING_FUZZ_CPYTHON_MEMORY_H
#define PROBING_FUZZ_CPYTHON_MEMORY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum {
	MEMORY_MAX_PAGES = 128,
	MEMORY_N_STARTS = 4,
	MEMORY_MAX_ANCHORS = 64,
	MEMORY_OFFSETS_BIT = 0x80,
};

static const unsigned memory_versions[] = { 0x030b07f0, 0x030c01f0, 0x030d00f0 };

/* Words of _Py_DebugOffsets of a default build of 3.13.0; the runtime tells no others. */
static const uint64_t memory_offsets_3_13[] = {
#include "fuzz/debug_offsets_3_13.h"
};

struct memory {
	struct remote base;
	uint8_t version;
	pid_t tid;
	uint64_t runtime, starts[MEMORY_N_STARTS];
	size_t n_pages;
	struct memory_page {
		uint64_t address;
		uint8_t bytes[WINDOW_PAGE_BYTES];
	} pages[MEMORY_MAX_PAGES];
};

static inline struct memory_page *memory_page(struct memory *memory, uint64_t address)
{
	for (size_t i = 0; i < memory->n_pages; i++)
		if (memory->pages[i].address == address - address % WINDOW_PAGE_BYTES)
			return &memory->pages[i];
	return NULL;
}

/* NULL: there is room for no more. */
static inline struct memory_page *memory_add_page(struct memory *memory, uint64_t address)
{
	struct memory_page *page = memory_page(memory, address);

	if (page || memory->n_pages == MEMORY_MAX_PAGES)
		return page;
	page = &memory->pages[memory->n_pages++];
	page->address = address - address % WINDOW_PAGE_BYTES;
	memset(page->bytes, 0, sizeof page->bytes);
	return page;
}

static inline ssize_t memory_read(struct remote *remote, struct raddr from, void *to,
				  size_t n_bytes)
{
	struct memory *memory = (struct memory *)remote;
	size_t done = 0;

	while (done < n_bytes) {
		uint64_t address = from.value + done, offset = address % WINDOW_PAGE_BYTES;
		size_t piece = MIN(n_bytes - done, (size_t)(WINDOW_PAGE_BYTES - offset));
		const struct memory_page *page = memory_page(memory, address);

		if (!page)
			break;
		memcpy((uint8_t *)to + done, page->bytes + offset, piece);
		done += piece;
	}
	return done > 0 ? (ssize_t)done : -EFAULT;
}

struct memory_cursor {
	const uint8_t *at, *end;
};

static inline uint64_t memory_take(struct memory_cursor *cursor, size_t n_bytes)
{
	uint64_t value = 0;

	n_bytes = MIN(n_bytes, (size_t)(cursor->end - cursor->at));
	memcpy(&value, cursor->at, n_bytes);
	cursor->at += n_bytes;
	return value;
}

static inline void memory_take_piece(struct memory *memory, struct memory_cursor *cursor)
{
	uint64_t address = memory_take(cursor, 8);
	size_t n_bytes = (size_t)memory_take(cursor, 2);

	n_bytes = MIN(n_bytes, (size_t)(cursor->end - cursor->at));
	for (; n_bytes > 0; n_bytes--, address++) {
		struct memory_page *page = memory_add_page(memory, address);

		if (page)
			page->bytes[address % WINDOW_PAGE_BYTES] = *cursor->at;
		cursor->at++;
	}
}

static inline void memory_parse(struct memory *memory, const uint8_t *bytes, size_t n_bytes)
{
	static const struct remote_ops ops = { .read = memory_read };
	struct memory_cursor cursor = { bytes, bytes + n_bytes };

	memory->base.ops = &ops;
	memory->n_pages = 0;
	memory->version = (uint8_t)memory_take(&cursor, 1);
	memory->tid = (pid_t)memory_take(&cursor, 4);
	memory->runtime = memory_take(&cursor, 8);
	for (size_t i = 0; i < MEMORY_N_STARTS; i++)
		memory->starts[i] = memory_take(&cursor, 8);
	while (cursor.at < cursor.end)
		memory_take_piece(memory, &cursor);
}

/* A runtime as py_runtime_find() would have made it. */
static inline int memory_open(struct memory *memory, struct remote *remote, struct py_runtime **ret)
{
	unsigned version = memory_versions[(memory->version & 0x7f) % N_ELEMENTS(memory_versions)];
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = calloc(1, sizeof *runtime);
	uint64_t words[N_ELEMENTS(memory_offsets_3_13)];
	int r = 0;

	if (!runtime)
		return -ENOMEM;
	runtime->remote = runtime->window.remote = remote;
	runtime->symbols.runtime = memory->runtime;
	py_begin_sample(runtime);
	r = layout_of(version, false, &runtime->layout);
	if (r < 0 || layout_n_words(&runtime->layout) == 0) {
		if (r >= 0)
			*ret = TAKE(runtime);
		return r;
	}
	memcpy(words, memory_offsets_3_13, sizeof words);
	if (memory->version & MEMORY_OFFSETS_BIT)
		r = remote_read(remote, RADDR(memory->runtime), words, sizeof words);
	if (r >= 0)
		r = layout_read_debug_offsets(words, N_ELEMENTS(words), &runtime->layout);
	if (r >= 0)
		*ret = TAKE(runtime);
	return r;
}

static inline uint64_t memory_mix(uint64_t hash, uint64_t value)
{
	return mix64(hash * 31 + value);
}

static inline uint64_t memory_mix_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = memory_mix(hash, (uint8_t)*text);
	return hash;
}

static inline uint64_t memory_walk(struct py_runtime *runtime, uint64_t top,
				   struct py_frames *frames, uint64_t hash)
{
	uint64_t end = 0, outer = 0;
	size_t first = frames->n;

	hash = memory_mix(hash, (uint64_t)(int64_t)py_walk(runtime, top, frames, &end, &outer));
	hash = memory_mix(memory_mix(hash, end), outer);
	for (size_t i = first; i < frames->n; i++) {
		const struct py_frame *frame = &frames->frames[i];

		hash = memory_mix_text(memory_mix_text(hash, frame->code->qualname), frame->code->file);
		hash = memory_mix(hash, (uint64_t)py_code_line(frame->code, frame->instruction));
	}
	return hash;
}

/* Everything that is asked about a sample. The hash tells whether all answers are the same. */
static inline uint64_t memory_exercise(const struct memory *memory, struct py_runtime *runtime)
{
	struct py_anchor anchors[MEMORY_MAX_ANCHORS];
	struct py_frames frames = { 0 };
	uint64_t top = 0, hash = 0;
	int n;

	py_begin_sample(runtime);
	n = py_live_anchors(runtime, memory->tid, anchors, MEMORY_MAX_ANCHORS, &top);
	hash = memory_mix(hash, (uint64_t)(int64_t)n);
	for (int i = 0; i < n; i++) {
		hash = memory_walk(runtime, top, &frames, hash);
		if (py_anchor_tells_top(runtime))
			top = i + 1 < n ? anchors[i + 1].top : 0;
		else
			top = anchors[i].outer_top;
	}
	for (size_t i = 0; i < MEMORY_N_STARTS; i++) {
		char *text = NULL;

		hash = memory_walk(runtime, memory->starts[i], &frames, hash);
		hash = memory_mix(hash, py_calls_into(runtime, memory->starts[i], top));
		if (reader_string(runtime, memory->starts[i], 64, &text) == 0)
			hash = memory_mix_text(hash, text);
		free(text);
	}
	py_frames_done(&frames);
	return memory_mix(hash, py_code_count(runtime));
}

#endif
