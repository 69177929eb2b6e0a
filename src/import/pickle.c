/* SPDX-License-Identifier: MIT */
/*
 * pickle.c - see pickle.h.
 *
 * A pickle is a program for a machine with a stack, marks in it, and a memo. Of its operations those are here that make
 * plain data. Those that import a name, or call something, are in no table of ours.
 *
 * Invariants:
 * 1. An operation takes a byte at least and makes at most one value, or one item; so both are bounded by the file.
 * 2. A value that has been an item is not changed but by APPEND and SETITEM of a list or dict that is on the stack.
 */
#include "src/import/pickle.h"

#include <errno.h>

#include "base/cursor.h"

enum operation {
	PROTO = 0x80,
	TUPLE1 = 0x85,
	TUPLE2 = 0x86,
	TUPLE3 = 0x87,
	NEWTRUE = 0x88,
	NEWFALSE = 0x89,
	LONG1 = 0x8a,
	SHORT_BINUNICODE = 0x8c,
	BINUNICODE8 = 0x8d,
	MEMOIZE = 0x94,
	FRAME = 0x95,
	APPEND = 'a',
	SHORT_BINBYTES = 'C',
	BINBYTES = 'B',
	DICT = 'd',
	APPENDS = 'e',
	BINFLOAT = 'G',
	BINGET = 'h',
	LONG_BINGET = 'j',
	BININT = 'J',
	BININT1 = 'K',
	LIST = 'l',
	BININT2 = 'M',
	NONE = 'N',
	BINPUT = 'q',
	LONG_BINPUT = 'r',
	SETITEM = 's',
	TUPLE = 't',
	EMPTY_TUPLE = ')',
	SETITEMS = 'u',
	BINUNICODE = 'X',
	EMPTY_LIST = ']',
	EMPTY_DICT = '}',
	MARK = '(',
	POP = '0',
	POP_MARK = '1',
	DUP = '2',
	STOP = '.',
};

enum { NO_VALUE = UINT32_MAX };

struct numbers {
	uint32_t *items;
	size_t n, allocated;
};

struct reader {
	struct cursor in;
	size_t n_bytes;
	struct marshal *to;
	struct numbers stack, marks, memo;
};

static void reader_done(struct reader *reader)
{
	free(reader->stack.items);
	free(reader->marks.items);
	free(reader->memo.items);
}

static int push_number(struct numbers *numbers, uint32_t number)
{
	int r = grow(&numbers->items, numbers->n, &numbers->allocated, sizeof *numbers->items);

	if (r >= 0)
		numbers->items[numbers->n++] = number;
	return r;
}

/* ---- The stack ---- */

/* Values above the last mark stay below it. */
static size_t floor_of(const struct reader *reader)
{
	return reader->marks.n > 0 ? reader->marks.items[reader->marks.n - 1] : 0;
}

static int push(struct reader *reader, enum marshal_type type, struct marshal_value **ret)
{
	uint32_t at;
	int r = marshal_add(reader->to, &at);

	if (r >= 0)
		r = push_number(&reader->stack, at);
	if (r < 0)
		return r;
	*ret = &reader->to->values[at];
	(*ret)->type = type;
	return 0;
}

static int push_integer(struct reader *reader, int64_t value)
{
	struct marshal_value *to;
	int r = push(reader, MARSHAL_INTEGER, &to);

	if (r < 0)
		return r;
	to->integer = value;
	to->real = (double)value;
	return 0;
}

static int push_empty(struct reader *reader, enum marshal_type type)
{
	struct marshal_value *to;

	return push(reader, type, &to);
}

static int push_text(struct reader *reader, size_t n_length)
{
	uint64_t n = cursor_fixed(&reader->in, n_length);
	struct marshal_value *to;
	int r;

	if (reader->in.failed || n > cursor_left(&reader->in))
		return -EBADMSG;
	r = push(reader, MARSHAL_TEXT, &to);
	if (r < 0)
		return r;
	to->text = (struct piece){ (const char *)reader->in.at, (size_t)n };
	reader->in.at += n;
	return 0;
}

/* Eight bytes, the most significant one first. */
static int push_real(struct reader *reader)
{
	uint64_t bits = __builtin_bswap64(cursor_fixed(&reader->in, 8));
	struct marshal_value *to;
	int r = push(reader, MARSHAL_REAL, &to);

	if (r < 0)
		return r;
	memcpy(&to->real, &bits, sizeof to->real);
	to->integer = to->real > -9e18 && to->real < 9e18 ? (int64_t)to->real : 0;
	return 0;
}

/* A number of 0 to 8 bytes with a sign. */
static int push_long(struct reader *reader)
{
	uint64_t n = cursor_fixed(&reader->in, 1);

	if (n > 8)
		return -EBADMSG;
	return push_integer(reader, n > 0 ? cursor_signed(&reader->in, n) : 0);
}

static int top_of(const struct reader *reader, size_t below, uint32_t *ret)
{
	if (reader->stack.n < floor_of(reader) + below + 1)
		return -EBADMSG;
	*ret = reader->stack.items[reader->stack.n - 1 - below];
	return 0;
}

static int pop(struct reader *reader, size_t n)
{
	if (reader->stack.n < floor_of(reader) + n)
		return -EBADMSG;
	reader->stack.n -= n;
	return 0;
}

/* ---- Lists, tuples and dicts ---- */

/* The values from that one on become the last items of a list, or keys and values of a dict. */
static int take_items(struct reader *reader, uint32_t of, size_t first)
{
	const struct marshal_value *value = &reader->to->values[of];
	size_t n = reader->stack.n - first;
	int r = value->type == MARSHAL_DICT && n % 2 != 0 ? -EBADMSG : 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = marshal_add_item(reader->to, of, reader->stack.items[first + i]);
	if (r >= 0)
		reader->stack.n = first;
	return r;
}

static int pop_mark(struct reader *reader, size_t *ret_first)
{
	if (reader->marks.n == 0)
		return -EBADMSG;
	*ret_first = reader->marks.items[--reader->marks.n];
	return 0;
}

/* APPEND and SETITEM with n values; APPENDS and SETITEMS with those above a mark. */
static int add_to(struct reader *reader, enum marshal_type type, size_t n, bool has_mark)
{
	size_t first = reader->stack.n - n;
	uint32_t of;
	int r = has_mark ? pop_mark(reader, &first) : 0;

	if (r < 0 || reader->stack.n < floor_of(reader) + (has_mark ? 0 : n) || first < floor_of(reader) + 1)
		return -EBADMSG;
	of = reader->stack.items[first - 1];
	return reader->to->values[of].type != type ? -EBADMSG : take_items(reader, of, first);
}

/* A tuple, list or dict of n values, or of those above a mark. */
static int make_of(struct reader *reader, enum marshal_type type, size_t n, bool has_mark)
{
	size_t first;
	uint32_t at;
	int r;

	if (has_mark)
		r = pop_mark(reader, &first);
	else
		r = reader->stack.n < floor_of(reader) + n ? -EBADMSG : 0;
	if (r < 0)
		return r;
	if (!has_mark)
		first = reader->stack.n - n;
	r = marshal_add(reader->to, &at);
	if (r < 0)
		return r;
	reader->to->values[at].type = type;
	r = take_items(reader, at, first);
	return r < 0 ? r : push_number(&reader->stack, at);
}

/* ---- The memo ---- */

static int put(struct reader *reader, uint64_t index)
{
	uint32_t top;
	int r = top_of(reader, 0, &top);

	if (r < 0 || reader->in.failed || index > reader->n_bytes)
		return -EBADMSG;
	while (reader->memo.n <= index && r >= 0)
		r = push_number(&reader->memo, NO_VALUE);
	if (r >= 0)
		reader->memo.items[index] = top;
	return r;
}

static int get(struct reader *reader, uint64_t index)
{
	if (reader->in.failed || index >= reader->memo.n || reader->memo.items[index] == NO_VALUE)
		return -EBADMSG;
	return push_number(&reader->stack, reader->memo.items[index]);
}

/* ---- Operations ---- */

static int dup(struct reader *reader)
{
	uint32_t top;
	int r = top_of(reader, 0, &top);

	return r < 0 ? r : push_number(&reader->stack, top);
}

static int pop_to_mark(struct reader *reader)
{
	size_t first;
	int r = pop_mark(reader, &first);

	if (r >= 0)
		reader->stack.n = first;
	return r;
}

/* Operations that make a plain value. 1: it is none of them. */
static int run_value(struct reader *reader, uint8_t operation)
{
	switch (operation) {
	case NONE:
		return push_empty(reader, MARSHAL_NONE);
	case NEWTRUE:
	case NEWFALSE:
		return push_integer(reader, operation == NEWTRUE);
	case BININT:
		return push_integer(reader, cursor_signed(&reader->in, 4));
	case BININT1:
		return push_integer(reader, (int64_t)cursor_fixed(&reader->in, 1));
	case BININT2:
		return push_integer(reader, (int64_t)cursor_fixed(&reader->in, 2));
	case LONG1:
		return push_long(reader);
	case BINFLOAT:
		return push_real(reader);
	case SHORT_BINUNICODE:
	case SHORT_BINBYTES:
		return push_text(reader, 1);
	case BINUNICODE:
	case BINBYTES:
		return push_text(reader, 4);
	case BINUNICODE8:
		return push_text(reader, 8);
	default:
		return 1;
	}
}

/* Operations that make or fill a list, tuple or dict. 1: it is none of them. */
static int run_items(struct reader *reader, uint8_t operation)
{
	switch (operation) {
	case EMPTY_LIST:
	case EMPTY_TUPLE:
		return push_empty(reader, MARSHAL_TUPLE);
	case EMPTY_DICT:
		return push_empty(reader, MARSHAL_DICT);
	case TUPLE1:
	case TUPLE2:
	case TUPLE3:
		return make_of(reader, MARSHAL_TUPLE, operation - TUPLE1 + 1u, false);
	case TUPLE:
	case LIST:
		return make_of(reader, MARSHAL_TUPLE, 0, true);
	case DICT:
		return make_of(reader, MARSHAL_DICT, 0, true);
	case APPEND:
		return add_to(reader, MARSHAL_TUPLE, 1, false);
	case APPENDS:
		return add_to(reader, MARSHAL_TUPLE, 0, true);
	case SETITEM:
		return add_to(reader, MARSHAL_DICT, 2, false);
	case SETITEMS:
		return add_to(reader, MARSHAL_DICT, 0, true);
	default:
		return 1;
	}
}

static int run(struct reader *reader, uint8_t operation)
{
	int r = run_value(reader, operation);

	if (r > 0)
		r = run_items(reader, operation);
	if (r <= 0)
		return r;
	switch (operation) {
	case PROTO:
		cursor_fixed(&reader->in, 1);
		return 0;
	case FRAME: /* its length is for readers of streams */
		cursor_fixed(&reader->in, 8);
		return 0;
	case MARK:
		return push_number(&reader->marks, (uint32_t)reader->stack.n);
	case POP:
		return pop(reader, 1);
	case POP_MARK:
		return pop_to_mark(reader);
	case DUP:
		return dup(reader);
	case BINPUT:
		return put(reader, cursor_fixed(&reader->in, 1));
	case LONG_BINPUT:
		return put(reader, cursor_fixed(&reader->in, 4));
	case MEMOIZE:
		return put(reader, reader->memo.n);
	case BINGET:
		return get(reader, cursor_fixed(&reader->in, 1));
	case LONG_BINGET:
		return get(reader, cursor_fixed(&reader->in, 4));
	default:
		return -EPROTONOSUPPORT; /* it imports or calls something, or is of no protocol that is known */
	}
}

int pickle_read(const uint8_t *bytes, size_t n_bytes, struct marshal *ret, uint32_t *ret_root)
{
	CLEANUP(reader_done)
	struct reader reader = { .in = { .at = bytes, .end = bytes + n_bytes }, .n_bytes = n_bytes, .to = ret };
	int r = n_bytes >= UINT32_MAX ? -E2BIG : 0;

	*ret = (struct marshal){ 0 };
	while (r >= 0) {
		uint8_t operation = (uint8_t)cursor_fixed(&reader.in, 1);

		if (reader.in.failed)
			return -EBADMSG;
		if (operation == STOP)
			break;
		r = run(&reader, operation);
	}
	if (r < 0)
		return r;
	return reader.in.failed || reader.marks.n > 0 ? -EBADMSG : top_of(&reader, 0, ret_root);
}
