/* SPDX-License-Identifier: MIT */
/* repr.h - declarations for the files that write values. Private. */
#ifndef PROBING_REPR_H
#define PROBING_REPR_H

#include "unwind/cpython/object.h"

/* Longer values end in "...". */
enum { REPR_MAX_BYTES = 512, REPR_MAX_DEPTH = 3 };

/* A value being written. Parts that do not fit, are too deep, or come after the deadline are omitted. */
struct repr {
	struct py_runtime *runtime;
	uint64_t deadline_ns;  /* monotonic_ns() */
	unsigned objects_left; /* that may still be read */
	bool is_late;          /* something was left out for want of time */
	bool is_full;
	size_t n;
	char text[REPR_MAX_BYTES + sizeof "..."];
};

void repr_put(struct repr *repr, const char *text);
void repr_printf(struct repr *repr, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One character; and in its form within a literal with such quotes. */
void repr_put_character(struct repr *repr, uint32_t character);
void repr_put_escaped(struct repr *repr, uint32_t character, char quote, bool is_bytes);

/* A number as Python writes it: the shortest text that reads back equal; with ".0" if it would look like an int. */
void repr_put_double(struct repr *repr, double value, bool with_point);
/* An int, long or bool of any size. -EFAULT, -EBADMSG: nothing was written. */
int repr_put_int(struct repr *repr, uint64_t object, const struct object_type *type);

/* One object of a type, or of one derived from it: @base is the one that is written in this way. */
typedef int repr_writer(struct repr *repr, uint64_t object, const struct object_type *type,
			const struct object_type *base, unsigned depth);

/* Arrays and scalars of NumPy, tensors of PyTorch: type and shape, without contents. */
repr_writer repr_put_ndarray, repr_put_numpy_scalar, repr_put_tensor;

/* Sizes and the like as a tuple. */
void repr_put_shape(struct repr *repr, const int64_t *shape, unsigned n);

/* A str without quotes; "?" where it is none. */
void repr_put_name(struct repr *repr, uint64_t object);

/* Any object. */
void repr_put_object(struct repr *repr, uint64_t object, unsigned depth);

#endif
