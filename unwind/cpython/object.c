/* object.c - what kind of object it is, and where it keeps its attributes.
 *
 * A word is an object if what it points to as its type is a type, that is, an instance of one
 * that says of itself that its instances are types. Attributes stand in a dict, or, from
 * 3.11, in values without keys: those the type has, once for all instances
 * (Include/internal/pycore_object.h).
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/object.h"

int object_word(struct py_runtime *runtime, uint64_t address, uint64_t *ret)
{
	return window_read(&runtime->window, address, ret, sizeof *ret);
}

/* A C string as far as it goes; one that goes on behind a page which is not there ends with it. */
static void read_name(struct py_runtime *runtime, uint64_t address, char name[TYPE_NAME_BYTES])
{
	size_t n = 0;

	while (n < TYPE_NAME_BYTES - 1) {
		size_t here = MIN(TYPE_NAME_BYTES - 1 - n, (size_t)(WINDOW_PAGE_BYTES - (address + n) % WINDOW_PAGE_BYTES));

		if (window_read(&runtime->window, address + n, name + n, here) < 0)
			break;
		if (memchr(name + n, '\0', here))
			return;
		n += here;
	}
	name[n] = '\0';
}

/* A type's own type; what has that is a type. */
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

int object_type_at(struct py_runtime *runtime, uint64_t address, struct object_type *ret)
{
	static const enum layout_field fields[] = { TYPE_NAME, TYPE_FLAGS, TYPE_BASE, TYPE_BASIC_SIZE, TYPE_ITEM_SIZE,
						    TYPE_DICT_OFFSET };
	uint64_t value[N_ELEMENTS(fields)];
	int r;

	if (address == 0 || address % sizeof(uint64_t) != 0)
		return -EBADMSG;
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
	};
	read_name(runtime, value[0], ret->name);
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

/* A dict that a word points to, if there is one. */
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

/* Values whose keys the type has. */
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
	r = window_read(&runtime->window, values + reader_field(runtime, VALUES_VALID), &is_valid, sizeof is_valid);
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

/* Of objects with items the dict may follow them. */
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
	struct object_type type;
	int r;

	r = object_word(runtime, interpreter + reader_field(runtime, INTERPRETER_MODULES), &modules);
	if (r >= 0)
		r = object_dict_find(runtime, modules, name, &module);
	if (r >= 0)
		r = object_type_of(runtime, module, &type);
	if (r < 0)
		return r;
	/* Anything may stand in sys.modules. */
	if (!object_is_a(runtime, &type, "module", NULL))
		return -EBADMSG;
	r = object_word(runtime, module + reader_field(runtime, MODULE_DICT), &dict);
	if (r < 0)
		return r;
	*ret = dict;
	return 0;
}
