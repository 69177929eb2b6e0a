/* SPDX-License-Identifier: MIT */
/* locals.c - the variables of a frame, and their values.
 *
 * Fast locals, then cells and free variables are in the frame, and their names in its code: in one
 * tuple, with a kind for each, from 3.11 on; in three before. The variables of a module's or class' body
 * are in the mapping that is its namespace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/repr.h"

enum {
	MAX_LOCALS = 64,               /* shown per frame */
	MAX_VARIABLES = 1024,          /* read per frame */
	MAX_NAMES = 4096,              /* read per namespace */
	MAX_OBJECTS = 200,             /* read per value */
	MAX_ALL_OBJECTS = 4000,        /* read per frame */
	KIND_HOLDS_CELL = 0x40 | 0x80, /* co_localspluskinds: CO_FAST_CELL, CO_FAST_FREE */
	CODE_IS_OPTIMISED = 1,         /* co_flags: a function's code, which has no namespace */
	VALUE_TAG = 3,                 /* low bits of a frame's values */
};

struct reading {
	struct py_runtime *runtime;
	uint64_t deadline_ns;
	uint64_t code, frame;
	unsigned objects_left;
	struct py_locals *locals;
};

void py_locals_done(struct py_locals *locals)
{
	for (size_t i = 0; i < locals->n; i++) {
		free(locals->locals[i].name);
		free(locals->locals[i].value);
		free(locals->locals[i].type);
	}
	free(locals->locals);
	*locals = (struct py_locals){ 0 };
}

/* 1: out of time. */
static int add(struct reading *reading, const char *name, const struct repr *repr, const char *type, uint64_t object)
{
	struct py_locals *locals = reading->locals;
	struct py_local local = { .object = object };
	int r;

	r = grow(&locals->locals, locals->n, &locals->allocated, sizeof *locals->locals);
	if (r < 0)
		return r;
	local.name = strdup(name);
	local.value = strdup(repr->text);
	local.type = strdup(type);
	locals->locals[locals->n++] = local;
	if (!local.name || !local.value || !local.type)
		return -ENOMEM;
	locals->is_cut |= repr->is_late;
	return repr->is_late;
}

static bool is_full(struct reading *reading)
{
	if (reading->locals->n < MAX_LOCALS && reading->objects_left > 0 && monotonic_ns() < reading->deadline_ns)
		return false;
	reading->locals->is_cut = true;
	return true;
}

/* Read one variable that has a value. 1: stop reading. */
static int read_value(struct reading *reading, const char *name, uint64_t value)
{
	struct repr repr = {
		.runtime = reading->runtime,
		.deadline_ns = reading->deadline_ns,
		.objects_left = MIN((unsigned)MAX_OBJECTS, reading->objects_left),
	};
	unsigned n_before = repr.objects_left;
	struct object_type type = { .name = "" };

	if (is_full(reading))
		return 1;
	(void)object_type_of(reading->runtime, value, &type); /* unreadable values are shown as such */
	repr_put_object(&repr, value, 0);
	reading->objects_left -= n_before - repr.objects_left;
	return add(reading, name, &repr, type.name, value);
}

/* A cell's contents; 0: empty. */
static uint64_t out_of_cell(struct py_runtime *runtime, uint64_t value)
{
	struct object_type type;
	uint64_t inner;

	if (object_type_of(runtime, value, &type) < 0 || strcmp(type.name, "cell") != 0)
		return value;
	return object_word(runtime, value + reader_field(runtime, CELL_OBJECT), &inner) < 0 ? value : inner;
}

/* Read the frame's n-th variable, whose name is an object. 1: stop reading. */
static int read_variable(struct reading *reading, uint64_t n, uint64_t name, bool may_be_cell)
{
	struct py_runtime *runtime = reading->runtime;
	struct repr text = { .runtime = runtime };
	uint64_t value;
	int r;

	r = object_word(runtime, reading->frame + reader_field(runtime, FRAME_VARIABLES) + n * sizeof value, &value);
	if (r < 0)
		return r;
	value &= ~(uint64_t)VALUE_TAG;
	if (value != 0 && may_be_cell)
		value = out_of_cell(runtime, value);
	if (value == 0) /* unset or deleted */
		return 0;
	repr_put_name(&text, name);
	return text.text[0] == '.' ? 0 : read_value(reading, text.text, value); /* '.': the compiler's */
}

/* From 3.11 on: one tuple of names. */
static int read_all_variables(struct reading *reading)
{
	struct py_runtime *runtime = reading->runtime;
	uint64_t names, kinds, name;
	struct item_walk walk;
	int r;

	r = object_word(runtime, reading->code + reader_field(runtime, CODE_VARIABLES), &names);
	if (r >= 0)
		r = object_word(runtime, reading->code + reader_field(runtime, CODE_VARIABLE_KINDS), &kinds);
	if (r >= 0)
		r = object_tuple_walk(runtime, names, &walk);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < MAX_VARIABLES && (r = object_item_next(runtime, &walk, &name)) > 0; i++) {
		uint8_t kind;

		r = page_cache_read(&runtime->page_cache, kinds + reader_field(runtime, BYTES_DATA) + i, &kind,
				    sizeof kind);
		if (r >= 0)
			r = read_variable(reading, i, name, kind & KIND_HOLDS_CELL);
		if (r != 0)
			return r;
	}
	return r;
}

/* Up to 3.10: three tuples of names in sequence. */
static int read_variables_of(struct reading *reading, enum layout_field field, bool may_be_cell, uint64_t *n)
{
	struct py_runtime *runtime = reading->runtime;
	struct item_walk walk;
	uint64_t names, name;
	int r;

	r = object_word(runtime, reading->code + reader_field(runtime, field), &names);
	if (r >= 0)
		r = object_tuple_walk(runtime, names, &walk);
	if (r < 0)
		return r;
	while (*n < MAX_VARIABLES && (r = object_item_next(runtime, &walk, &name)) > 0) {
		r = read_variable(reading, (*n)++, name, may_be_cell);
		if (r != 0)
			return r;
	}
	return r;
}

static int read_variables(struct reading *reading)
{
	uint64_t n = 0;
	int r;

	if (reader_has(reading->runtime, CODE_VARIABLE_KINDS))
		return read_all_variables(reading);
	r = read_variables_of(reading, CODE_VARIABLES, false, &n);
	if (r == 0)
		r = read_variables_of(reading, CODE_CELLS, true, &n);
	if (r == 0)
		r = read_variables_of(reading, CODE_FREE_VARIABLES, true, &n);
	return r;
}

/* Whether an import, class or def statement defined the name: those are no state of the program. */
static bool is_definition(struct py_runtime *runtime, const char *name, uint64_t value)
{
	struct object_type type, itself;
	uint64_t own_name;

	if (strncmp(name, "__", 2) == 0)
		return true;
	if (object_type_of(runtime, value, &type) < 0)
		return false;
	if (strcmp(type.name, "module") == 0)
		return true;
	if (type.flags & TYPE_TYPE)
		return object_type_at(runtime, value, &itself) >= 0 && strcmp(itself.name, name) == 0;
	return strcmp(type.name, "function") == 0 &&
	       object_word(runtime, value + reader_field(runtime, FUNCTION_NAME), &own_name) >= 0 &&
	       object_string_is(runtime, own_name, name);
}

static int read_namespace(struct reading *reading)
{
	struct py_runtime *runtime = reading->runtime;
	uint64_t dict, key, value;
	struct dict_walk walk;
	int r;

	r = object_word(runtime, reading->frame + reader_field(runtime, FRAME_NAMESPACE), &dict);
	if (r >= 0)
		r = object_dict_walk(runtime, dict, &walk);
	if (r < 0)
		return r;
	walk.n = MIN(walk.n, (uint64_t)MAX_NAMES);
	while ((r = object_dict_next(runtime, &walk, &key, &value)) > 0) {
		struct repr name = { .runtime = runtime };

		repr_put_name(&name, key);
		if (is_definition(runtime, name.text, value))
			continue;
		r = read_value(reading, name.text, value);
		if (r != 0)
			return r;
	}
	return r;
}

int py_locals_prepare(struct py_runtime *runtime)
{
	page_cache_touch(&runtime->page_cache);
	return 0;
}

int py_locals_read(struct py_runtime *runtime, uint64_t frame, uint64_t deadline_ns, struct py_locals *ret)
{
	struct reading reading = {
		.runtime = runtime,
		.deadline_ns = deadline_ns,
		.frame = frame,
		.objects_left = MAX_ALL_OBJECTS,
		.locals = ret,
	};
	struct frame_head head;
	uint32_t flags;
	int r;

	r = reader_frame(runtime, frame, &head);
	if (r < 0)
		return r;
	reading.code = head.code;
	r = page_cache_read(&runtime->page_cache, head.code + reader_field(runtime, CODE_FLAGS), &flags, sizeof flags);
	if (r < 0)
		return r;
	if (!(flags & CODE_IS_OPTIMISED))
		r = read_namespace(&reading);
	if (r == 0) /* inlined comprehensions keep variables in their surrounding frame */
		r = read_variables(&reading);
	if (r < 0 && r != -ENOMEM)
		ret->is_cut = true;
	return r == -ENOMEM ? r : 0;
}
