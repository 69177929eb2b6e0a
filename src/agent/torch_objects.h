/* SPDX-License-Identifier: MIT */
/* torch_objects.h - what torch's hooks need of the interpreter, and tables of its objects. Private to torch*.c.
 *
 * All with the interpreter's lock. References are owned where a comment says so.
 */
#ifndef PROBING_AGENT_TORCH_OBJECTS_H
#define PROBING_AGENT_TORCH_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct object object; /* PyObject */

/* PyMethodDef, part of the stable ABI (PEP 384). */
struct method {
	const char *name;
	void *function; /* of the type that the flags say */
	int flags;
	const char *text;
};
enum { METHOD_ONE = 8, METHOD_NONE = 4, METHOD_FAST = 0x80 }; /* METH_O, METH_NOARGS, METH_FASTCALL */

/* Source: Doc/c-api of CPython 3.8 to 3.15. */
extern struct torch_python {
	ssize_t (*TupleSize)(object *);
	object *(*TupleItem)(object *, ssize_t);
	object *(*TuplePack)(ssize_t, ...);
	ssize_t (*ListSize)(object *);
	object *(*ListItem)(object *, ssize_t);
	object *(*DictNew)(void);
	int (*DictSet)(object *, object *, object *);
	object *(*DictValues)(object *);
	object *(*Type)(object *);
	int (*IsSubtype)(object *, object *);
	int (*IsTrue)(object *);
	double (*AsDouble)(object *);
	const char *(*AsText)(object *, ssize_t *);
	void *(*AsPointer)(object *);
	object *(*FromLong)(long long);
	object *(*FromText)(const char *);
	object *(*Attribute)(object *, object *);
	int (*SetAttribute)(object *, object *, object *);
	int (*SetItem)(object *, object *, object *);
	object *(*Call)(object *, ...);
	object *(*CallMethod)(object *, object *, ...);
	object *(*CapsuleNew)(void *, const char *, void (*)(object *));
	void *(*CapsulePointer)(object *, const char *);
	object *(*Callable)(struct method *, object *, object *);
	object *(*BuildValue)(const char *, ...);
	object *(*Error)(void);
	object *(*NoMemory)(void);
	int (*IsError)(object *);
	void (*ErrorClear)(void);
	void (*ErrorFetch)(object **, object **, object **);
	void (*ErrorNormalize)(object **, object **, object **);
	void (*Keep)(object *);
	void (*Forget)(object *);
	object *none, *yes, *tuple_type, *list_type, *dict_type;
	object **exception;
} py;

/* find_functions - look them up. False: the interpreter lacks one. */
bool find_functions(void);

static inline object *none(void)
{
	py.Keep(py.none);
	return py.none;
}

static inline object *keep(object *one)
{
	py.Keep(one);
	return one;
}

static inline void forget(object **pointer)
{
	if (*pointer)
		py.Forget(*pointer);
}
#define OWNED __attribute__((cleanup(forget))) object *

static inline void replace(object **pointer, object *owned)
{
	object *old = *pointer;

	*pointer = owned;
	forget(&old);
}

/* is_of - whether its type is this one, and no subclass of it. */
bool is_of(object *one, const object *type);

/* is_kind_of - by its type alone: isinstance() asks for __class__, which runs code of proxies, and raises where what they
 * stand for is dead. */
bool is_kind_of(object *one, object *type);

/* truth - of an object that it takes: 1, 0; negative: an exception, also for NULL. */
int truth(object *owned);

struct slot {
	object *key; /* NULL: empty */
	void *value;
};

struct map {
	struct slot *slots;
	size_t n_slots, n; /* n_slots: a power of two, a half of them empty; or 0 */
};

/*
 * map_get - NULL: it is not there.
 * map_put - a key that is not in it; neither is kept. False: no memory.
 * map_remove - returns its value; NULL: it is not there.
 */
void *map_get(const struct map *map, const object *key);
bool map_put(struct map *map, object *key, void *value);
void *map_remove(struct map *map, const object *key);

/* A list of owned objects. */
struct objects {
	object **items;
	uint32_t n, allocated;
};

/*
 * objects_add - takes the reference, also where there is no memory (false).
 * objects_done - ends all references, and the list: it is empty before the first one ends.
 */
bool objects_add(struct objects *objects, object *owned);
bool objects_has(const struct objects *objects, const object *one);
void objects_done(struct objects *objects);

#endif
