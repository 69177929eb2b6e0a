/* SPDX-License-Identifier: MIT */
/* python_types.h - recognise CPython's static structures in an image.
 *
 * Layouts are those of 64-bit CPython 3, with or without a GIL. Each function
 * examines one address; a structure counts only if every field is plausible.
 */
#ifndef PROBING_SYMBOLIZE_PYTHON_TYPES_H
#define PROBING_SYMBOLIZE_PYTHON_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/image.h"

enum {
	METHOD_DEF_BYTES = 32,
	METHOD_DEF_FUNCTION = 8, /* offset of ml_meth */
	GETSET_DEF_BYTES = 40,
	TYPE_SLOT_BYTES = 16,
	FOUND_MAX_BASIC_BYTES = 1 << 20, /* size of a type's objects */
	FOUND_MAX_SLOT_OFFSET = 2048,
};

struct found_method {
	const char *name;
	uint64_t function; /* 0: code stores it when the module is loaded */
	bool is_static;    /* METH_STATIC: takes no object of its class */
};

/*
 * may_be_free_threaded - whether a static object without a GIL, whose first word is 0, may have these two words next.
 * Source: PyObject_HEAD_INIT of Include/object.h, 3.13 to 3.15.
 */
static inline bool may_be_free_threaded(uint64_t second, uint64_t third)
{
	return second >> 32 == UINT32_MAX && third == 0;
}

/* PyMethodDef {ml_name, ml_meth, ml_flags, ml_doc} */
bool find_method_def(const struct image *image, uint64_t address, struct found_method *ret);

/* PyGetSetDef {name, get, set, doc, closure}: the getter. False also at the end of an array. */
bool find_getset_def(const struct image *image, uint64_t address, struct found_method *ret);

/* struct wrapperbase, an entry of the interpreter's table of slots: "__call__", slot_tp_call,
 * wrap_call. */
struct found_wrapper {
	const char *name;
	uint64_t function, wrapper; /* wrapper 0: none here */
};
bool find_wrapper(const struct image *image, uint64_t address, struct found_wrapper *ret);

/* PyModuleDef, where it has methods. */
struct found_module {
	const char *name;
	uint64_t methods;
};
bool find_module_def(const struct image *image, uint64_t address, struct found_module *ret);

/* PyTypeObject. In a free-threaded build its head is longer: address is where the offsets of others are valid. */
struct found_type {
	const char *name;
	uint64_t address, flags, methods, getset; /* pointers 0: none */
};
bool find_type(const struct image *image, uint64_t address, struct found_type *ret);

/* PyType_Spec and its array of PyType_Slot */
struct found_spec {
	const char *name;
	uint64_t slots;
};
bool find_spec(const struct image *image, uint64_t address, struct found_spec *ret);

/* One PyType_Slot; false at the array's end and where there is none. */
bool find_spec_slot(const struct image *image, uint64_t address, uint64_t *ret_id, uint64_t *ret_value);

#endif
