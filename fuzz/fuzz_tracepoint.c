/* SPDX-License-Identifier: MIT */
/* fuzz_tracepoint.c - a tracepoint's record, read by any fields.
 *
 * The first byte says how many fields there are; each takes 8 bytes: type and flags, bytes of an
 * element, offset and size (16 bits each), and two of nothing. The rest is the record. Whatever
 * both say, a value lies within the record or the room (a system call's name in neither), and text
 * is UTF-8 without a NUL.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/capture/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { FIELD_BYTES = 8, ROOM_BYTES = 64 };

static struct tracepoint_field make_field(const uint8_t *from)
{
	struct tracepoint_field field = {
		.type = (enum tracepoint_type)((from[0] & 7) % (TRACEPOINT_SYSCALL + 1)),
		.is_signed = from[0] & 8,
		.is_dynamic = from[0] & 16,
		.is_relative = from[0] & 32,
		.element_bytes = from[1],
	};
	uint16_t words[2];

	memcpy(words, from + 2, sizeof words);
	field.offset = words[0];
	field.n_bytes = words[1];
	return field;
}

static bool lies_in(const uint8_t *bytes, size_t n, const void *whole, size_t n_whole)
{
	const uint8_t *start = whole;

	return bytes >= start && n <= n_whole && (size_t)(bytes - start) <= n_whole - n;
}

static void check(const struct tracepoint_value *value, bool is_constant, const void *raw, size_t n_bytes,
		  const char *room)
{
	if (value->type == VALUE_NONE || value->type == VALUE_INTEGER)
		return;
	if (!is_constant && !lies_in(value->bytes, value->n_bytes, raw, n_bytes) &&
	    !lies_in(value->bytes, value->n_bytes, room, ROOM_BYTES))
		abort();
	if (value->type == VALUE_TEXT && memchr(value->bytes, '\0', value->n_bytes))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) uint8_t *raw = NULL;
	char room[ROOM_BYTES];
	size_t n_fields, start;

	if (n_bytes == 0)
		return 0;
	n_fields = MIN(data[0], (n_bytes - 1) / FIELD_BYTES);
	start = 1 + n_fields * FIELD_BYTES;
	/* A block of exact size, where the sanitizer detects every overrun. */
	raw = malloc(n_bytes - start + (n_bytes == start));
	if (!raw)
		return 0;
	memcpy(raw, data + start, n_bytes - start);
	for (size_t i = 0; i < n_fields; i++) {
		struct tracepoint_field field = make_field(data + 1 + i * FIELD_BYTES);
		struct tracepoint_value value = tracepoint_decode(&field, raw, n_bytes - start, room, sizeof room);

		check(&value, field.type == TRACEPOINT_SYSCALL, raw, n_bytes - start, room);
	}
	return 0;
}
