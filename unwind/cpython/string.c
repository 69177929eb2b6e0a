/* string.c - a Python str of the target as UTF-8 of ours.
 *
 * Compact strings only (names and file names always are): the state word
 * follows the hash, with kind in bits 2-4, compact in bit 5, ASCII in bit 6
 * (Include/cpython/unicodeobject.h, 3.11 to 3.13; 3.11 has 'interned' in two
 * bits as the later ones do). The text is cut at a bound, and what is no
 * character becomes U+FFFD.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { STATE_KIND_SHIFT = 2, STATE_COMPACT = 1 << 5, STATE_ASCII = 1 << 6 };

struct text {
	uint64_t n_characters;
	unsigned kind; /* bytes of a character: 1, 2, 4 */
	bool is_ascii;
	uint64_t data;
};

static int read_header(struct py_runtime *runtime, uint64_t address, struct text *ret)
{
	uint8_t header[STRING_HEAD_BYTES];
	uint32_t state;
	int r;

	r = window_read(&runtime->window, address, header, sizeof header);
	if (r < 0)
		return r;
	state = half_at(header, reader_field(runtime, STRING_STATE));
	ret->n_characters = word_at(header, reader_field(runtime, STRING_LENGTH));
	ret->kind = (state >> STATE_KIND_SHIFT) & 7;
	ret->is_ascii = state & STATE_ASCII;
	if (!(state & STATE_COMPACT) || (ret->kind != 1 && ret->kind != 2 && ret->kind != 4))
		return -EBADMSG;
	ret->data = address + reader_field(runtime, ret->is_ascii ? STRING_ASCII_DATA : STRING_COMPACT_DATA);
	return 0;
}

static size_t put_utf8(char *to, uint32_t character)
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
	for (size_t i = 0; i < n; i++)
		used += put_utf8(utf8 + used, character_at(data, text.kind, i));
	memcpy(utf8 + used, "...", text.n_characters > n ? 3 : 0);
	utf8[used + (text.n_characters > n ? 3 : 0)] = '\0';
	*ret = TAKE(utf8);
	return 0;
}
