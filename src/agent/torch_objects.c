/* SPDX-License-Identifier: MIT */
/* torch_objects.c - see torch_objects.h. */
#include "src/agent/torch_objects.h"

#include <stdlib.h>

#include "src/agent/python.h"

struct torch_python py;

static const struct python_name functions[] = {
	{ "PyTuple_Size", &py.TupleSize },
	{ "PyTuple_GetItem", &py.TupleItem },
	{ "PyTuple_Pack", &py.TuplePack },
	{ "PyList_Size", &py.ListSize },
	{ "PyList_GetItem", &py.ListItem },
	{ "PyDict_New", &py.DictNew },
	{ "PyDict_SetItem", &py.DictSet },
	{ "PyDict_Values", &py.DictValues },
	{ "PyObject_Type", &py.Type },
	{ "PyType_IsSubtype", &py.IsSubtype },
	{ "PyObject_IsTrue", &py.IsTrue },
	{ "PyFloat_AsDouble", &py.AsDouble },
	{ "PyUnicode_AsUTF8AndSize", &py.AsText },
	{ "PyLong_AsVoidPtr", &py.AsPointer },
	{ "PyLong_FromLongLong", &py.FromLong },
	{ "PyUnicode_InternFromString", &py.FromText },
	{ "PyObject_GetAttr", &py.Attribute },
	{ "PyObject_SetAttr", &py.SetAttribute },
	{ "PyObject_SetItem", &py.SetItem },
	{ "PyObject_CallFunctionObjArgs", &py.Call },
	{ "PyObject_CallMethodObjArgs", &py.CallMethod },
	{ "PyCapsule_New", &py.CapsuleNew },
	{ "PyCapsule_GetPointer", &py.CapsulePointer },
	{ "PyCFunction_NewEx", &py.Callable },
	{ "Py_BuildValue", &py.BuildValue },
	{ "PyErr_Occurred", &py.Error },
	{ "PyErr_NoMemory", &py.NoMemory },
	{ "PyErr_ExceptionMatches", &py.IsError },
	{ "PyErr_Clear", &py.ErrorClear },
	{ "PyErr_Fetch", &py.ErrorFetch },
	{ "PyErr_NormalizeException", &py.ErrorNormalize },
	{ "Py_IncRef", &py.Keep },
	{ "Py_DecRef", &py.Forget },
	{ "_Py_NoneStruct", &py.none },
	{ "_Py_TrueStruct", &py.yes },
	{ "PyTuple_Type", &py.tuple_type },
	{ "PyList_Type", &py.list_type },
	{ "PyDict_Type", &py.dict_type },
	{ "PyExc_Exception", &py.exception },
};

bool find_functions(void)
{
	static bool is_found;

	is_found = is_found || !python_look_up(functions, sizeof functions / sizeof functions[0]);
	return is_found;
}

bool is_of(object *one, const object *type)
{
	object *its = py.Type(one);

	if (its)
		py.Forget(its);
	return its == type;
}

bool is_kind_of(object *one, object *type)
{
	OWNED its = py.Type(one);

	return its == type || py.IsSubtype(its, type);
}

int truth(object *owned)
{
	int is_true = owned ? owned == py.yes ? 1 : py.IsTrue(owned) : -1;

	forget(&owned);
	return is_true;
}

/* ---- Tables ---- */

static size_t slot_of(const struct map *map, const object *key)
{
	size_t slot = (size_t)((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (;; slot++) {
		const object *found = map->slots[slot & (map->n_slots - 1)].key;

		if (!found || found == key)
			return slot & (map->n_slots - 1);
	}
}

void *map_get(const struct map *map, const object *key)
{
	return map->n_slots > 0 ? map->slots[slot_of(map, key)].value : NULL;
}

static bool map_grow(struct map *map)
{
	struct map larger = { .n_slots = map->n_slots > 0 ? 2 * map->n_slots : 64, .n = map->n };

	if (2 * map->n < map->n_slots)
		return true;
	larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < map->n_slots; i++)
		if (map->slots[i].key)
			larger.slots[slot_of(&larger, map->slots[i].key)] = map->slots[i];
	free(map->slots);
	*map = larger;
	return true;
}

bool map_put(struct map *map, object *key, void *value)
{
	if (!map_grow(map))
		return false;
	map->slots[slot_of(map, key)] = (struct slot){ key, value };
	map->n++;
	return true;
}

void *map_remove(struct map *map, const object *key)
{
	size_t hole = map->n_slots > 0 ? slot_of(map, key) : 0, mask = map->n_slots - 1;
	void *value = map->n_slots > 0 ? map->slots[hole].value : NULL;

	if (map->n_slots == 0 || !map->slots[hole].key)
		return NULL;
	map->n--;
	map->slots[hole] = (struct slot){ 0 };
	for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
		struct slot moved = map->slots[i];

		map->slots[i] = (struct slot){ 0 };
		map->slots[slot_of(map, moved.key)] = moved;
	}
	return value;
}

bool objects_add(struct objects *objects, object *owned)
{
	if (objects->n == objects->allocated) {
		uint32_t n = objects->allocated > 0 ? 2 * objects->allocated : 4;
		object **larger = realloc(objects->items, n * sizeof *larger);

		if (!larger) {
			py.Forget(owned);
			return false;
		}
		objects->items = larger;
		objects->allocated = n;
	}
	objects->items[objects->n++] = owned;
	return true;
}

bool objects_has(const struct objects *objects, const object *one)
{
	for (uint32_t i = 0; i < objects->n; i++)
		if (objects->items[i] == one)
			return true;
	return false;
}

void objects_done(struct objects *objects)
{
	struct objects ended = *objects;

	*objects = (struct objects){ 0 };
	for (uint32_t i = 0; i < ended.n; i++)
		py.Forget(ended.items[i]);
	free(ended.items);
}
