/* layout.c - replaying the changes of layout_changes.h and debug_offsets.h. */
#include "unwind/cpython/layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"

struct change {
	uint8_t major, minor;
	enum layout_field field;
	int32_t value;
};

static const struct change changes[] = {
#define CHANGE(major, minor, field, value) { major, minor, field, value },
#include "unwind/cpython/layout_changes.h"
#undef CHANGE
};

struct word {
	uint8_t major, minor;
	uint16_t index;
	enum layout_field field;
};

static const struct word words_of[] = {
#define WORD(major, minor, index, field) { major, minor, index, field },
#define N_WORDS(major, minor, n)
#include "unwind/cpython/debug_offsets.h"
#undef WORD
#undef N_WORDS
};

static const struct {
	uint8_t major, minor;
	uint16_t n;
} n_words_of[] = {
#define WORD(major, minor, index, field)
#define N_WORDS(major, minor, n) { major, minor, n },
#include "unwind/cpython/debug_offsets.h"
#undef WORD
#undef N_WORDS
};

/* Fields larger than this cannot be offsets inside an interpreter's structures. */
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

const char *layout_field_name(enum layout_field field)
{
	static const char *const names[] = {
#define X(name) #name,
		LAYOUT_FIELDS(X)
#undef X
	};

	return (unsigned)field < LAYOUT_N_FIELDS ? names[field] : "?";
}

int layout_replay(unsigned version, struct layout *ret)
{
	struct layout layout = { .version = version };
	unsigned first = minor_key(changes[0].major, changes[0].minor), last = first;

	if ((version & 0xf0) != FINAL_RELEASE)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < LAYOUT_N_FIELDS; i++)
		layout.field[i] = ABSENT;
	for (size_t i = 0; i < N_ELEMENTS(changes); i++) {
		unsigned key = minor_key(changes[i].major, changes[i].minor);

		last = MAX(last, key);
		if (key <= minor_of(version))
			layout.field[changes[i].field] = changes[i].value;
	}
	if (minor_of(version) < first || minor_of(version) > last)
		return -EOPNOTSUPP;
	*ret = layout;
	return 0;
}

unsigned layout_debug_offsets_words(unsigned version)
{
	for (size_t i = 0; i < N_ELEMENTS(n_words_of); i++)
		if (minor_key(n_words_of[i].major, n_words_of[i].minor) == minor_of(version))
			return n_words_of[i].n;
	return 0;
}

/* Fields that are taken out of the head of a structure must lie within it. */
static bool heads_hold(const struct layout *layout)
{
	static const struct {
		enum layout_field field;
		int32_t head_bytes;
	} limits[] = {
		{ THREAD_NEXT, THREAD_HEAD_BYTES },       { THREAD_INTERPRETER, THREAD_HEAD_BYTES },
		{ THREAD_NATIVE_ID, THREAD_HEAD_BYTES },  { FRAME_PREVIOUS, FRAME_HEAD_BYTES },
		{ FRAME_CODE, FRAME_HEAD_BYTES },         { FRAME_INSTRUCTION, FRAME_HEAD_BYTES },
		{ FRAME_OWNER, FRAME_HEAD_BYTES },        { CODE_FILE, CODE_HEAD_BYTES },
		{ CODE_NAME, CODE_HEAD_BYTES },           { CODE_QUALNAME, CODE_HEAD_BYTES },
		{ CODE_LINES, CODE_HEAD_BYTES },          { CODE_FIRST_LINE, CODE_HEAD_BYTES },
		{ STRING_STATE, STRING_HEAD_BYTES },      { STRING_LENGTH, STRING_HEAD_BYTES },
	};

	for (size_t i = 0; i < N_ELEMENTS(limits); i++)
		if (layout->field[limits[i].field] > limits[i].head_bytes - (int32_t)sizeof(uint64_t))
			return false;
	return true;
}

int layout_read_debug_offsets(const uint64_t *words, unsigned n_words, struct layout *layout)
{
	struct layout changed = *layout;

	if (n_words < layout_debug_offsets_words(layout->version) || n_words < 3)
		return -EOPNOTSUPP;
	if (memcmp(words, cookie, sizeof cookie) != 0 || words[1] != layout->version || words[2] != 0)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < N_ELEMENTS(words_of); i++) {
		if (minor_key(words_of[i].major, words_of[i].minor) != minor_of(layout->version))
			continue;
		if (words[words_of[i].index] > MAX_OFFSET)
			return -EOPNOTSUPP;
		changed.field[words_of[i].field] = (int32_t)words[words_of[i].index];
	}
	if (!heads_hold(&changed))
		return -EOPNOTSUPP;
	/* A compact string's UTF-8 length and pointer follow the ASCII header. */
	changed.field[STRING_COMPACT_DATA] = changed.field[STRING_ASCII_DATA] + 16;
	*layout = changed;
	return 0;
}
