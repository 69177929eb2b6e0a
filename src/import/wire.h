/* SPDX-License-Identifier: MIT */
/* wire.h - messages of protocol buffers, field by field, without a copy.
 *
 * Source: protobuf.dev, "Encoding".
 */
#ifndef PROBING_IMPORT_WIRE_H
#define PROBING_IMPORT_WIRE_H

#include "base/cursor.h"
#include "src/import/sink.h"

struct wire_field {
	unsigned number;
	uint64_t value;     /* of a number */
	struct piece bytes; /* of text, a message, or packed numbers; at NULL: it is a number */
};

static inline uint64_t wire_varint(struct cursor *in)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		byte = (uint8_t)cursor_fixed(in, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	in->failed = true;
	return 0;
}

/* The next field; false: there is none, or in->failed. */
static inline bool wire_next(struct cursor *in, struct wire_field *ret)
{
	uint64_t tag, n;

	if (in->failed || cursor_left(in) == 0)
		return false;
	tag = wire_varint(in);
	*ret = (struct wire_field){ .number = (unsigned)(tag >> 3) };
	switch (tag & 7) {
	case 0:
		ret->value = wire_varint(in);
		break;
	case 1:
		ret->value = cursor_fixed(in, 8);
		break;
	case 2:
		n = wire_varint(in);
		if (in->failed || n > cursor_left(in)) {
			in->failed = true;
			break;
		}
		ret->bytes = (struct piece){ (const char *)in->at, (size_t)n };
		in->at += n;
		break;
	case 5:
		ret->value = cursor_fixed(in, 4);
		break;
	default: /* groups are none of the formats read here */
		in->failed = true;
	}
	return !in->failed;
}

static inline struct cursor wire_within(struct piece bytes)
{
	const uint8_t *at = (const uint8_t *)bytes.at;

	return (struct cursor){ .at = at, .end = at ? at + bytes.n : NULL };
}

#endif
