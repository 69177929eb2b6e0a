/* SPDX-License-Identifier: MIT */
/* object.c - types of objects, and their attributes.
 *
 * A word is an object if its type field points to a type, that is, to an instance of one
 * whose flags say that its instances are types. Attributes are in a dict, or, from
 * 3.11, in values without keys: the type has the keys, once for all instances
 * (Include/internal/pycore_object.h).
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/object.h"

int object_word(struct py_runtime *runtime, uint64_t address, uint64_t *ret)
{
	return page_cache_read(&runtime->page_cache, address, ret, sizeof *ret);
}

/* A string that continues on an unmapped page ends before it. */
void object_c_string(struct py_runtime *runtime, uint64_t address, char *to, size_t n_bytes)
{
	size_t n = 0;

	while (n < n_bytes - 1) {
		size_t here = MIN(n_bytes - 1 - n, (size_t)(CACHE_PAGE_BYTES - (address + n) % CACHE_PAGE_BYTES));

		if (page_cache_read(&runtime->page_cache, address + n, to + n, here) < 0)
			break;
		if (memchr(to + n, '\0', here))
			return;
		n += here;
	}
	to[n] = '\0';
}

/* Check that the object's type is `type`. */
static int check_is_type(struct py_runtime *runtime, uint64_t address)
{
	uint64_t meta, flags;
	int r;

	r = object_word(runtime, address + reader_field(runtime, OBJECT_TYPE), &meta);
	if (r >= 0)
		r = object_word(runtime, meta + reader_field(runtime, TYPE_FLAGS), &flags);
	if (r < 0)
		return r;
	return flags & TYPE_TYPE ? 0 : -EBADMSG;
}

static int read_type(struct py_runtime *runtime, uint64_t address, struct object_type *ret)
{
	static const enum layout_field fields[] = { TYPE_NAME,          TYPE_FLAGS,     TYPE_BASE,
						    TYPE_BASIC_SIZE,    TYPE_ITEM_SIZE, TYPE_DICT_OFFSET,
						    TYPE_WEAKREF_OFFSET };
	uint64_t value[N_ELEMENTS(fields)];
	int r;

	r = check_is_type(runtime, address);
	for (size_t i = 0; i < N_ELEMENTS(fields) && r >= 0; i++)
		r = object_word(runtime, address + reader_field(runtime, fields[i]), &value[i]);
	if (r < 0)
		return r;
	*ret = (struct object_type){
		.address = address,
		.flags = value[1],
		.base = value[2],
		.basic_size = (int64_t)value[3],
		.item_size = (int64_t)value[4],
		.dict_offset = (int64_t)value[5],
		.weakref_offset = (int64_t)value[6],
	};
	object_c_string(runtime, value[0], ret->name, sizeof ret->name);
	return 0;
}

/* Most objects have a type that was read before. */
int object_type_at(struct py_runtime *runtime, uint64_t address, struct object_type *ret)
{
	struct object_type *known = &runtime->types[mix64(address) % OBJECT_N_TYPES].type;
	uint64_t *sample = &runtime->types[mix64(address) % OBJECT_N_TYPES].sample;
	int r;

	if (address == 0 || address % sizeof(uint64_t) != 0)
		return -EBADMSG;
	if (*sample != runtime->sample || known->address != address) {
		*sample = runtime->sample - 1; /* invalid if reading fails */
		r = read_type(runtime, address, known);
		if (r < 0)
			return r;
		*sample = runtime->sample;
	}
	*ret = *known;
	return 0;
}

int object_type_of(struct py_runtime *runtime, uint64_t object, struct object_type *ret)
{
	uint64_t type;
	int r;

	if (object == 0 || object % sizeof(uint64_t) != 0)
		return -EBADMSG;
	r = object_word(runtime, object + reader_field(runtime, OBJECT_TYPE), &type);
	return r < 0 ? r : object_type_at(runtime, type, ret);
}

bool object_is_a(struct py_runtime *runtime, const struct object_type *type, const char *name, struct object_type *ret)
{
	struct object_type at = *type;

	for (unsigned i = 0; i < TYPE_MAX_BASES; i++) {
		if (strcmp(at.name, name) == 0) {
			if (ret)
				*ret = at;
			return true;
		}
		if (at.base == 0 || object_type_at(runtime, at.base, &at) < 0)
			return false;
	}
	return false;
}

int object_size(struct py_runtime *runtime, uint64_t object, uint64_t *ret)
{
	int64_t size;
	int r;

	r = object_word(runtime, object + reader_field(runtime, OBJECT_SIZE), (uint64_t *)&size);
	if (r < 0)
		return r;
	*ret = size < 0 ? 0 - (uint64_t)size : (uint64_t)size;
	return 0;
}

/* From 3.12 on, a tag holds size and sign. Low bits: 0 positive, 1 zero, 2 negative. */
int object_int_size(struct py_runtime *runtime, uint64_t object, uint64_t *ret_digits, bool *ret_negative)
{
	enum { TAG_SIGN = 3, TAG_ZERO = 1, TAG_NEGATIVE = 2, TAG_SIZE_SHIFT = 3 };
	bool has_tag = reader_has(runtime, LONG_TAG);
	uint64_t word;
	int r;

	r = object_word(runtime, object + reader_field(runtime, has_tag ? LONG_TAG : OBJECT_SIZE), &word);
	if (r < 0)
		return r;
	*ret_negative = has_tag ? (word & TAG_SIGN) == TAG_NEGATIVE : (int64_t)word < 0;
	if (has_tag)
		*ret_digits = (word & TAG_SIGN) == TAG_ZERO ? 0 : word >> TAG_SIZE_SHIFT;
	else
		*ret_digits = *ret_negative ? 0 - word : word;
	return 0;
}

int object_int(struct py_runtime *runtime, uint64_t object, int64_t *ret)
{
	uint32_t digits[2] = { 0 };
	struct object_type type;
	bool is_negative;
	int64_t value;
	uint64_t n;
	int r;

	r = object_type_of(runtime, object, &type);
	if (r < 0)
		return r;
	if (reader_has(runtime, INT_VALUE) && (type.flags & TYPE_INT))
		return object_word(runtime, object + reader_field(runtime, INT_VALUE), (uint64_t *)ret);
	if (!(type.flags & TYPE_LONG))
		return -EBADMSG;
	r = object_int_size(runtime, object, &n, &is_negative);
	if (r >= 0 && n > N_ELEMENTS(digits))
		return -ERANGE;
	if (r >= 0 && n > 0)
		r = page_cache_read(&runtime->page_cache, object + reader_field(runtime, LONG_DIGITS), digits,
				    n * sizeof *digits);
	if (r < 0)
		return r;
	value = (int64_t)((uint64_t)digits[1] << OBJECT_DIGIT_BITS | digits[0]);
	*ret = is_negative ? -value : value;
	return 0;
}

int object_weakref_target(struct py_runtime *runtime, uint64_t reference, uint64_t *ret)
{
	struct object_type type;
	uint64_t target;
	int r;

	r = object_word(runtime, reference + reader_field(runtime, WEAKREF_OBJECT), &target);
	if (r >= 0)
		r = object_type_of(runtime, target, &type);
	if (r < 0)
		return r;
	if (strcmp(type.name, "NoneType") == 0)
		return -ENOENT;
	*ret = target;
	return 0;
}

/* A dict that a word may point to. */
static int dict_at(struct py_runtime *runtime, uint64_t address, struct dict_walk *ret)
{
	uint64_t dict;
	int r;

	r = object_word(runtime, address, &dict);
	if (r < 0)
		return r;
	if (dict != 0)
		return object_dict_walk(runtime, dict, ret);
	*ret = (struct dict_walk){ 0 };
	return 0;
}

/* Inline values, whose keys are in the type. */
static int values_at(struct py_runtime *runtime, const struct object_type *type, uint64_t values, struct dict_walk *ret)
{
	uint64_t keys;
	int r;

	*ret = (struct dict_walk){ 0 };
	if (values == 0)
		return 0;
	r = object_word(runtime, type->address + reader_field(runtime, TYPE_KEYS), &keys);
	return r < 0 ? r : object_keys_walk(runtime, keys, values, ret);
}

static int inline_values(struct py_runtime *runtime, const struct object_type *type, uint64_t object,
			 struct dict_walk *ret)
{
	uint64_t values = object + (uint64_t)type->basic_size;
	uint8_t is_valid;
	int r;

	*ret = (struct dict_walk){ 0 };
	if (!(type->flags & TYPE_INLINE_VALUES))
		return 0;
	r = page_cache_read(&runtime->page_cache, values + reader_field(runtime, VALUES_VALID), &is_valid,
			    sizeof is_valid);
	if (r < 0)
		return r;
	return is_valid ? values_at(runtime, type, values, ret) : 0;
}

static int managed(struct py_runtime *runtime, const struct object_type *type, uint64_t object, struct dict_walk *ret)
{
	uint64_t place = object - reader_field(runtime, MANAGED_DICT), dict, values;
	int r;

	r = object_word(runtime, place, &dict);
	if (r < 0)
		return r;
	if (runtime->layout.field[INSTANCES] == INSTANCES_TAGGED && (dict & 1))
		return values_at(runtime, type, dict + 1, ret);
	if (dict != 0)
		return object_dict_walk(runtime, dict, ret);
	if (runtime->layout.field[INSTANCES] == INSTANCES_INLINE)
		return inline_values(runtime, type, object, ret);
	if (runtime->layout.field[INSTANCES] != INSTANCES_VALUES)
		return values_at(runtime, type, 0, ret);
	r = object_word(runtime, object - reader_field(runtime, MANAGED_VALUES), &values);
	return r < 0 ? r : values_at(runtime, type, values, ret);
}

/* In objects with items, the dict pointer may follow the items. */
static int behind_items(struct py_runtime *runtime, const struct object_type *type, uint64_t object,
			struct dict_walk *ret)
{
	uint64_t size, end;
	int r;

	r = object_size(runtime, object, &size);
	if (r < 0)
		return r;
	end = (uint64_t)type->basic_size + (uint64_t)type->item_size * size;
	end = (end + sizeof(uint64_t) - 1) & ~(uint64_t)(sizeof(uint64_t) - 1);
	return dict_at(runtime, object + end + (uint64_t)type->dict_offset, ret);
}

int object_attributes_walk(struct py_runtime *runtime, uint64_t object, struct dict_walk *ret)
{
	struct object_type type;
	int r;

	r = object_type_of(runtime, object, &type);
	if (r < 0)
		return r;
	if (runtime->layout.field[INSTANCES] != INSTANCES_DICT && (type.flags & TYPE_MANAGED_DICT))
		return managed(runtime, &type, object, ret);
	if (type.dict_offset > 0)
		return dict_at(runtime, object + (uint64_t)type.dict_offset, ret);
	if (type.dict_offset < 0)
		return behind_items(runtime, &type, object, ret);
	*ret = (struct dict_walk){ 0 };
	return 0;
}

int object_module_dict(struct py_runtime *runtime, uint64_t interpreter, const char *name, uint64_t *ret)
{
	uint64_t modules, module, dict;
	struct dict_walk walk;
	int r;

	r = object_word(runtime, interpreter + reader_field(runtime, INTERPRETER_MODULES), &modules);
	if (r >= 0)
		r = object_dict_find(runtime, modules, name, &module);
	if (r >= 0)
		r = object_word(runtime, module + reader_field(runtime, MODULE_DICT), &dict);
	if (r >= 0) /* sys.modules may hold any object */
		r = object_dict_walk(runtime, dict, &walk);
	if (r < 0)
		return r;
	*ret = dict;
	return 0;
}
