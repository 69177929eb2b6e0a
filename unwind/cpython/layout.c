/* SPDX-License-Identifier: MIT */
/* layout.c - a release's offsets, the behaviours up to it, and the runtime's own debug offsets. */
#include "unwind/cpython/layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"

/* A file of unwind/cpython/releases. Values are stored plus one; 0: absent. */
static const struct release {
	uint8_t major, minor;
	bool free_threaded;
	uint16_t n_words;
	uint16_t offset[LAYOUT_N_FIELDS];
	uint16_t word[LAYOUT_N_FIELDS]; /* of _Py_DebugOffsets */
} releases[] = {
#include "unwind/cpython/layout_releases.h"
};

static const struct {
	uint8_t major, minor;
	enum layout_field field;
	int32_t value;
} behaviours[] = {
#define BEHAVIOUR(major, minor, field, value) { major, minor, field, value },
#include "unwind/cpython/behaviours.h"
#undef BEHAVIOUR
};

/* Larger values cannot be offsets in an interpreter's structures. */
enum { MAX_OFFSET = 1 << 20, FINAL_RELEASE = 0xf0 };

static const char cookie[8] = { 'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y' };

static unsigned minor_of(unsigned version)
{
	return version >> 16;
}

static unsigned minor_key(unsigned major, unsigned minor)
{
	return major << 8 | minor;
}

static const struct release *find_release(unsigned version, bool free_threaded)
{
	for (size_t i = 0; i < N_ELEMENTS(releases); i++)
		if (minor_key(releases[i].major, releases[i].minor) == minor_of(version) &&
		    releases[i].free_threaded == free_threaded)
			return &releases[i];
	return NULL;
}

static int32_t width_of(enum layout_field field)
{
	switch (field) {
	case FRAME_ENTRY:
	case FRAME_OWNER:
		return 1;
	case FRAME_LAST_INSTRUCTION:
	case FRAME_BYTECODE_INDEX:
	case CODE_FIRST_LINE:
	case CODE_VERSION:
	case STRING_STATE:
	case INTERPRETER_OWN_GIL_LOCKED:
	case GIL_ENABLED:
	case GC_COLLECTING:
		return sizeof(uint32_t);
	default:
		return sizeof(uint64_t);
	}
}

bool layout_releases(size_t n, unsigned *ret_major, unsigned *ret_minor)
{
	for (size_t i = 0; i < N_ELEMENTS(releases); i++) {
		if (releases[i].free_threaded || n-- > 0)
			continue;
		*ret_major = releases[i].major;
		*ret_minor = releases[i].minor;
		return true;
	}
	return false;
}

/* Bytes to read of a structure to cover these fields. False: more than the buffer holds. */
static bool measure_head(const struct layout *layout, const enum layout_field *fields, size_t n, uint16_t *ret)
{
	int32_t end = 0;

	for (size_t i = 0; i < n; i++)
		if (layout->field[fields[i]] != ABSENT)
			end = MAX(end, layout->field[fields[i]] + width_of(fields[i]));
	*ret = (uint16_t)MIN(end, (int32_t)MAX_HEAD_BYTES);
	return end <= MAX_HEAD_BYTES;
}

static bool measure_heads(struct layout *layout)
{
	static const enum layout_field thread[] = { THREAD_NEXT, THREAD_INTERPRETER, THREAD_NATIVE_ID, THREAD_PTHREAD };
	static const enum layout_field frame[] = { FRAME_PREVIOUS,         FRAME_CODE,  FRAME_INSTRUCTION,
						   FRAME_LAST_INSTRUCTION, FRAME_ENTRY, FRAME_OWNER,
						   FRAME_BYTECODE_INDEX };
	static const enum layout_field code[] = { CODE_FILE,       CODE_NAME,    CODE_QUALNAME,        CODE_LINES,
						  CODE_FIRST_LINE, CODE_VERSION, CODE_BYTECODE_OBJECT, CODE_BYTECODES,
						  OBJECT_TYPE,     OBJECT_SIZE };
	static const enum layout_field string[] = { STRING_STATE, STRING_LENGTH, STRING_HASH };

	return measure_head(layout, thread, N_ELEMENTS(thread), &layout->thread_bytes) &&
	       measure_head(layout, frame, N_ELEMENTS(frame), &layout->frame_bytes) &&
	       measure_head(layout, code, N_ELEMENTS(code), &layout->code_bytes) &&
	       measure_head(layout, string, N_ELEMENTS(string), &layout->string_bytes);
}

/* The BPF program reads aligned fields (record.c). A process that claims otherwise is not believed. */
static bool are_aligned(const struct layout *layout)
{
	static const enum layout_field fields[] = {
		INTERPRETER_NEXT,
		INTERPRETER_THREADS,
		INTERPRETER_GIL,
		INTERPRETER_OWN_GIL,
		INTERPRETER_OWN_GIL_LOCKED,
		INTERPRETER_OWN_GIL_HOLDER,
		INTERPRETER_GC,
		GIL_ENABLED,
		GC_COLLECTING,
		THREAD_NEXT,
		THREAD_INTERPRETER,
		THREAD_NATIVE_ID,
		THREAD_PTHREAD,
		THREAD_FRAME,
		FRAME_PREVIOUS,
		FRAME_CODE,
		FRAME_INSTRUCTION,
		FRAME_LAST_INSTRUCTION,
		FRAME_BYTECODE_INDEX,
		CODE_FILE,
		CODE_NAME,
		CODE_QUALNAME,
		CODE_LINES,
		CODE_FIRST_LINE,
		CODE_VERSION,
		CODE_BYTECODE_OBJECT,
		OBJECT_TYPE,
		OBJECT_SIZE,
		STRING_LENGTH,
		STRING_HASH,
	};

	for (size_t i = 0; i < N_ELEMENTS(fields); i++)
		if (layout->field[fields[i]] != ABSENT && layout->field[fields[i]] % width_of(fields[i]) != 0)
			return false;
	return true;
}

int layout_of(unsigned version, bool free_threaded, struct layout *ret)
{
	const struct release *release = find_release(version, free_threaded);
	struct layout layout = { .version = version, .free_threaded = free_threaded };

	if ((version & 0xf0) != FINAL_RELEASE || !release)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < LAYOUT_N_FIELDS; i++)
		layout.field[i] = (int32_t)release->offset[i] - 1;
	for (size_t i = 0; i < N_ELEMENTS(behaviours); i++)
		if (minor_key(behaviours[i].major, behaviours[i].minor) <= minor_of(version))
			layout.field[behaviours[i].field] = behaviours[i].value;
	if (!measure_heads(&layout))
		return -EOPNOTSUPP;
	*ret = layout;
	return 0;
}

unsigned layout_n_words(const struct layout *layout)
{
	return find_release(layout->version, layout->free_threaded)->n_words;
}

int layout_peek_debug_offsets(const uint64_t words[3], unsigned *ret_version, bool *ret_free_threaded)
{
	if (memcmp(words, cookie, sizeof cookie) != 0 || words[1] > UINT32_MAX || words[2] > 1)
		return -EOPNOTSUPP;
	*ret_version = (unsigned)words[1];
	*ret_free_threaded = words[2] == 1;
	return 0;
}

int layout_read_debug_offsets(const uint64_t *words, unsigned n_words, struct layout *layout)
{
	const struct release *release = find_release(layout->version, layout->free_threaded);
	struct layout changed = *layout;
	bool free_threaded;
	unsigned version;

	if (!release || n_words < release->n_words || n_words < 3 ||
	    layout_peek_debug_offsets(words, &version, &free_threaded) < 0)
		return -EOPNOTSUPP;
	if (version != layout->version || free_threaded != layout->free_threaded)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < LAYOUT_N_FIELDS; i++) {
		if (release->word[i] == 0)
			continue;
		if (words[release->word[i] - 1] > MAX_OFFSET)
			return -EOPNOTSUPP;
		changed.field[i] = (int32_t)words[release->word[i] - 1];
	}
	/* In a compact string, the UTF-8 length and pointer follow the ASCII header. */
	changed.field[STRING_COMPACT_DATA] = changed.field[STRING_ASCII_DATA] + 16;
	if (!measure_heads(&changed) || !are_aligned(&changed))
		return -EOPNOTSUPP;
	*layout = changed;
	return 0;
}
