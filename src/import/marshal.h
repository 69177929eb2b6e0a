/* SPDX-License-Identifier: MIT */
/* marshal.h - Python's marshal format, as far as profiles need it: numbers, text, tuples and dicts in each other. */
#ifndef PROBING_IMPORT_MARSHAL_H
#define PROBING_IMPORT_MARSHAL_H

#include "src/import/sink.h"

enum marshal_type { MARSHAL_NONE, MARSHAL_INTEGER, MARSHAL_REAL, MARSHAL_TEXT, MARSHAL_TUPLE, MARSHAL_DICT };

struct marshal_value {
	enum marshal_type type;
	int64_t integer;   /* also for a real with a whole value */
	double real;       /* also of an integer */
	struct piece text; /* borrowed from the input */
	uint32_t *items;   /* values of a tuple; of a dict keys and values in turn */
	size_t n_items, items_allocated;
};

/* A byte can make one, which takes 64. */
enum { MARSHAL_MAX_VALUES = 1 << 24 };

struct marshal {
	struct marshal_value *values; /* [0] is the outermost */
	size_t n_values, values_allocated;
};

/*
 * marshal_read - all values of a text in versions 0 to 4.
 * @bytes: borrowed for the life of the values. @ret: ended with marshal_done(), also after an error.
 * Errors: -EBADMSG damaged, or a type that is none of these; -E2BIG more than MARSHAL_MAX_VALUES; -ENOMEM.
 * Source: CPython's Python/marshal.c and Lib/test/test_marshal.py, 2.7 to 3.14.
 */
int marshal_read(const uint8_t *bytes, size_t n_bytes, struct marshal *ret);
void marshal_done(struct marshal *marshal);

/*
 * For readers of other formats with the same values (pickle.h). marshal_add - one more, of type MARSHAL_NONE.
 * marshal_add_item - @of: a tuple or a dict. Errors: -E2BIG more than MARSHAL_MAX_VALUES; -ENOMEM.
 */
int marshal_add(struct marshal *to, uint32_t *ret);
int marshal_add_item(struct marshal *to, uint32_t of, uint32_t item);

/* The i-th item of a tuple or a dict; NULL: it is shorter, or of another type. */
const struct marshal_value *marshal_item(const struct marshal *marshal, const struct marshal_value *of, size_t i);

#endif
