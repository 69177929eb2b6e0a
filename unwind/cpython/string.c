/* SPDX-License-Identifier: MIT */
/* string.c - a Python str of the target as UTF-8 of ours.
 *
 * Compact strings only (names and file names always are): the state word
 * follows the hash, with three bits of kind, then compact, then ASCII; before
 * them is 'interned', of two bits or, in free-threaded builds, eight
 * (Include/cpython/unicodeobject.h, 3.4 to 3.15). In 2.7 names are bytes, which
 * are read as UTF-8 if valid, else as Latin-1. The text is truncated at a
 * limit, and invalid characters become U+FFFD.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/object.h"

enum { MAX_TEXT = 256 /* longest text that is compared */ };

/* Bit positions relative to the kind. */
enum { STATE_KIND = 7, STATE_COMPACT = 1 << 3, STATE_ASCII = 1 << 4 };

struct text {
	uint64_t n_characters;
	unsigned kind; /* bytes per character: 1, 2, 4 */
	bool is_ascii;
	uint64_t data;
};

static int read_header(struct py_runtime *runtime, uint64_t address, struct text *ret)
{
	uint8_t header[MAX_HEAD_BYTES];
	uint32_t state;
	int r;

	r = page_cache_read(&runtime->page_cache, address, header, runtime->layout.string_bytes);
	if (r < 0)
		return r;
	ret->n_characters = word_at(header, reader_field(runtime, STRING_LENGTH));
	if (runtime->layout.field[STRINGS] == STRINGS_BYTES) {
		ret->kind = 1;
		ret->is_ascii = false;
		ret->data = address + reader_field(runtime, BYTES_DATA);
		return 0;
	}
	state = half_at(header, reader_field(runtime, STRING_STATE)) >> reader_field(runtime, STRING_KIND_BIT);
	ret->kind = state & STATE_KIND;
	ret->is_ascii = state & STATE_ASCII;
	if (!(state & STATE_COMPACT) || (ret->kind != 1 && ret->kind != 2 && ret->kind != 4))
		return -EBADMSG;
	ret->data = address + reader_field(runtime, ret->is_ascii ? STRING_ASCII_DATA : STRING_COMPACT_DATA);
	return 0;
}

size_t reader_put_utf8(char *to, uint32_t character)
{
	if (character < 0x20 || character == 0x7f || (character >= 0xd800 && character < 0xe000) ||
	    character > 0x10ffff)
		character = 0xfffd;
	if (character < 0x80) {
		to[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = (char)(0xc0 | character >> 6);
		to[1] = (char)(0x80 | (character & 63));
		return 2;
	}
	if (character < 0x10000) {
		to[0] = (char)(0xe0 | character >> 12);
		to[1] = (char)(0x80 | (character >> 6 & 63));
		to[2] = (char)(0x80 | (character & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | character >> 18);
	to[1] = (char)(0x80 | (character >> 12 & 63));
	to[2] = (char)(0x80 | (character >> 6 & 63));
	to[3] = (char)(0x80 | (character & 63));
	return 4;
}

static uint32_t character_at(const uint8_t *data, unsigned kind, size_t n)
{
	uint16_t two;
	uint32_t four;

	if (kind == 1)
		return data[n];
	if (kind == 2) {
		memcpy(&two, data + 2 * n, sizeof two);
		return two;
	}
	memcpy(&four, data + 4 * n, sizeof four);
	return four;
}

uint32_t reader_utf8_at(const uint8_t *data, size_t n, size_t *ret_bytes)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t bytes = data[0] >= 0xf0 ? 4 : data[0] >= 0xe0 ? 3 : 2;
	uint32_t character = data[0] & (0x7fu >> bytes);

	if (data[0] < 0xc2 || data[0] > 0xf4 || bytes > n)
		return 0;
	for (size_t i = 1; i < bytes; i++) {
		if ((data[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (data[i] & 0x3f);
	}
	if (character < smallest[bytes])
		return 0;
	*ret_bytes = bytes;
	return character;
}

static uint32_t next_character(const struct py_runtime *runtime, const uint8_t *data, unsigned kind, size_t n,
			       size_t *at)
{
	size_t bytes = 0;
	uint32_t character = 0;

	if (runtime->layout.field[STRINGS] == STRINGS_BYTES)
		character = reader_utf8_at(data + *at, n - *at, &bytes);
	if (character == 0)
		character = character_at(data, kind, *at);
	*at += bytes ? bytes : 1;
	return character;
}

int reader_string(struct py_runtime *runtime, uint64_t address, size_t max_bytes, char **ret)
{
	CLEANUP(freep) uint8_t *data = NULL;
	CLEANUP(freep) char *utf8 = NULL;
	struct text text;
	size_t n, used = 0;
	int r;

	r = read_header(runtime, address, &text);
	if (r < 0)
		return r;
	n = MIN(text.n_characters, (uint64_t)max_bytes);
	data = malloc(n * text.kind + 1);
	utf8 = malloc(n * 4 + sizeof "...");
	if (!data || !utf8)
		return -ENOMEM;
	r = n ? remote_read(runtime->remote, RADDR(text.data), data, n * text.kind) : 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < n;)
		used += reader_put_utf8(utf8 + used, next_character(runtime, data, text.kind, n, &i));
	memcpy(utf8 + used, "...", text.n_characters > n ? 3 : 0);
	utf8[used + (text.n_characters > n ? 3 : 0)] = '\0';
	*ret = TAKE(utf8);
	return 0;
}

bool object_string_is(struct py_runtime *runtime, uint64_t object, const char *text)
{
	char there[MAX_TEXT];
	size_t n = strlen(text);
	struct object_type type;
	struct text string;

	if (n > sizeof there || read_header(runtime, object, &string) < 0 || string.n_characters != n ||
	    string.kind != 1)
		return false;
	if (n > 0 && page_cache_read(&runtime->page_cache, string.data, there, n) < 0)
		return false;
	if (memcmp(there, text, n) != 0)
		return false;
	/* A plausible header is no proof: check the type. */
	return object_type_of(runtime, object, &type) >= 0 &&
	       (type.flags & (runtime->layout.field[STRINGS] == STRINGS_BYTES ? TYPE_BYTES : TYPE_UNICODE));
}

/* Bytes per character of 2.7's unicode, 2 or 4 by build option. 0: unknown. */
static unsigned unicode_kind(struct py_runtime *runtime)
{
	uint64_t interpreter, sys, largest, value;

	if (runtime->unicode_kind == 0 && reader_interpreters(runtime, &interpreter) >= 0 &&
	    object_module_dict(runtime, interpreter, "sys", &sys) >= 0 &&
	    object_dict_find(runtime, sys, "maxunicode", &largest) >= 0 &&
	    object_word(runtime, largest + reader_field(runtime, INT_VALUE), &value) >= 0)
		runtime->unicode_kind = value > 0xffff ? 4 : 2;
	return runtime->unicode_kind;
}

/* Read unicode text in versions whose names are bytes. */
static int read_unicode(struct py_runtime *runtime, uint64_t address, struct text *ret)
{
	int r;

	ret->kind = unicode_kind(runtime);
	if (ret->kind == 0)
		return -EBADMSG;
	r = object_word(runtime, address + reader_field(runtime, UNICODE_LENGTH), &ret->n_characters);
	if (r >= 0)
		r = object_word(runtime, address + reader_field(runtime, UNICODE_DATA), &ret->data);
	return r;
}

/* An instance of a subclass of str points to its characters. */
static int read_derived(struct py_runtime *runtime, uint64_t address, struct text *ret)
{
	uint32_t state;
	int r;

	r = page_cache_read(&runtime->page_cache, address + reader_field(runtime, STRING_STATE), &state, sizeof state);
	if (r >= 0)
		r = object_word(runtime, address + reader_field(runtime, STRING_LENGTH), &ret->n_characters);
	if (r >= 0)
		r = object_word(runtime, address + reader_field(runtime, STRING_COMPACT_DATA), &ret->data);
	if (r < 0)
		return r;
	ret->kind = state >> reader_field(runtime, STRING_KIND_BIT) & STATE_KIND;
	return ret->kind == 1 || ret->kind == 2 || ret->kind == 4 ? 0 : -EBADMSG;
}

static int read_bytes(struct py_runtime *runtime, uint64_t address, struct text *ret)
{
	ret->kind = 1;
	ret->data = address + reader_field(runtime, BYTES_DATA);
	return object_word(runtime, address + reader_field(runtime, OBJECT_SIZE), &ret->n_characters);
}

static int read_text(struct py_runtime *runtime, uint64_t address, const struct object_type *type, struct text *ret)
{
	if (type->flags & TYPE_BYTES)
		return read_bytes(runtime, address, ret);
	if (runtime->layout.field[STRINGS] == STRINGS_BYTES)
		return read_unicode(runtime, address, ret);
	return read_header(runtime, address, ret) < 0 ? read_derived(runtime, address, ret) : 0;
}

int object_text(struct py_runtime *runtime, uint64_t object, const struct object_type *type, uint32_t *characters,
		size_t max, uint64_t *ret_length)
{
	uint8_t data[4 * MAX_TEXT];
	struct text text;
	size_t n;
	int r;

	r = read_text(runtime, object, type, &text);
	if (r < 0)
		return r;
	n = MIN(MIN(text.n_characters, (uint64_t)max), (uint64_t)MAX_TEXT);
	r = page_cache_read(&runtime->page_cache, text.data, data, n * text.kind);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		characters[i] = character_at(data, text.kind, i);
	*ret_length = text.n_characters;
	return (int)n;
}
