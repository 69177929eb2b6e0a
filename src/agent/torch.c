/* SPDX-License-Identifier: MIT */
/* torch.c - see torch.h.
 *
 * A call is one forward pass of a module, and its backward pass. It refers to no node of the graph: hooks of nodes refer to
 * it. While the outermost pass of a thread goes on, the thread knows for each node which call's output it is (owners), and
 * for each call that has returned from which nodes its inputs came (entries): so the graph of a module's pass need not be
 * walked through the modules in it. What is the exception rather than the rule (names, steps, the GPU) is Python's.
 *
 * Whatever is called here may run code of the program, which may call a module: after each call into the interpreter, the
 * thread's tables may be others.
 */
#include "src/agent/torch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "src/agent/python.h"
#include "src/agent/rows.h"
#include "src/agent/trace.h"
#include "src/ring/ring.h"

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
static struct {
	ssize_t (*TupleSize)(object *);
	object *(*TupleItem)(object *, ssize_t);
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

static const struct python_name functions[] = {
	{ "PyTuple_Size", &py.TupleSize },
	{ "PyTuple_GetItem", &py.TupleItem },
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

static bool find_functions(void)
{
	static bool is_found;

	is_found = is_found || !python_look_up(functions, sizeof functions / sizeof functions[0]);
	return is_found;
}

static object *none(void)
{
	py.Keep(py.none);
	return py.none;
}

static object *keep(object *one)
{
	py.Keep(one);
	return one;
}

static void forget(object **pointer)
{
	if (*pointer)
		py.Forget(*pointer);
}
#define OWNED __attribute__((cleanup(forget))) object *

static void replace(object **pointer, object *owned)
{
	object *old = *pointer;

	*pointer = owned;
	forget(&old);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* ---- Tables of objects ---- */

struct slot {
	object *key; /* NULL: empty */
	void *value;
};

struct map {
	struct slot *slots;
	size_t n_slots, n; /* n_slots: a power of two, a half of them empty; or 0 */
};

static size_t slot_of(const struct map *map, const object *key)
{
	size_t slot = (size_t)((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (;; slot++) {
		const object *found = map->slots[slot & (map->n_slots - 1)].key;

		if (!found || found == key)
			return slot & (map->n_slots - 1);
	}
}

static void *map_get(const struct map *map, const object *key)
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

/* A key that is not in it. False: no memory. */
static bool map_put(struct map *map, object *key, void *value)
{
	if (!map_grow(map))
		return false;
	map->slots[slot_of(map, key)] = (struct slot){ key, value };
	map->n++;
	return true;
}

/* Returns its value; NULL: it is not there. */
static void *map_remove(struct map *map, const object *key)
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

/* A list of owned objects. */
struct objects {
	object **items;
	uint32_t n, allocated;
};

/* Takes the reference, also where there is no memory. */
static bool objects_add(struct objects *objects, object *owned)
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

static bool objects_has(const struct objects *objects, const object *one)
{
	for (uint32_t i = 0; i < objects->n; i++)
		if (objects->items[i] == one)
			return true;
	return false;
}

static void objects_done(struct objects *objects)
{
	struct objects ended = *objects;

	*objects = (struct objects){ 0 };
	for (uint32_t i = 0; i < ended.n; i++)
		py.Forget(ended.items[i]);
	free(ended.items);
}

/* ---- Modules and calls ---- */

enum { MAX_WAY = 8, MAX_NODES = 4096 /* that are looked at for the end of one module's backward pass */ };

struct known {
	uint32_t n_refs;
	bool is_root;
	uint64_t number;
	object *name_text, *class_text; /* owned; what follows are their bytes */
	const char *name, *class;
	size_t n_name, n_class;
	/* Where its one last node is: types of the output's node and of that one, owned, and indexes of the way. */
	object *end_from, *end_to;
	uint8_t n_way, way[MAX_WAY];
};

struct calls {
	struct call **items;
	uint32_t n, allocated;
};

struct call {
	uint32_t n_refs;
	struct known *known;
	const object *module;                 /* of a pass that goes on; its caller owns it */
	uint64_t began_ns, backward_began_ns; /* backward: 0: it does not go on */
	uint64_t visited_ns;                  /* by the hook of that time */
	int64_t seq, backward_seq;
	object *event, *backward_event; /* owned; NULL: not on the GPU */
	object *capsule;                /* of its hooks: not owned, there is a capsule as long as it has a reference */
	bool is_watched, is_on_gpu;
	uint32_t first, index; /* numbers of its first inner call that has returned, and its own */
	uint32_t n_ends, waits_for;
	struct objects inputs;             /* nodes; py.none where an input has none */
	struct calls same_start, same_end; /* outer ones, whose backward pass begins or ends with this one's */
};

static void known_drop(struct known *known)
{
	if (__atomic_sub_fetch(&known->n_refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	forget(&known->name_text);
	forget(&known->class_text);
	forget(&known->end_from);
	forget(&known->end_to);
	free(known);
}

static struct call *call_keep(struct call *call)
{
	__atomic_add_fetch(&call->n_refs, 1, __ATOMIC_RELAXED);
	return call;
}

static void call_drop(struct call *call);

static void calls_done(struct calls *calls)
{
	for (uint32_t i = 0; i < calls->n; i++)
		call_drop(calls->items[i]);
	free(calls->items);
}

static void call_drop(struct call *call)
{
	if (__atomic_sub_fetch(&call->n_refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	known_drop(call->known);
	forget(&call->event);
	forget(&call->backward_event);
	objects_done(&call->inputs);
	calls_done(&call->same_start);
	calls_done(&call->same_end);
	free(call);
}

static void call_dropp(struct call **call)
{
	if (*call)
		call_drop(*call);
}
#define OWNED_CALL __attribute__((cleanup(call_dropp))) struct call *

/* Adds a reference of its own. */
static bool calls_add(struct calls *calls, struct call *call)
{
	if (calls->n == calls->allocated) {
		uint32_t n = calls->allocated > 0 ? 2 * calls->allocated : 2;
		struct call **larger = realloc(calls->items, n * sizeof *larger);

		if (!larger)
			return false;
		calls->items = larger;
		calls->allocated = n;
	}
	calls->items[calls->n++] = call_keep(call);
	return true;
}

/* ---- What is traced ---- */

enum { COLUMNS = 18 };

static struct {
	bool is_on, has_backward;
	object *trace, *local, *is_grad_enabled, *is_tracing, *tensor, *accumulate, *dummy, *append, *cuda; /* owned */
	struct rows_table *table; /* of append */
	struct ring_value step, local_step, global_step, rank;
	double step_began, layer_rate;
	int64_t seq;
	struct {
		object *identify, *begin_outermost, *is_outermost, *end_inference, *fail, *state, *grad_fn,
			*next_functions, *register_hook, *register_prehook, *register_hook_dict, *backward_hooks,
			*record, *end, *end_backward, *zero;
	} names; /* owned, once */
} to;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the table below; the interpreter is not called with it */
static struct map modules;                               /* module: its struct known; keys are not owned */

/* With a reference; NULL: it is not known. */
static struct known *find_known(const object *module)
{
	struct known *known;

	pthread_mutex_lock(&lock);
	known = map_get(&modules, module);
	if (known)
		__atomic_add_fetch(&known->n_refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return known;
}

static int64_t next_seq(void)
{
	return __atomic_fetch_add(&to.seq, 1, __ATOMIC_RELAXED);
}

static void append_row(const struct known *known, const char *stage, size_t n_stage, int64_t seq, uint64_t began_ns,
		       uint64_t ended_ns)
{
	double began = seconds(began_ns), duration = (double)(ended_ns - began_ns) / 1e9;
	const struct ring_value missing = { .kind = RING_NULL };
	const struct ring_value values[COLUMNS] = {
		to.step,
		{ .kind = RING_IS_INTEGER, .integer = seq },
		{ .kind = RING_IS_TEXT, .text = known->name, .n_text = known->n_name },
		{ .kind = RING_IS_TEXT, .text = stage, .n_text = n_stage },
		missing,
		missing,
		missing,
		missing,
		{ .kind = RING_IS_REAL, .real = began - to.step_began },
		{ .kind = RING_IS_REAL, .real = duration },
		{ .kind = RING_IS_TEXT, .text = known->class, .n_text = known->n_class },
		{ .kind = RING_IS_REAL, .real = duration * 1e3 },
		to.local_step,
		to.global_step,
		to.rank,
		{ .kind = RING_IS_INTEGER, .integer = trace_thread_id() },
		{ .kind = RING_IS_REAL, .real = began },
		{ .kind = RING_IS_REAL, .real = duration * 1e3 },
	};

	if (to.is_on && to.table)
		rows_append(to.table, ended_ns, values);
}

/* An exception of ours: trace.fail() says it, and ends tracing. NULL: it is one of the program's (KeyboardInterrupt). */
static object *fail(void)
{
	object *type, *value, *where, *told;

	if (!py.Error())
		(void)py.NoMemory();
	if (!py.IsError(*py.exception))
		return NULL;
	py.ErrorFetch(&type, &value, &where);
	py.ErrorNormalize(&type, &value, &where);
	to.is_on = false;
	told = py.CallMethod(to.trace, to.names.fail, value ? value : py.none, where ? where : py.none, NULL);
	if (!told)
		py.ErrorClear();
	forget(&told);
	forget(&type);
	forget(&value);
	forget(&where);
	return none();
}

static object *answer(bool is_done)
{
	return is_done ? none() : fail();
}

/* 1, 0; negative: an exception. */
static int truth(object *owned)
{
	int is_true = owned ? owned == py.yes ? 1 : py.IsTrue(owned) : -1;

	forget(&owned);
	return is_true;
}

/* ---- A thread ---- */

struct thread {
	struct calls stack;                       /* the calls that it is in */
	struct map owners;                        /* node, owned: the innermost call whose output it made, owned */
	struct objects *entries;                  /* by a call's index: nodes of its inputs */
	uint32_t n_calls, n_entries, n_allocated; /* n_calls: that have returned */
	uint32_t n_past; /* calls that have no entry any more: the first entry is of that index */
	object *dummy;   /* owned */
	struct thread *next;
};

static __thread struct thread *own;
static struct thread *threads; /* all of them; with the lock */

/* Nodes that are kept keep what they have saved for the backward pass. Calls that go on keep their numbers. */
static void clear_graph(struct thread *thread)
{
	struct thread ended = *thread;

	thread->owners = (struct map){ 0 };
	thread->entries = NULL;
	thread->n_entries = thread->n_allocated = 0;
	thread->n_calls = thread->n_past = thread->stack.n > 0 ? thread->n_calls : 0;
	for (size_t i = 0; i < ended.owners.n_slots; i++)
		if (ended.owners.slots[i].key) {
			call_drop(ended.owners.slots[i].value);
			py.Forget(ended.owners.slots[i].key);
		}
	free(ended.owners.slots);
	for (uint32_t i = 0; i < ended.n_entries; i++)
		objects_done(&ended.entries[i]);
	free(ended.entries);
}

static void clear(struct thread *thread)
{
	struct calls left = thread->stack;

	thread->stack = (struct calls){ 0 };
	calls_done(&left);
	clear_graph(thread);
}

/* The interpreter ends the thread's values of to.local. */
static void end_thread(object *capsule)
{
	struct thread *thread = py.CapsulePointer(capsule, NULL);

	if (own == thread)
		own = NULL;
	pthread_mutex_lock(&lock);
	for (struct thread **at = &threads; *at; at = &(*at)->next)
		if (*at == thread) {
			*at = thread->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	clear(thread);
	forget(&thread->dummy);
	free(thread->stack.items);
	free(thread);
}

/* NULL: an exception. */
static struct thread *get_thread(void)
{
	struct thread *made;
	object *capsule;

	if (own)
		return own;
	made = calloc(1, sizeof *made);
	capsule = made ? py.CapsuleNew(made, NULL, end_thread) : NULL;
	if (!capsule) {
		free(made);
		return NULL;
	}
	own = made;
	pthread_mutex_lock(&lock);
	made->next = threads;
	threads = made;
	pthread_mutex_unlock(&lock);
	if (py.SetAttribute(to.local, to.names.state, capsule) < 0)
		made = NULL; /* it ends with the capsule */
	py.Forget(capsule);
	return made;
}

static struct objects *entry_of(struct thread *thread, uint32_t index)
{
	uint32_t at = index - thread->n_past;

	return index >= thread->n_past && at < thread->n_entries ? &thread->entries[at] : NULL;
}

/* Takes @nodes, also where there is no memory. */
static bool put_entry(struct thread *thread, uint32_t index, struct objects *nodes)
{
	uint32_t at = index - thread->n_past;

	if (index < thread->n_past) { /* the graph has been cleared since it returned */
		objects_done(nodes);
		return true;
	}
	if (at >= thread->n_allocated) {
		uint32_t n = (at + 32) * 2;
		struct objects *larger = realloc(thread->entries, n * sizeof *larger);

		if (!larger) {
			objects_done(nodes);
			return false;
		}
		thread->entries = larger;
		thread->n_allocated = n;
	}
	while (thread->n_entries <= at)
		thread->entries[thread->n_entries++] = (struct objects){ 0 };
	thread->entries[at] = *nodes;
	*nodes = (struct objects){ 0 };
	return true;
}

/* ---- The backward pass ---- */

/* *ret: an event of now, owned, or NULL: there is no GPU, or a graph is being captured. */
static bool record(object **ret)
{
	*ret = to.cuda ? py.CallMethod(to.cuda, to.names.record, NULL) : NULL;
	if (*ret == py.none)
		replace(ret, NULL);
	return *ret || !to.cuda || !py.Error();
}

static bool begin_backward(struct call *call, uint64_t now)
{
	if (call->visited_ns == now) /* of nested modules that pass all outputs on, n have 2^n ways */
		return true;
	call->visited_ns = now;
	if (call->backward_began_ns == 0) {
		call->backward_began_ns = now;
		call->backward_seq = next_seq();
		if (call->is_on_gpu && !record(&call->backward_event))
			return false;
	}
	for (uint32_t i = 0; i < call->same_start.n; i++)
		if (!begin_backward(call->same_start.items[i], now))
			return false;
	return true;
}

static object *gpu_arguments(const struct call *call, object *event, int64_t seq, uint64_t began_ns, uint64_t now)
{
	return py.BuildValue("(OLOOdd)", event, (long long)seq, call->known->name_text, call->known->class_text,
			     seconds(began_ns), seconds(now));
}

static bool end_own_backward(struct call *call, uint64_t now)
{
	OWNED event = call->backward_event;
	OWNED arguments = NULL;
	OWNED done = NULL;

	call->backward_event = NULL;
	if (!event || !to.cuda) {
		append_row(call->known, "backward", 8, call->backward_seq, call->backward_began_ns, now);
		return true;
	}
	arguments = gpu_arguments(call, event, call->backward_seq, call->backward_began_ns, now);
	done = arguments ? py.CallMethod(to.cuda, to.names.end_backward, arguments, NULL) : NULL;
	return done != NULL;
}

static bool end_backward(struct call *call, uint64_t now)
{
	if (--call->waits_for > 0)
		return true;
	call->waits_for = call->n_ends; /* for a second pass through a graph that is retained */
	if (call->backward_began_ns != 0) {
		bool is_done = end_own_backward(call, now);

		call->backward_began_ns = 0;
		if (!is_done)
			return false;
	}
	for (uint32_t i = 0; i < call->same_end.n; i++)
		if (!end_backward(call->same_end.items[i], now))
			return false;
	return true;
}

static object *start_hook(object *self, object *gradients)
{
	(void)gradients;
	return to.is_on ? answer(begin_backward(py.CapsulePointer(self, NULL), now_ns())) : none();
}

static object *end_hook(object *self, object *const *arguments, ssize_t n)
{
	(void)arguments;
	(void)n;
	return to.is_on ? answer(end_backward(py.CapsulePointer(self, NULL), now_ns())) : none();
}

static struct method start_method = { "begin_backward", start_hook, METHOD_ONE, NULL };
static struct method end_method = { "end_backward", end_hook, METHOD_FAST, NULL };

static void end_hooks(object *capsule)
{
	struct call *call = py.CapsulePointer(capsule, NULL);

	call->capsule = NULL;
	call_drop(call);
}

/* A new reference. All hooks of a call share one capsule. */
static object *make_hook(struct call *call, struct method *method)
{
	OWNED capsule = call->capsule ? keep(call->capsule) : py.CapsuleNew(call, NULL, end_hooks);

	if (!capsule)
		return NULL;
	if (!call->capsule) {
		(void)call_keep(call);
		call->capsule = capsule;
	}
	return py.Callable(method, capsule, NULL);
}

/* A hook before the node. Before torch 2.0 it takes one only from a tensor, which is one of ours here: the program's keeps
 * none. */
static bool hook_before(struct thread *thread, object *node, struct call *call)
{
	OWNED hook = make_hook(call, &start_method);
	OWNED hooks = NULL;
	OWNED done = NULL;

	if (!hook)
		return false;
	if (to.dummy == py.none) {
		done = py.CallMethod(node, to.names.register_prehook, hook, NULL);
		return done != NULL;
	}
	if (!thread->dummy)
		thread->dummy = py.Call(to.dummy, NULL);
	hooks = thread->dummy ? py.DictNew() : NULL;
	if (!hooks || py.DictSet(hooks, to.names.zero, hook) < 0 ||
	    py.SetAttribute(thread->dummy, to.names.backward_hooks, hooks) < 0)
		return false;
	done = py.CallMethod(node, to.names.register_hook_dict, thread->dummy, NULL);
	return done != NULL;
}

static bool hook_after(object *node, struct call *call)
{
	OWNED hook = make_hook(call, &end_method);
	OWNED done = hook ? py.CallMethod(node, to.names.register_hook, hook, NULL) : NULL;

	return done != NULL;
}

/* ---- Where it ends ---- */

static bool is_of(object *one, const object *type)
{
	object *its = py.Type(one);

	if (its)
		py.Forget(its);
	return its == type;
}

/* By its type alone: isinstance() asks for __class__, which runs code of proxies, and raises where what they stand for is dead. */
static bool is_kind_of(object *one, object *type)
{
	OWNED its = py.Type(one);

	return its == type || py.IsSubtype(its, type);
}

/* A node's way on, a new reference: NULL with no error: there is none. */
static object *next_node(object *node, ssize_t at)
{
	OWNED nexts = py.Attribute(node, to.names.next_functions);
	object *pair = nexts && at < py.TupleSize(nexts) ? py.TupleItem(nexts, at) : NULL;
	object *next = pair ? py.TupleItem(pair, 0) : NULL;

	return next && next != py.none ? keep(next) : NULL; /* None: that input needs no gradient */
}

/* Of a module without modules in it: its last node is where it was in an earlier call, if the nodes have its types.
 * A new reference; NULL, without an error: it is not. */
static object *find_end_again(const struct call *call, const struct objects *nodes)
{
	const struct known *known = call->known;
	object *node;

	if (!known->end_from || nodes->n != 1 || !is_of(nodes->items[0], known->end_from))
		return NULL;
	node = keep(nodes->items[0]);
	for (uint8_t i = 0; i < known->n_way && node; i++)
		replace(&node, next_node(node, known->way[i]));
	if (node && is_of(node, known->end_to))
		return node;
	forget(&node);
	return NULL;
}

/* A node, or a call that has returned, on the way from a module's output to its inputs. */
struct place {
	object *node;      /* owned */
	struct call *call; /* owned; NULL: it is the node itself */
};

struct walk {
	struct thread *thread;
	struct call *call;
	struct map seen;      /* node: its number in nodes, + 1 */
	struct objects nodes; /* that were seen; those from n_done on are still to be looked at, the last one first */
	struct step {
		uint32_t from, at; /* the number of the node that led to it, and as which of its next ones */
	} * steps;
	uint32_t n_steps, *todo, n_todo, n_allocated;
	struct place *ends, *deepest;
	uint32_t n_ends, n_deepest, ends_allocated, deepest_allocated;
	struct objects outside;
};

static void places_done(struct place *places, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		py.Forget(places[i].node);
		call_dropp(&places[i].call);
	}
	free(places);
}

static void walk_done(struct walk *walk)
{
	free(walk->seen.slots);
	objects_done(&walk->nodes);
	free(walk->steps);
	free(walk->todo);
	places_done(walk->ends, walk->n_ends);
	places_done(walk->deepest, walk->n_deepest);
	objects_done(&walk->outside);
}

static bool add_place(struct place **places, uint32_t *n, uint32_t *allocated, object *node, struct call *call)
{
	if (*n == *allocated) {
		uint32_t more = *allocated > 0 ? 2 * *allocated : 4;
		struct place *larger = realloc(*places, more * sizeof *larger);

		if (!larger)
			return false;
		*places = larger;
		*allocated = more;
	}
	(*places)[(*n)++] = (struct place){ keep(node), call ? call_keep(call) : NULL };
	return true;
}

static bool add_seen(struct walk *walk, object *node, uint32_t from, uint32_t at)
{
	uint32_t number = walk->nodes.n;

	if (number == walk->n_allocated) {
		uint32_t n = number > 0 ? 2 * number : 16;
		struct step *steps = realloc(walk->steps, n * sizeof *steps);
		uint32_t *todo = steps ? realloc(walk->todo, n * sizeof *todo) : NULL;

		walk->steps = steps ? steps : walk->steps;
		walk->todo = todo ? todo : walk->todo;
		if (!steps || !todo)
			return false;
		walk->n_allocated = n;
	}
	if (!objects_add(&walk->nodes, keep(node)) || !map_put(&walk->seen, node, (void *)(uintptr_t)(number + 1)))
		return false;
	walk->steps[number] = (struct step){ from, at };
	walk->todo[walk->n_todo++] = number;
	return true;
}

struct ways {
	bool lead_on, lead_out;
};

static bool look_at_next(struct walk *walk, object *next, uint32_t from, uint32_t at, struct ways *ways)
{
	const struct call *its, *call = walk->call;

	if (next == py.none || is_of(next, to.accumulate))
		return true;
	its = map_get(&walk->thread->owners, next);
	if (objects_has(&call->inputs, next) || (its && its->index < call->first)) {
		ways->lead_out = true;
		return objects_add(&walk->outside, keep(next));
	}
	ways->lead_on = true;
	return map_get(&walk->seen, next) || add_seen(walk, next, from, at);
}

/* The nodes, owned, that follow a node, or the call that it is the output of, which *ret_call gets with a reference. */
static bool nexts_of(struct walk *walk, object *node, struct objects *ret, struct call **ret_call)
{
	struct call *owner = map_get(&walk->thread->owners, node), *call = walk->call;
	const struct objects *entry = owner && owner != call && owner->index >= call->first
					      ? entry_of(walk->thread, owner->index)
					      : NULL;
	object *nexts;
	bool is_whole = true;

	if (entry && entry->allocated > 0) { /* it has been put */
		*ret_call = call_keep(owner);
		for (uint32_t i = 0; i < entry->n && is_whole; i++)
			is_whole = objects_add(ret, keep(entry->items[i]));
		return is_whole;
	}
	nexts = py.Attribute(node, to.names.next_functions);
	for (ssize_t i = 0, n = nexts ? py.TupleSize(nexts) : 0; i < n && is_whole; i++) {
		object *next = py.TupleItem(py.TupleItem(nexts, i), 0);

		is_whole = next && objects_add(ret, keep(next));
	}
	forget(&nexts);
	return is_whole && nexts;
}

static bool look_at(struct walk *walk, uint32_t number)
{
	object *node = walk->nodes.items[number];
	struct objects nexts = { 0 };
	struct ways ways = { false, false };
	OWNED_CALL call = NULL;
	bool is_whole = nexts_of(walk, node, &nexts, &call);

	for (uint32_t i = 0; i < nexts.n && is_whole; i++)
		is_whole = look_at_next(walk, nexts.items[i], number, i, &ways);
	objects_done(&nexts);
	if (is_whole && ways.lead_out)
		is_whole = add_place(&walk->ends, &walk->n_ends, &walk->ends_allocated, node, call);
	else if (is_whole && !ways.lead_on)
		is_whole = add_place(&walk->deepest, &walk->n_deepest, &walk->deepest_allocated, node, call);
	return is_whole;
}

/* The next call of the module finds its end at once, if it is a node that a short way leads to. */
static void learn_end(const struct walk *walk, const struct objects *outputs, const struct place *end)
{
	struct known *known = walk->call->known;
	uint32_t number = (uint32_t)(uintptr_t)map_get(&walk->seen, end->node) - 1;
	uint8_t way[MAX_WAY], n = 0;

	if (outputs->n != 1 || end->call)
		return;
	while (number != 0) {
		if (n == MAX_WAY || walk->steps[number].at > UINT8_MAX)
			return;
		way[n++] = (uint8_t)walk->steps[number].at;
		number = walk->steps[number].from;
	}
	for (uint8_t i = 0; i < n; i++)
		known->way[i] = way[n - 1 - i];
	known->n_way = n;
	replace(&known->end_from, py.Type(outputs->items[0]));
	replace(&known->end_to, py.Type(end->node));
}

static bool hook_end(struct call *call, const struct place *end)
{
	if (!end->call && !hook_after(end->node, call))
		return false;
	if (end->call && end->call->n_ends == 0)
		return true;
	if (end->call && !calls_add(&end->call->same_end, call))
		return false;
	call->n_ends++;
	return true;
}

/* The nodes, or calls of modules in it, that lead to its inputs; if none does, those that lead nowhere. */
static bool find_ends(struct thread *thread, struct call *call, const struct objects *outputs)
{
	__attribute__((cleanup(walk_done))) struct walk walk = { .thread = thread, .call = call };
	const struct place *ends;
	uint32_t n;

	for (uint32_t i = 0; i < outputs->n; i++)
		if (!add_seen(&walk, outputs->items[i], 0, 0))
			return false;
	for (int i = 0; i < MAX_NODES && walk.n_todo > 0; i++)
		if (!look_at(&walk, walk.todo[--walk.n_todo]))
			return false;
	/* An empty list has been put, too. */
	if (walk.outside.n == 0)
		walk.outside = (struct objects){ .items = calloc(1, sizeof(object *)), .allocated = 1 };
	if (!walk.outside.items || !put_entry(thread, call->index, &walk.outside))
		return false;
	ends = walk.n_ends > 0 ? walk.ends : walk.deepest;
	n = walk.n_ends > 0 ? walk.n_ends : walk.n_deepest;
	if (call->first == call->index && n == 1)
		learn_end(&walk, outputs, &ends[0]);
	for (uint32_t i = 0; i < n; i++)
		if (!hook_end(call, &ends[i]))
			return false;
	return true;
}

/* ---- The forward pass ---- */

enum { MAX_OWNERS = 1 << 14 }; /* of one outermost pass, which may last as long as the program */

static bool add_output(struct objects *nodes, const struct call *call, object *one)
{
	object *node;

	if (!is_kind_of(one, to.tensor))
		return true;
	node = py.Attribute(one, to.names.grad_fn);
	if (!node)
		return false;
	if (node != py.none && !objects_has(nodes, node) && !objects_has(&call->inputs, node))
		return objects_add(nodes, node);
	py.Forget(node);
	return true;
}

/* A new reference to the output's parts: a tuple or list; NULL: it is none, or an exception. */
static object *parts_of(object *output)
{
	if (is_kind_of(output, py.tuple_type) || is_kind_of(output, py.list_type))
		return keep(output);
	return is_kind_of(output, py.dict_type) ? py.DictValues(output) : NULL;
}

static bool nodes_of(const struct call *call, object *output, struct objects *ret)
{
	bool is_one = is_kind_of(output, to.tensor), is_whole = true;
	OWNED parts = is_one ? NULL : parts_of(output);
	bool is_tuple = parts && is_kind_of(parts, py.tuple_type);

	if (is_one)
		return add_output(ret, call, output);
	for (ssize_t i = 0; parts && is_whole && i < (is_tuple ? py.TupleSize(parts) : py.ListSize(parts)); i++) {
		OWNED part = keep(is_tuple ? py.TupleItem(parts, i) : py.ListItem(parts, i));

		is_whole = part && add_output(ret, call, part);
	}
	return is_whole && !py.Error();
}

/* Which outputs it has made, and not passed on: their nodes are the start of its backward pass. *ret: there is one. */
static bool hook_starts(struct thread *thread, struct call *call, const struct objects *nodes, bool *ret)
{
	*ret = false;
	for (uint32_t i = 0; i < nodes->n; i++) {
		object *node = nodes->items[i];
		struct call *owner = map_get(&thread->owners, node);

		if (!owner) {
			if (thread->owners.n >= MAX_OWNERS)
				clear_graph(thread);
			if (!map_put(&thread->owners, node, call))
				return false;
			py.Keep(node);
			(void)call_keep(call);
			if (!hook_before(thread, node, call))
				return false;
			*ret = true;
		} else if (owner->index >= call->first) {
			if (!calls_add(&owner->same_start, call))
				return false;
			*ret = true;
		}
	}
	return true;
}

static bool hook_ends(struct thread *thread, struct call *call, const struct objects *nodes)
{
	OWNED end = call->first == call->index ? find_end_again(call, nodes) : NULL;

	if (!end)
		return !py.Error() && find_ends(thread, call, nodes);
	if (call->inputs.n == 0)
		call->inputs = (struct objects){ .items = calloc(1, sizeof(object *)), .allocated = 1 };
	call->n_ends = 1;
	return call->inputs.items && put_entry(thread, call->index, &call->inputs) && hook_after(end, call);
}

/* Hooks for the backward pass of a call that has returned. */
static bool watch(struct thread *thread, struct call *call, object *output)
{
	struct objects nodes = { 0 };
	bool is_done = nodes_of(call, output, &nodes), begins = false;

	if (is_done && nodes.n > 0) {
		call->index = thread->n_calls++;
		is_done = hook_starts(thread, call, &nodes, &begins);
		if (is_done && begins)
			is_done = hook_ends(thread, call, &nodes);
		call->waits_for = call->n_ends;
	}
	objects_done(&nodes);
	objects_done(&call->inputs);
	return is_done;
}

static bool take_inputs(struct call *call, object *inputs)
{
	ssize_t n = is_kind_of(inputs, py.tuple_type) ? py.TupleSize(inputs) : 0;

	for (ssize_t i = 0; i < n; i++) {
		object *one = py.TupleItem(inputs, i), *node;

		if (!is_kind_of(one, to.tensor))
			continue;
		node = py.Attribute(one, to.names.grad_fn);
		if (!node || !objects_add(&call->inputs, node))
			return false;
	}
	call->is_watched = true;
	return true;
}

/* 0 to 1, as _hash() of _torch.py: the finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static double hash(uint64_t number)
{
	number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)(number ^ number >> 31) / 18446744073709551616.0;
}

static bool is_left_out(const struct known *known)
{
	uint64_t step = to.step.kind == RING_IS_INTEGER ? (uint64_t)to.step.integer : 0;

	return to.layer_rate < 1 && hash(known->number ^ step << 20) >= to.layer_rate;
}

/* 1: the pass that begins is traced; 0; negative: an exception. */
static int takes(struct thread *thread, const struct known *known, bool has_grad)
{
	int is_alone = thread->stack.n > 0 && known->is_root
			       ? truth(py.CallMethod(to.trace, to.names.is_outermost, NULL))
			       : 0;
	int is_taken = 1;
	object *tracing;

	if (is_alone < 0)
		return is_alone;
	if (is_alone > 0 || thread->stack.n == 0) {
		clear(thread); /* exceptions have left those on the stack */
		is_taken = truth(py.CallMethod(to.trace, to.names.begin_outermost, has_grad ? py.yes : py.none, NULL));
	}
	if (is_taken <= 0)
		return is_taken;
	tracing = py.Call(to.is_tracing, NULL);
	if (!tracing)
		return -1;
	is_taken = tracing == py.none && !is_left_out(known);
	py.Forget(tracing);
	return is_taken;
}

static struct call *new_call(const struct thread *thread, struct known *known, const object *module)
{
	struct call *call = calloc(1, sizeof *call);

	if (!call)
		return NULL;
	*call = (struct call){ .n_refs = 1,
			       .known = known,
			       .module = module,
			       .first = thread->n_calls,
			       .index = UINT32_MAX,
			       .seq = next_seq() };
	__atomic_add_fetch(&known->n_refs, 1, __ATOMIC_RELAXED);
	return call;
}

static bool begin_pass(struct thread *thread, struct known *known, object *module, object *inputs)
{
	int has_grad = truth(py.Call(to.is_grad_enabled, NULL));
	int is_taken = has_grad < 0 ? has_grad : takes(thread, known, has_grad);
	OWNED_CALL call = is_taken > 0 ? new_call(thread, known, module) : NULL;

	if (is_taken <= 0)
		return is_taken == 0;
	if (!call || (has_grad && to.has_backward && !take_inputs(call, inputs)) || !calls_add(&thread->stack, call))
		return false;
	if (!record(&call->event))
		return false;
	call->began_ns = now_ns();
	return true;
}

static struct known *identify(object *module)
{
	struct known *known = find_known(module);
	OWNED named = known ? NULL : py.CallMethod(to.trace, to.names.identify, module, NULL);

	return named && named != py.none ? find_known(module) : known;
}

static object *enter(object *self, object *const *arguments, ssize_t n)
{
	struct thread *thread;
	struct known *known;
	bool is_done;

	(void)self;
	if (!to.is_on || n < 2)
		return none();
	known = identify(arguments[0]);
	if (!known)
		return answer(!py.Error());
	thread = get_thread();
	is_done = thread && begin_pass(thread, known, arguments[0], arguments[1]);
	known_drop(known);
	return answer(is_done);
}

/* The call of a module, with the stack's reference: exceptions have left those above it. NULL: it is not there. */
static struct call *take_call(struct thread *thread, const object *module)
{
	struct calls *stack = &thread->stack;
	uint32_t i = stack->n;
	struct call *found;

	while (i > 0 && stack->items[i - 1]->module != module)
		i--;
	if (i == 0)
		return NULL;
	while (stack->n > i)
		call_drop(stack->items[--stack->n]);
	if (stack->n < i) /* another thread has ended tracing meanwhile */
		return NULL;
	found = stack->items[--stack->n];
	found->module = NULL;
	return found;
}

/* Whether the module has run on the GPU: 1, 0, negative: an exception. */
static int end_on_gpu(struct call *call, uint64_t now, object *output)
{
	OWNED event = call->event;
	OWNED arguments = event && to.cuda ? gpu_arguments(call, event, call->seq, call->began_ns, now) : NULL;

	call->event = NULL;
	if (!event || !to.cuda)
		return 0;
	return arguments ? truth(py.CallMethod(to.cuda, to.names.end, arguments, output, NULL)) : -1;
}

static bool end_pass(struct thread *thread, struct call *call, object *output, uint64_t now)
{
	int is_on_gpu = end_on_gpu(call, now, output);

	if (is_on_gpu < 0)
		return false;
	call->is_on_gpu = is_on_gpu > 0;
	if (!call->is_on_gpu)
		append_row(call->known, "forward", 7, call->seq, call->began_ns, now);
	if (call->is_watched && !watch(thread, call, output))
		return false;
	if (thread->stack.n > 0)
		return true;
	clear(thread);
	switch (truth(py.Call(to.is_grad_enabled, NULL))) {
	case 0: {
		OWNED done = py.CallMethod(to.trace, to.names.end_inference, NULL);

		return done != NULL;
	}
	case 1:
		return true;
	default:
		return false;
	}
}

static object *leave(object *self, object *const *arguments, ssize_t n)
{
	uint64_t now = now_ns();
	OWNED_CALL call = NULL;

	(void)self;
	if (!to.is_on || n < 3 || !own)
		return none();
	call = take_call(own, arguments[0]);
	return call ? answer(end_pass(own, call, arguments[2], now)) : none();
}

/* ---- The other builtins ---- */

static object *next_sequence(object *self, object *unused)
{
	(void)self;
	(void)unused;
	return py.FromLong(next_seq());
}

static object *clear_thread(object *self, object *unused)
{
	(void)self;
	(void)unused;
	if (own)
		clear(own);
	return none();
}

/* No hook will clear the threads' calls and graphs any more, nor free what their nodes have saved. Without the interpreter's
 * lock the others may be using theirs. */
static object *end(object *self, object *unused)
{
	struct thread *left;

	(void)self;
	(void)unused;
	to.is_on = false;
	if (own)
		clear(own);
	if (rows_is_free_threaded())
		return none();
	do {
		pthread_mutex_lock(&lock);
		left = threads;
		while (left && left->stack.n == 0 && left->owners.n == 0)
			left = left->next;
		pthread_mutex_unlock(&lock);
		if (left)
			clear(left);
	} while (left);
	return none();
}

static object *set_cuda(object *self, object *cuda)
{
	(void)self;
	replace(&to.cuda, cuda == py.none ? NULL : keep(cuda));
	return none();
}

static object *set_step(object *self, object *const *arguments, ssize_t n)
{
	struct ring_value *const numbers[] = { &to.step, &to.local_step, &to.global_step, &to.rank };

	(void)self;
	if (n < 8)
		return none();
	if (to.append != arguments[0]) {
		to.table = rows_table_of(arguments[0]);
		replace(&to.append, keep(arguments[0]));
	}
	if (own) /* a pass around the whole training keeps no step's graph */
		clear_graph(own);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (!rows_number(arguments[1 + i], numbers[i]))
			return NULL;
	to.step_began = py.AsDouble(arguments[5]);
	to.layer_rate = py.AsDouble(arguments[6]);
	to.has_backward = py.IsTrue(arguments[7]) > 0;
	__atomic_store_n(&to.seq, 0, __ATOMIC_RELAXED);
	return py.Error() ? NULL : none();
}

static object *know(object *self, object *const *arguments, ssize_t n)
{
	struct known *known = n < 5 ? NULL : calloc(1, sizeof *known), *old;
	ssize_t n_name = 0, n_class = 0;
	struct ring_value number = { 0 };
	bool is_put;

	(void)self;
	if (!known)
		return n < 5 ? none() : py.NoMemory();
	known->n_refs = 1;
	known->name_text = keep(arguments[2]);
	known->class_text = keep(arguments[3]);
	known->name = py.AsText(arguments[2], &n_name);
	known->class = py.AsText(arguments[3], &n_class);
	known->n_name = (size_t)n_name;
	known->n_class = (size_t)n_class;
	known->is_root = py.IsTrue(arguments[4]) > 0;
	if (!known->name || !known->class || !rows_number(arguments[1], &number)) {
		known_drop(known);
		return NULL;
	}
	known->number = (uint64_t)number.integer;
	pthread_mutex_lock(&lock);
	old = map_remove(&modules, arguments[0]);
	is_put = map_put(&modules, arguments[0], known);
	pthread_mutex_unlock(&lock);
	if (old)
		known_drop(old);
	if (is_put)
		return none();
	known_drop(known);
	return py.NoMemory();
}

static object *forget_module(object *self, object *address)
{
	const object *module = py.AsPointer(address);
	struct known *old;

	(void)self;
	if (!module)
		return py.Error() ? NULL : none();
	pthread_mutex_lock(&lock);
	old = map_remove(&modules, module);
	pthread_mutex_unlock(&lock);
	if (old)
		known_drop(old);
	return none();
}

static bool make_names(void)
{
	static const char *const words[] = { "identify",
					     "begin_outermost",
					     "is_outermost",
					     "end_inference",
					     "fail",
					     "state",
					     "grad_fn",
					     "next_functions",
					     "register_hook",
					     "register_prehook",
					     "_register_hook_dict",
					     "_backward_hooks",
					     "record",
					     "end",
					     "end_backward" };
	object **names = &to.names.identify;
	size_t n = sizeof words / sizeof words[0];

	_Static_assert(sizeof to.names == (sizeof words / sizeof words[0] + 1) * sizeof(object *), "a name for each");
	for (size_t i = 0; i < n; i++)
		names[i] = names[i] ? names[i] : py.FromText(words[i]);
	to.names.zero = to.names.zero ? to.names.zero : py.FromLong(0);
	return !py.Error();
}

static void forget_all(void)
{
	struct map old;

	pthread_mutex_lock(&lock);
	old = modules;
	modules = (struct map){ 0 };
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slots[i].key)
			known_drop(old.slots[i].value);
	free(old.slots);
}

void torch_fork(void)
{
	const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	lock = unlocked; /* a thread that is not here may have had it */
}

static object *begin(object *self, object *const *arguments, ssize_t n)
{
	object **const kept[] = { &to.trace,      &to.local, &to.is_grad_enabled, &to.is_tracing, &to.tensor,
				  &to.accumulate, &to.dummy };

	(void)self;
	if (n < (ssize_t)(sizeof kept / sizeof kept[0]) || !make_names())
		return py.Error() ? NULL : none();
	to.is_on = false;
	forget_all();
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		replace(kept[i], keep(arguments[i]));
	replace(&to.cuda, NULL);
	return none();
}

static object *start(object *self, object *unused)
{
	(void)self;
	(void)unused;
	to.is_on = to.trace != NULL;
	return none();
}

static struct method methods[] = {
	{ "begin", begin, METHOD_FAST, NULL },
	{ "start", start, METHOD_NONE, NULL },
	{ "end", end, METHOD_NONE, NULL },
	{ "step", set_step, METHOD_FAST, NULL },
	{ "cuda", set_cuda, METHOD_ONE, NULL },
	{ "know", know, METHOD_FAST, NULL },
	{ "forget", forget_module, METHOD_ONE, NULL },
	{ "enter", enter, METHOD_FAST, NULL },
	{ "leave", leave, METHOD_FAST, NULL },
	{ "clear", clear_thread, METHOD_NONE, NULL },
	{ "sequence", next_sequence, METHOD_NONE, NULL },
};

void *torch_builtins(void)
{
	object *made, *name;
	size_t n = sizeof methods / sizeof methods[0], i = 0;

	made = find_functions() ? py.DictNew() : NULL;
	for (; made && i < n; i++) {
		OWNED one = py.Callable(&methods[i], NULL, NULL);

		name = one ? py.FromText(methods[i].name) : NULL;
		if (!name || py.DictSet(made, name, one) < 0)
			replace(&made, NULL);
		forget(&name);
	}
	return made;
}
