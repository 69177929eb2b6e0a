/* SPDX-License-Identifier: MIT */
/*
 * marshal.c - see marshal.h.
 *
 * A value is a byte with its type, and data that depends on it. From version 3 on a type may have a flag: the value
 * then gets a number, in order, by which later ones refer to it. Version 1 and 2 number only interned text.
 *
 * Invariants:
 * 1. A value takes a byte at least, so there are never more values than bytes; and never more than MARSHAL_MAX_VALUES.
 * 2. Values are nested at most MAX_DEPTH deep. A reference is to an earlier value, so there are no cycles.
 */
#include "src/import/marshal.h"

#include <errno.h>

#include "base/cursor.h"
#include "src/import/decimal.h"

enum { MAX_DEPTH = 64, FLAG_REF = 0x80, LONG_BITS = 15 };

struct reader {
	struct cursor in;
	struct marshal *to;
	uint32_t *refs;
	size_t n_refs, refs_allocated;
};

static int read_value(struct reader *reader, unsigned depth, uint32_t *ret);

int marshal_add(struct marshal *to, uint32_t *ret)
{
	int r = to->n_values == MARSHAL_MAX_VALUES
			? -E2BIG
			: grow(&to->values, to->n_values, &to->values_allocated, sizeof *to->values);

	if (r < 0)
		return r;
	*ret = (uint32_t)to->n_values;
	to->values[to->n_values++] = (struct marshal_value){ 0 };
	return 0;
}

static int add_ref(struct reader *reader, uint32_t value)
{
	int r = grow(&reader->refs, reader->n_refs, &reader->refs_allocated, sizeof *reader->refs);

	if (r >= 0)
		reader->refs[reader->n_refs++] = value;
	return r;
}

int marshal_add_item(struct marshal *to, uint32_t of, uint32_t item)
{
	struct marshal_value *value = &to->values[of];
	int r = grow(&value->items, value->n_items, &value->items_allocated, sizeof *value->items);

	if (r >= 0)
		value->items[value->n_items++] = item;
	return r;
}

static int read_text(struct reader *reader, size_t n_length, struct marshal_value *to)
{
	uint64_t n = cursor_fixed(&reader->in, n_length);

	if (reader->in.failed || n > cursor_left(&reader->in))
		return -EBADMSG;
	to->type = MARSHAL_TEXT;
	to->text = (struct piece){ (const char *)reader->in.at, (size_t)n };
	reader->in.at += n;
	return 0;
}

static void set_integer(struct marshal_value *to, int64_t value)
{
	to->type = MARSHAL_INTEGER;
	to->integer = value;
	to->real = (double)value;
}

static int set_real(struct marshal_value *to, double value)
{
	to->type = MARSHAL_REAL;
	to->real = value;
	return whole_number(value, &to->integer) ? 0 : -EBADMSG;
}

/* Digits of 15 bits, least significant first. */
static int read_long(struct reader *reader, struct marshal_value *to)
{
	int64_t n = cursor_signed(&reader->in, 4), n_digits = n < 0 ? -n : n;
	uint64_t value = 0;

	if (n_digits > 5)
		return -EBADMSG;
	for (int64_t i = 0; i < n_digits; i++)
		value |= cursor_fixed(&reader->in, 2) << (LONG_BITS * i);
	if (value > INT64_MAX)
		return -EBADMSG;
	set_integer(to, n < 0 ? -(int64_t)value : (int64_t)value);
	return 0;
}

static int read_real(struct reader *reader, bool is_text, struct marshal_value *to)
{
	uint64_t bits;
	double value;
	int r;

	if (!is_text) {
		bits = cursor_fixed(&reader->in, 8);
		memcpy(&value, &bits, sizeof value);
		return set_real(to, value);
	}
	r = read_text(reader, 1, to);
	return r < 0 || !piece_decimal(to->text, &value) ? -EBADMSG : set_real(to, value);
}

static int read_tuple(struct reader *reader, size_t n_length, unsigned depth, uint32_t at)
{
	uint64_t n = cursor_fixed(&reader->in, n_length);
	int r = reader->in.failed || n > cursor_left(&reader->in) ? -EBADMSG : 0;

	reader->to->values[at].type = MARSHAL_TUPLE;
	for (uint64_t i = 0; i < n && r >= 0; i++) {
		uint32_t item;

		r = read_value(reader, depth + 1, &item);
		if (r >= 0)
			r = marshal_add_item(reader->to, at, item);
	}
	return r;
}

/* Read keys and values in turn, up to a NULL key. */
static int read_dict(struct reader *reader, unsigned depth, uint32_t at)
{
	int r = 0;

	reader->to->values[at].type = MARSHAL_DICT;
	while (r >= 0) {
		uint32_t item;

		if (cursor_left(&reader->in) > 0 && *reader->in.at == '0' && reader->to->values[at].n_items % 2 == 0) {
			reader->in.at++;
			return 0;
		}
		r = read_value(reader, depth + 1, &item);
		if (r >= 0)
			r = marshal_add_item(reader->to, at, item);
	}
	return r;
}

static int read_typed(struct reader *reader, char type, unsigned depth, uint32_t at)
{
	struct marshal_value *to = &reader->to->values[at];

	switch (type) {
	case 'N':
	case 'F':
	case 'T':
		set_integer(to, type == 'T');
		return 0;
	case 'i':
		set_integer(to, cursor_signed(&reader->in, 4));
		return 0;
	case 'I':
		set_integer(to, cursor_signed(&reader->in, 8));
		return 0;
	case 'l':
		return read_long(reader, to);
	case 'f':
	case 'g':
		return read_real(reader, type == 'f', to);
	case 's': /* bytes; text in Python 2 */
	case 't': /* interned */
	case 'u':
	case 'a': /* ASCII */
	case 'A':
		return read_text(reader, 4, to);
	case 'z': /* short ASCII */
	case 'Z':
		return read_text(reader, 1, to);
	case '(':
	case '[':
		return read_tuple(reader, 4, depth, at);
	case ')':
		return read_tuple(reader, 1, depth, at);
	case '{':
		return read_dict(reader, depth, at);
	default:
		return -EBADMSG;
	}
}

static int read_value(struct reader *reader, unsigned depth, uint32_t *ret)
{
	uint8_t byte = (uint8_t)cursor_fixed(&reader->in, 1), type = byte & (uint8_t)~FLAG_REF;
	uint32_t at;
	size_t ref;
	int r;

	if (reader->in.failed || depth > MAX_DEPTH)
		return -EBADMSG;
	if (type == 'r' || type == 'R') {
		ref = cursor_fixed(&reader->in, 4);
		/* an object cannot contain itself */
		if (reader->in.failed || ref >= reader->n_refs || reader->refs[ref] == UINT32_MAX)
			return -EBADMSG;
		*ret = reader->refs[ref];
		return 0;
	}
	r = marshal_add(reader->to, &at);
	ref = reader->n_refs;
	if (r >= 0 && (byte & FLAG_REF || type == 't'))
		r = add_ref(reader, UINT32_MAX);
	if (r >= 0)
		r = read_typed(reader, (char)type, depth, at);
	if (r < 0 || reader->in.failed)
		return r < 0 ? r : -EBADMSG;
	if (byte & FLAG_REF || type == 't')
		reader->refs[ref] = at;
	*ret = at;
	return 0;
}

int marshal_read(const uint8_t *bytes, size_t n_bytes, struct marshal *ret)
{
	struct reader reader = { .in = { .at = bytes, .end = bytes + n_bytes }, .to = ret };
	uint32_t first;
	int r;

	*ret = (struct marshal){ 0 };
	r = n_bytes > UINT32_MAX - 1 ? -EBADMSG : read_value(&reader, 0, &first);
	free(reader.refs);
	return r;
}

void marshal_done(struct marshal *marshal)
{
	for (size_t i = 0; i < marshal->n_values; i++)
		free(marshal->values[i].items);
	free(marshal->values);
	*marshal = (struct marshal){ 0 };
}

const struct marshal_value *marshal_item(const struct marshal *marshal, const struct marshal_value *of, size_t i)
{
	if (!of || (of->type != MARSHAL_TUPLE && of->type != MARSHAL_DICT) || i >= of->n_items)
		return NULL;
	return &marshal->values[of->items[i]];
}
