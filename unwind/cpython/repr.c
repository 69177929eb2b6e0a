/* SPDX-License-Identifier: MIT */
/* repr.c - an object as text, by reading alone.
 *
 * The text of Python's own repr() if possible, in one short line: for
 * containers their first items, for instances their attributes. The writer of an object is chosen
 * by the name of its type, or of the nearest base. No code of the
 * target runs, so a class' own __repr__ is not used.
 */
#include "unwind/cpython/repr.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

enum {
	MAX_CHARACTERS = 80, /* of one text, also of one inside a container */
	MAX_INNER_CHARACTERS = 40,
	MAX_NAME_CHARACTERS = 60,
	MAX_SLOTS = 4096, /* read per hash table, used or not */
	MAX_KEYS = 256,   /* searched per namespace */
	WORD = sizeof(uint64_t),
};

/* Number of shown items, by depth. */
static const unsigned max_items[REPR_MAX_DEPTH] = { 10, 6, 4 };

static void append(struct repr *repr, const char *bytes, size_t n)
{
	if (repr->is_full)
		return;
	if (n > REPR_MAX_BYTES - repr->n) {
		memcpy(repr->text + repr->n, "...", sizeof "...");
		repr->is_full = true;
		return;
	}
	memcpy(repr->text + repr->n, bytes, n);
	repr->n += n;
	repr->text[repr->n] = '\0';
}

/* Append our own text, or a type's name, which may contain anything. */
void repr_put(struct repr *repr, const char *text)
{
	size_t n = strlen(text);

	while (n > 0) {
		const uint8_t *at = (const uint8_t *)text;
		uint32_t character = *at;
		size_t n_bytes = 1;

		if (*at >= 0x80)
			character = reader_utf8_at(at, n, &n_bytes);
		repr_put_character(repr, character ? character : 0xfffd);
		text += n_bytes;
		n -= n_bytes;
	}
}

void repr_printf(struct repr *repr, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	repr_put(repr, text);
}

/* Format and control characters change how text is displayed and show nothing. */
static bool is_invisible(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || (c >= 0xd800 && c < 0xe000) ||
	       c == 0xfeff || c > 0x10ffff;
}

void repr_put_character(struct repr *repr, uint32_t character)
{
	char bytes[4];

	append(repr, bytes, reader_put_utf8(bytes, is_invisible(character) ? 0xfffd : character));
}

void repr_put_escaped(struct repr *repr, uint32_t c, char quote, bool is_bytes)
{
	static const char letters[] = { ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };

	if (c == '\\' || c == (uint32_t)quote)
		repr_printf(repr, "\\%c", (char)c);
	else if (c < sizeof letters && letters[c])
		repr_printf(repr, "\\%c", letters[c]);
	else if (c > 0xffff && is_invisible(c))
		repr_printf(repr, "\\U%08x", c);
	else if (c > 0xff && is_invisible(c))
		repr_printf(repr, "\\u%04x", c);
	else if (is_invisible(c) || (is_bytes && c > 0x7e))
		repr_printf(repr, "\\x%02x", c);
	else
		repr_put_character(repr, c);
}

static const char *name_of(const struct object_type *type)
{
	const char *dot = strrchr(type->name, '.');

	return dot && dot[1] ? dot + 1 : type->name;
}

/* ---- Text ---- */

static int put_text(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		    unsigned depth)
{
	bool is_bytes = type->flags & TYPE_BYTES,
	     names_are_bytes = repr->runtime->layout.field[STRINGS] == STRINGS_BYTES;
	uint32_t characters[MAX_CHARACTERS];
	size_t n = depth > 0 ? MAX_INNER_CHARACTERS : MAX_CHARACTERS;
	bool has_single = false, has_double = false;
	uint64_t length;
	char quote;
	int r;

	(void)base;
	r = object_text(repr->runtime, object, type, characters, n, &length);
	if (r < 0)
		return r;
	n = (size_t)r;
	for (size_t i = 0; i < n; i++) {
		has_single |= characters[i] == '\'';
		has_double |= characters[i] == '"';
	}
	quote = has_single && !has_double ? '"' : '\'';
	if (is_bytes != names_are_bytes)
		repr_put(repr, is_bytes ? "b" : "u");
	repr_printf(repr, "%c", quote);
	for (size_t i = 0; i < n; i++)
		repr_put_escaped(repr, characters[i], quote, is_bytes);
	repr_printf(repr, "%c", quote);
	if (length > n)
		repr_printf(repr, "... of %llu", (unsigned long long)length);
	return 0;
}

void repr_put_name(struct repr *repr, uint64_t object)
{
	uint32_t characters[MAX_NAME_CHARACTERS];
	struct object_type type;
	uint64_t length;
	int n = -EBADMSG;

	if (object_type_of(repr->runtime, object, &type) >= 0 && (type.flags & (TYPE_UNICODE | TYPE_BYTES)))
		n = object_text(repr->runtime, object, &type, characters, MAX_NAME_CHARACTERS, &length);
	if (n < 0)
		repr_put(repr, "?");
	for (int i = 0; i < n; i++)
		repr_put_character(repr, characters[i]);
	if (n == MAX_NAME_CHARACTERS && length > MAX_NAME_CHARACTERS)
		repr_put(repr, "...");
}

/* ---- Numbers and singletons ---- */

static int put_int(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		   unsigned depth)
{
	(void)type;
	(void)depth;
	return repr_put_int(repr, object, base);
}

static int read_double(struct repr *repr, uint64_t address, double *ret)
{
	return page_cache_read(&repr->runtime->page_cache, address, ret, sizeof *ret);
}

static int put_float(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		     unsigned depth)
{
	double value;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = read_double(repr, object + reader_field(repr->runtime, FLOAT_VALUE), &value);
	if (r >= 0)
		repr_put_double(repr, value, true);
	return r;
}

static int put_complex(struct repr *repr, uint64_t object, const struct object_type *type,
		       const struct object_type *base, unsigned depth)
{
	uint64_t address = object + reader_field(repr->runtime, COMPLEX_VALUE);
	double real, imaginary;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = read_double(repr, address, &real);
	if (r >= 0)
		r = read_double(repr, address + sizeof real, &imaginary);
	if (r < 0)
		return r;
	if (real == 0 && !__builtin_signbit(real)) {
		repr_put_double(repr, imaginary, false);
		repr_put(repr, "j");
		return 0;
	}
	repr_put(repr, "(");
	repr_put_double(repr, real, false);
	repr_put(repr, __builtin_signbit(imaginary) ? "" : "+");
	repr_put_double(repr, imaginary, false);
	repr_put(repr, "j)");
	return 0;
}

static int put_none(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		    unsigned depth)
{
	(void)object;
	(void)type;
	(void)depth;
	repr_put(repr, strcmp(base->name, "NoneType") == 0   ? "None"
		       : strcmp(base->name, "ellipsis") == 0 ? "Ellipsis"
							     : "NotImplemented");
	return 0;
}

/* ---- Containers ---- */

static void put_more(struct repr *repr, uint64_t n_all, unsigned n_shown)
{
	if (n_all > n_shown)
		repr_printf(repr, "%s... %llu more", n_shown ? ", " : "", (unsigned long long)(n_all - n_shown));
}

/* Write as many items as this depth shows. */
static int put_items(struct repr *repr, struct item_walk *walk, uint64_t n_all, unsigned depth, unsigned *ret_n)
{
	unsigned n = 0, max = depth < REPR_MAX_DEPTH ? max_items[depth] : 0;
	uint64_t item;
	int r = 1;

	while (n < max && !repr->is_full && (r = object_item_next(repr->runtime, walk, &item)) > 0) {
		repr_put(repr, n++ ? ", " : "");
		repr_put_object(repr, item, depth + 1);
	}
	if (r < 0)
		repr_put(repr, n ? ", <unreadable>" : "<unreadable>");
	else
		put_more(repr, n_all, n);
	*ret_n = n;
	return 0;
}

static int put_list(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		    unsigned depth)
{
	struct item_walk walk;
	unsigned n;
	int r;

	(void)type;
	(void)base;
	r = object_list_walk(repr->runtime, object, &walk);
	if (r < 0)
		return r;
	repr_put(repr, "[");
	put_items(repr, &walk, walk.n, depth, &n);
	repr_put(repr, "]");
	return 0;
}

/* Field names of a named tuple, from its class. */
static bool field_names(struct repr *repr, const struct object_type *type, struct item_walk *ret)
{
	struct object_type fields_type;
	uint64_t dict, fields;

	if (!(type->flags & TYPE_HEAP) ||
	    object_word(repr->runtime, type->address + reader_field(repr->runtime, TYPE_DICT), &dict) < 0 ||
	    object_dict_find_among(repr->runtime, dict, "_fields", MAX_KEYS, &fields) < 0 ||
	    object_type_of(repr->runtime, fields, &fields_type) < 0 || !(fields_type.flags & TYPE_TUPLE))
		return false;
	return object_tuple_walk(repr->runtime, fields, ret) >= 0;
}

static int put_tuple(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		     unsigned depth)
{
	unsigned n = 0, max = depth < REPR_MAX_DEPTH ? max_items[depth] : 0;
	struct item_walk walk, names;
	uint64_t item, name;
	bool has_names;
	int r;

	(void)base;
	r = object_tuple_walk(repr->runtime, object, &walk);
	if (r < 0)
		return r;
	has_names = field_names(repr, type, &names);
	repr_put(repr, "(");
	while (has_names && n < max && !repr->is_full && object_item_next(repr->runtime, &walk, &item) > 0 &&
	       object_item_next(repr->runtime, &names, &name) > 0) {
		repr_put(repr, n++ ? ", " : "");
		repr_put_name(repr, name);
		repr_put(repr, "=");
		repr_put_object(repr, item, depth + 1);
	}
	if (has_names)
		put_more(repr, walk.n, n);
	else
		put_items(repr, &walk, walk.n, depth, &n);
	repr_put(repr, walk.n == 1 && !has_names ? ",)" : ")");
	return 0;
}

static int put_set(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		   unsigned depth)
{
	bool is_frozen = strcmp(base->name, "frozenset") == 0, is_derived = type->address != base->address;
	struct item_walk walk;
	uint64_t size;
	unsigned n;
	int r;

	r = object_set_walk(repr->runtime, object, &walk);
	if (r >= 0)
		r = object_set_size(repr->runtime, object, &size);
	if (r < 0)
		return r;
	if (size == 0) {
		repr_put(repr, is_derived ? "" : is_frozen ? "frozenset()" : "set()");
		return 0;
	}
	walk.n = MIN(walk.n, (uint64_t)MAX_SLOTS);
	repr_put(repr, is_frozen && !is_derived ? "frozenset({" : "{");
	put_items(repr, &walk, size, depth, &n);
	repr_put(repr, is_frozen && !is_derived ? "})" : "}");
	return 0;
}

static int put_dict(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		    unsigned depth)
{
	bool is_frozen = strcmp(base->name, "frozendict") == 0 && type->address == base->address;
	unsigned n = 0, max = depth < REPR_MAX_DEPTH ? max_items[depth] : 0;
	struct dict_walk walk;
	uint64_t size, key, value;
	int r;

	r = object_dict_walk(repr->runtime, object, &walk);
	if (r >= 0)
		r = object_dict_size(repr->runtime, object, &size);
	if (r < 0)
		return r;
	walk.n = MIN(walk.n, (uint64_t)MAX_SLOTS);
	repr_put(repr, is_frozen ? "frozendict({" : "{");
	r = 1;
	while (n < max && !repr->is_full && (r = object_dict_next(repr->runtime, &walk, &key, &value)) > 0) {
		repr_put(repr, n++ ? ", " : "");
		repr_put_object(repr, key, depth + 1);
		repr_put(repr, ": ");
		repr_put_object(repr, value, depth + 1);
	}
	if (r >= 0)
		put_more(repr, size, n);
	repr_put(repr, r < 0 ? "<unreadable>}" : "}");
	repr_put(repr, is_frozen ? ")" : "");
	return 0;
}

static int put_range(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		     unsigned depth)
{
	uint64_t address = object + reader_field(repr->runtime, FLOAT_VALUE), parts[3];
	int r;

	(void)type;
	r = page_cache_read(&repr->runtime->page_cache, address, parts, sizeof parts);
	if (r < 0)
		return r;
	if (strcmp(base->name, "xrange") == 0) { /* fields start, step, length */
		repr_printf(repr, "xrange(%lld, %lld, %lld)", (long long)parts[0],
			    (long long)(parts[0] + parts[1] * parts[2]), (long long)parts[1]);
		return 0;
	}
	repr_put(repr, "range(");
	for (unsigned i = 0; i < N_ELEMENTS(parts); i++) {
		repr_put(repr, i ? ", " : "");
		repr_put_object(repr, parts[i], depth + 1);
	}
	repr_put(repr, ")");
	return 0;
}

/* ---- Functions, classes, modules ---- */

static int put_type(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		    unsigned depth)
{
	struct object_type itself;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = object_type_at(repr->runtime, object, &itself);
	if (r >= 0)
		repr_printf(repr, "<class '%s'>", itself.name);
	return r;
}

static int put_function(struct repr *repr, uint64_t object, const struct object_type *type,
			const struct object_type *base, unsigned depth)
{
	uint64_t name;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = object_word(repr->runtime, object + reader_field(repr->runtime, FUNCTION_NAME), &name);
	if (r < 0)
		return r;
	repr_put(repr, "<function ");
	repr_put_name(repr, name);
	repr_put(repr, ">");
	return 0;
}

/* The first field is the function. */
static int put_method(struct repr *repr, uint64_t object, const struct object_type *type,
		      const struct object_type *base, unsigned depth)
{
	struct object_type function_type;
	uint64_t function, name;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = object_word(repr->runtime, object + reader_field(repr->runtime, FLOAT_VALUE), &function);
	if (r >= 0)
		r = object_type_of(repr->runtime, function, &function_type);
	if (r < 0)
		return r;
	repr_put(repr, "<method ");
	if (strcmp(function_type.name, "function") == 0 &&
	    object_word(repr->runtime, function + reader_field(repr->runtime, FUNCTION_NAME), &name) >= 0)
		repr_put_name(repr, name);
	else
		repr_put(repr, function_type.name);
	repr_put(repr, ">");
	return 0;
}

/* The first field is a PyMethodDef, whose first field is the name. */
static int put_builtin(struct repr *repr, uint64_t object, const struct object_type *type,
		       const struct object_type *base, unsigned depth)
{
	char name[MAX_NAME_CHARACTERS];
	uint64_t definition, text;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = object_word(repr->runtime, object + reader_field(repr->runtime, FLOAT_VALUE), &definition);
	if (r >= 0)
		r = object_word(repr->runtime, definition, &text);
	if (r < 0)
		return r;
	object_c_string(repr->runtime, text, name, sizeof name);
	repr_printf(repr, "<built-in function %s>", name);
	return 0;
}

static int put_module(struct repr *repr, uint64_t object, const struct object_type *type,
		      const struct object_type *base, unsigned depth)
{
	uint64_t dict, name;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = object_word(repr->runtime, object + reader_field(repr->runtime, MODULE_DICT), &dict);
	if (r >= 0)
		r = object_dict_find_among(repr->runtime, dict, "__name__", MAX_KEYS, &name);
	if (r < 0)
		return r;
	repr_put(repr, "<module '");
	repr_put_name(repr, name);
	repr_put(repr, "'>");
	return 0;
}

static int put_exception(struct repr *repr, uint64_t object, const struct object_type *type,
			 const struct object_type *base, unsigned depth)
{
	struct object_type arguments_type;
	uint64_t arguments;
	int r;

	r = object_word(repr->runtime, object + reader_field(repr->runtime, EXCEPTION_ARGUMENTS), &arguments);
	if (r >= 0)
		r = object_type_of(repr->runtime, arguments, &arguments_type);
	if (r < 0)
		return r;
	if (!(arguments_type.flags & TYPE_TUPLE))
		return -EBADMSG;
	(void)base;
	repr_put(repr, name_of(type));
	return put_tuple(repr, arguments, &arguments_type, &arguments_type, depth);
}

/* ---- Instances ---- */

/* Write an attribute; write the type before the first one. */
static void put_attribute(struct repr *repr, const char *type, unsigned *n, uint64_t name, uint64_t value,
			  unsigned depth)
{
	if (*n == 0)
		repr_printf(repr, "%s(", type);
	repr_put(repr, (*n)++ ? ", " : "");
	repr_put_name(repr, name);
	repr_put(repr, "=");
	repr_put_object(repr, value, depth + 1);
}

static void put_opaque(struct repr *repr, const struct object_type *type)
{
	repr_printf(repr, "<%s%sobject>", type->name, type->name[0] ? " " : "");
}

/* The offset in an instance, from a slot's descriptor. */
static bool is_slot(struct repr *repr, uint64_t descriptor, uint64_t *ret_offset)
{
	enum { T_OBJECT_EX = 16, DEFINITION_TYPE = 8, DEFINITION_OFFSET = 16 };
	struct object_type type;
	uint64_t definition;
	uint32_t kind;

	return object_type_of(repr->runtime, descriptor, &type) >= 0 && strcmp(type.name, "member_descriptor") == 0 &&
	       object_word(repr->runtime, descriptor + reader_field(repr->runtime, MEMBER_DEFINITION), &definition) >=
		       0 &&
	       page_cache_read(&repr->runtime->page_cache, definition + DEFINITION_TYPE, &kind, sizeof kind) >= 0 &&
	       kind == T_OBJECT_EX && object_word(repr->runtime, definition + DEFINITION_OFFSET, ret_offset) >= 0;
}

/* Write the __slots__ of a class; its namespace has a descriptor for each. */
static void put_slots_of(struct repr *repr, uint64_t object, const struct object_type *type, const char *type_name,
			 unsigned *n, unsigned max, unsigned depth)
{
	uint64_t dict, name, descriptor, offset, value;
	struct dict_walk walk;

	if (object_word(repr->runtime, type->address + reader_field(repr->runtime, TYPE_DICT), &dict) < 0 ||
	    object_dict_walk(repr->runtime, dict, &walk) < 0)
		return;
	while (*n < max && repr->objects_left > 0 && object_dict_next(repr->runtime, &walk, &name, &descriptor) > 0) {
		repr->objects_left--;
		if (is_slot(repr, descriptor, &offset) && offset < (uint64_t)type->basic_size &&
		    object_word(repr->runtime, object + offset, &value) >= 0 && value != 0)
			put_attribute(repr, type_name, n, name, value, depth);
	}
}

/* Whether instances are larger than the base type's, by more than a dict and a weak reference. */
static bool has_slots(const struct object_type *type, const struct object_type *base)
{
	int64_t size = base->basic_size;

	if (type->dict_offset != 0 && base->dict_offset == 0 && !(type->flags & TYPE_MANAGED_DICT))
		size += WORD;
	if (type->weakref_offset > 0 && base->weakref_offset == 0)
		size += WORD;
	return type->basic_size > size;
}

static void put_slots(struct repr *repr, uint64_t object, const struct object_type *type, unsigned *n, unsigned max,
		      unsigned depth)
{
	struct object_type at = *type, base;

	for (unsigned i = 0; i < TYPE_MAX_BASES && (at.flags & TYPE_HEAP); i++) {
		if (object_type_at(repr->runtime, at.base, &base) < 0)
			return;
		if (has_slots(&at, &base))
			put_slots_of(repr, object, &at, type->name, n, max, depth);
		at = base;
	}
}

static int put_instance(struct repr *repr, uint64_t object, const struct object_type *type,
			const struct object_type *base, unsigned depth)
{
	unsigned n = 0, max = depth < REPR_MAX_DEPTH ? max_items[depth] : 0;
	struct dict_walk walk;
	uint64_t name, value;

	(void)base;
	if (!(type->flags & TYPE_HEAP) || max == 0 || object_attributes_walk(repr->runtime, object, &walk) < 0) {
		put_opaque(repr, type);
		return 0;
	}
	walk.n = MIN(walk.n, (uint64_t)MAX_SLOTS);
	put_slots(repr, object, type, &n, max, depth);
	while (!repr->is_full && object_dict_next(repr->runtime, &walk, &name, &value) > 0) {
		if (n == max) {
			repr_put(repr, ", ...");
			break;
		}
		put_attribute(repr, type->name, &n, name, value, depth);
	}
	if (n > 0)
		repr_put(repr, ")");
	else
		put_opaque(repr, type);
	return 0;
}

/* Write an enum member by its name. */
static bool put_member(struct repr *repr, uint64_t object, const struct object_type *type)
{
	struct object_type meta;
	uint64_t name;

	if (!(type->flags & TYPE_HEAP) || object_type_of(repr->runtime, type->address, &meta) < 0 ||
	    (strcmp(meta.name, "EnumMeta") != 0 && strcmp(meta.name, "EnumType") != 0) ||
	    object_attribute(repr->runtime, object, "_name_", &name) < 0)
		return false;
	repr_printf(repr, "%s.", type->name);
	repr_put_name(repr, name);
	return true;
}

/* 2.7: instances of old-style classes. */
static int put_old_instance(struct repr *repr, uint64_t object, const struct object_type *type,
			    const struct object_type *base, unsigned depth)
{
	enum { CLASS_NAME = 2 * WORD };
	uint64_t fields = object + reader_field(repr->runtime, FLOAT_VALUE), class, name;
	int r;

	(void)type;
	(void)base;
	(void)depth;
	r = object_word(repr->runtime, fields, &class);
	if (r >= 0)
		r = object_word(repr->runtime, class + reader_field(repr->runtime, FLOAT_VALUE) + CLASS_NAME, &name);
	if (r < 0)
		return r;
	repr_put(repr, "<");
	repr_put_name(repr, name);
	repr_put(repr, " instance>");
	return 0;
}

static const struct {
	const char *name;
	repr_writer *put;
	bool is_wrapped; /* write instances of subclasses inside the subclass's name */
} writers[] = {
	{ "NoneType", put_none, false },
	{ "ellipsis", put_none, false },
	{ "NotImplementedType", put_none, false },
	{ "bool", put_int, true },
	{ "int", put_int, true },
	{ "long", put_int, true },
	{ "float", put_float, true },
	{ "complex", put_complex, true },
	{ "str", put_text, true },
	{ "bytes", put_text, true },
	{ "unicode", put_text, true },
	{ "list", put_list, true },
	{ "tuple", put_tuple, true },
	{ "set", put_set, true },
	{ "frozenset", put_set, true },
	{ "dict", put_dict, true },
	{ "frozendict", put_dict, true },
	{ "range", put_range, false },
	{ "xrange", put_range, false },
	{ "type", put_type, false },
	{ "function", put_function, false },
	{ "method", put_method, false },
	{ "instancemethod", put_method, false },
	{ "builtin_function_or_method", put_builtin, false },
	{ "module", put_module, false },
	{ "instance", put_old_instance, false },
	{ "BaseException", put_exception, false },
	{ "exceptions.BaseException", put_exception, false },
	{ "numpy.ndarray", repr_put_ndarray, false },
	{ "numpy.bool", repr_put_numpy_scalar, false },
	{ "numpy.bool_", repr_put_numpy_scalar, false },
	{ "numpy.float64", repr_put_numpy_scalar, false },
	{ "numpy.float32", repr_put_numpy_scalar, false },
	{ "numpy.int64", repr_put_numpy_scalar, false },
	{ "numpy.longlong", repr_put_numpy_scalar, false },
	{ "numpy.int32", repr_put_numpy_scalar, false },
	{ "numpy.intc", repr_put_numpy_scalar, false },
	{ "numpy.int16", repr_put_numpy_scalar, false },
	{ "numpy.int8", repr_put_numpy_scalar, false },
	{ "numpy.uint64", repr_put_numpy_scalar, false },
	{ "numpy.ulonglong", repr_put_numpy_scalar, false },
	{ "numpy.uint32", repr_put_numpy_scalar, false },
	{ "numpy.uintc", repr_put_numpy_scalar, false },
	{ "numpy.uint16", repr_put_numpy_scalar, false },
	{ "numpy.uint8", repr_put_numpy_scalar, false },
	{ "torch._C.TensorBase", repr_put_tensor, false },
	{ "torch._C._TensorBase", repr_put_tensor, false },
};

/* Kind of a type whose name is unreadable: built-in type names are in the executable, which core files omit. */
static const char *name_by_flags(const struct object_type *type)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ TYPE_INT, "int" },     { TYPE_LONG, "int" },    { TYPE_LIST, "list" },       { TYPE_TUPLE, "tuple" },
		{ TYPE_BYTES, "bytes" }, { TYPE_UNICODE, "str" }, { TYPE_DICTIONARY, "dict" }, { TYPE_TYPE, "type" },
	};

	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		if (type->flags & names[i].flag)
			return names[i].name;
	return "";
}

/*
 * Index of a type's writer. A class statement may choose a built-in name, so built-in names only count for static
 * types. -1: none.
 */
static int writer_of(const struct object_type *type)
{
	const char *name = type->name[0] ? type->name : name_by_flags(type);

	for (size_t i = 0; i < N_ELEMENTS(writers); i++)
		if (strcmp(writers[i].name, name) == 0)
			return (type->flags & TYPE_HEAP) && !strchr(name, '.') ? -1 : (int)i;
	return -1;
}

static int put_by_type(struct repr *repr, uint64_t object, const struct object_type *type, unsigned depth)
{
	struct object_type base = *type;
	int n = writer_of(&base);
	bool is_wrapped;
	int r;

	for (unsigned i = 0; n < 0 && i < TYPE_MAX_BASES; i++) {
		if (base.base == 0) /* the base type `object` */
			return put_instance(repr, object, type, &base, depth);
		r = object_type_at(repr->runtime, base.base, &base);
		if (r < 0)
			return r;
		n = writer_of(&base);
	}
	if (n < 0)
		return -EBADMSG;
	is_wrapped = writers[n].is_wrapped && base.address != type->address;
	/* A tuple brings its own parentheses. */
	if (is_wrapped)
		repr_printf(repr, writers[n].put == put_tuple ? "%s" : "%s(", type->name);
	r = writers[n].put(repr, object, type, &base, depth);
	if (r >= 0 && is_wrapped && writers[n].put != put_tuple)
		repr_put(repr, ")");
	return r;
}

void repr_put_object(struct repr *repr, uint64_t object, unsigned depth)
{
	struct object_type type;

	if (repr->is_full)
		return;
	if (monotonic_ns() > repr->deadline_ns)
		repr->is_late = true;
	if (repr->is_late || repr->objects_left == 0 || depth > REPR_MAX_DEPTH) {
		repr_put(repr, "...");
		repr->is_full = repr->is_late;
		return;
	}
	repr->objects_left--;
	if (object_type_of(repr->runtime, object, &type) < 0) {
		repr_put(repr, "<unreadable>");
		return;
	}
	if (!put_member(repr, object, &type) && put_by_type(repr, object, &type, depth) < 0)
		repr_printf(repr, "<%s, unreadable>", type.name);
}
