/* SPDX-License-Identifier: MIT */
/* object.h - readers of the target's objects. Private.
 *
 * They execute nothing there, and trust nothing: a list's end, a dict's size, an object's
 * type may change between two reads, or be invalid. A torn object causes an error
 * or wrong values, never more reads than the bounds here.
 * Addresses are those of objects, without tags. Errors throughout: -EFAULT unreadable
 * memory; -EBADMSG no such object there.
 */
#ifndef PROBING_OBJECT_H
#define PROBING_OBJECT_H

#include "unwind/cpython/reader.h"

/* tp_flags that mean the same in all releases that have them (Include/object.h, 2.7 to 3.15). */
enum {
	TYPE_INLINE_VALUES = 1u << 2,
	TYPE_MANAGED_DICT = 1u << 4,
	TYPE_HEAP = 1u << 9, /* made while running: by a class statement, or by C code as such */
	TYPE_INT = 1u << 23, /* 2.7 */
	TYPE_LONG = 1u << 24,
	TYPE_LIST = 1u << 25,
	TYPE_TUPLE = 1u << 26,
	TYPE_BYTES = 1u << 27,
	TYPE_UNICODE = 1u << 28,
	TYPE_DICTIONARY = 1u << 29,
	TYPE_EXCEPTION = 1u << 30,
	TYPE_TYPE = 1u << 31,
};

enum { TYPE_MAX_BASES = 64, OBJECT_DIGIT_BITS = 30 /* of an int, where pointers are 64 bits wide */ };

/* object_type_at - a type object. object_type_of - the one that an object has. */
int object_type_at(struct py_runtime *runtime, uint64_t address, struct object_type *ret);
int object_type_of(struct py_runtime *runtime, uint64_t object, struct object_type *ret);

/* Whether a type, or one that it is derived from, has that name; the first one with it in @ret, unless NULL. */
bool object_is_a(struct py_runtime *runtime, const struct object_type *type, const char *name, struct object_type *ret);

/* How many digits an int has (a long, where some are machine words), and whether it is negative. */
int object_int_size(struct py_runtime *runtime, uint64_t object, uint64_t *ret_digits, bool *ret_negative);

/* An int of at most 60 bits. -ERANGE: of more. */
int object_int(struct py_runtime *runtime, uint64_t object, int64_t *ret);

/* Number of items, of objects that have some; never negative. */
int object_size(struct py_runtime *runtime, uint64_t object, uint64_t *ret);

/* A word of an object, or of anything else. */
int object_word(struct py_runtime *runtime, uint64_t address, uint64_t *ret);

/* Whether an object is a str (2.7: or bytes) of exactly this ASCII text. */
bool object_string_is(struct py_runtime *runtime, uint64_t object, const char *text);

/* A C string, truncated to n_bytes. */
void object_c_string(struct py_runtime *runtime, uint64_t address, char *to, size_t n_bytes);

/*
 * object_text - the characters of a str, bytes or unicode.
 * @type:       its type; has one of TYPE_UNICODE and TYPE_BYTES.
 * @max:        how many there is room for.
 * @ret_length: how many it has.
 * Returns how many were read.
 */
int object_text(struct py_runtime *runtime, uint64_t object, const struct object_type *type, uint32_t *characters,
		size_t max, uint64_t *ret_length);

/* A dict's entries, or an instance's attributes, one after the other: in insertion order, up to 3.5 in
 * hash table order. */
enum { DICT_MAX_ENTRIES = 1 << 22 };

struct dict_walk {
	uint64_t entries; /* the first */
	uint64_t values;  /* address of separate values; 0: with the keys */
	uint64_t n, at;   /* DICT_MAX_ENTRIES at most */
	uint32_t entry_bytes, key_offset;
};

/*
 * object_dict_walk - start at a dict's first entry.
 * object_attributes_walk - start at the first entry of an instance's __dict__, in any representation; the walk
 *                          is empty for an object without one.
 * A walk holds no resources: it may stop anywhere.
 */
int object_dict_walk(struct py_runtime *runtime, uint64_t dict, struct dict_walk *ret);
int object_attributes_walk(struct py_runtime *runtime, uint64_t object, struct dict_walk *ret);
/* The same for keys as dicts and types have them. @values: address of separate values; 0: with the keys. */
int object_keys_walk(struct py_runtime *runtime, uint64_t keys, uint64_t values, struct dict_walk *ret);

/* The next entry. 1: there was one; 0: no more. */
int object_dict_next(struct py_runtime *runtime, struct dict_walk *walk, uint64_t *ret_key, uint64_t *ret_value);

/* Number of entries of a dict, of a set or frozenset. */
int object_dict_size(struct py_runtime *runtime, uint64_t dict, uint64_t *ret);
int object_set_size(struct py_runtime *runtime, uint64_t set, uint64_t *ret);

/* A dict's value under an ASCII str; an instance's own attribute (no class attribute, no slot; among the first
 * ATTRIBUTE_MAX). -ENOENT. */
enum { ATTRIBUTE_MAX = 4096 };
int object_dict_find(struct py_runtime *runtime, uint64_t dict, const char *key, uint64_t *ret);
/* The same, limited to the first max entries. */
int object_dict_find_among(struct py_runtime *runtime, uint64_t dict, const char *key, uint64_t max, uint64_t *ret);
int object_attribute(struct py_runtime *runtime, uint64_t object, const char *name, uint64_t *ret);

/* Items of a list, tuple, set or frozenset, one after the other. */
enum { ITEMS_MAX = 1 << 22 };

struct item_walk {
	uint64_t items; /* the first slot */
	uint64_t n, at; /* ITEMS_MAX at most */
	uint32_t slot_bytes;
	bool is_set; /* slots are an entry of a hash table: with a hash, used or not */
};

int object_list_walk(struct py_runtime *runtime, uint64_t list, struct item_walk *ret);
int object_tuple_walk(struct py_runtime *runtime, uint64_t tuple, struct item_walk *ret);
int object_set_walk(struct py_runtime *runtime, uint64_t set, struct item_walk *ret);
/* The next item. 1: there was one; 0: no more. */
int object_item_next(struct py_runtime *runtime, struct item_walk *walk, uint64_t *ret);

/* The referent of a weak reference. -ENOENT: it has been freed. */
int object_weakref_target(struct py_runtime *runtime, uint64_t reference, uint64_t *ret);

/*
 * object_module_dict - the names of a module that has been imported.
 * @interpreter: in which; reader_interpreters() has the first.
 * Errors: -ENOENT it has not been.
 */
int object_module_dict(struct py_runtime *runtime, uint64_t interpreter, const char *name, uint64_t *ret);

#endif
