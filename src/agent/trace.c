/* SPDX-License-Identifier: MIT */
/* trace.c - see trace.h.
 *
 * A call is on a stack of its thread from its start to its end. Its end removes the innermost entry of its code: others above
 * it belong to greenlets, or their ends were not seen. A call that may be suspended (generator, coroutine) may end in another
 * thread, and among others of its code: it is known by its frame.
 *
 * Callbacks run with the interpreter's lock, or at once in several threads where there is none. They find a code in a table
 * that never changes: another one takes its place, and the old one stays where a thread without a lock may read it.
 */
#include "src/agent/trace.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "src/agent/python.h"
#include "src/agent/rows.h"
#include "src/ring/ring.h"

typedef struct object object; /* PyObject */
typedef object *call(object *self, object *arguments);
typedef object *call_fast(object *self, object *const *arguments, ssize_t n);
typedef object *call_named(object *self, object *arguments, object *named);

/* PyMethodDef, part of the stable ABI (PEP 384). */
struct method {
	const char *name;
	void *function; /* of the type that the flags say */
	int flags;
	const char *text;
};
enum { METHOD_ARGUMENTS = 1, METHOD_NAMED = 2, METHOD_FAST = 0x80 }; /* METH_VARARGS, METH_KEYWORDS, METH_FASTCALL */

/* Source: Doc/c-api of CPython 3.8 to 3.15. */
static struct {
	ssize_t (*ListSize)(object *);
	object *(*ListItem)(object *, ssize_t);
	object *(*TupleItem)(object *, ssize_t);
	int (*IsTrue)(object *);
	const char *(*AsText)(object *, ssize_t *);
	object *(*FromText)(const char *);
	long long (*AsLong)(object *, int *);
	object *(*DictGet)(object *, object *);
	int (*VariableGet)(object *, object *, object **);
	object *(*Frame)(void);
	object *(*Call)(object *, object *, object *);
	object *(*Type)(object *);
	const char *(*ClassName)(object *);
	object *(*Error)(void);
	void (*ErrorClear)(void);
	void (*ErrorFetch)(object **, object **, object **);
	void (*ErrorRestore)(object *, object *, object *);
	object *(*CapsuleNew)(void *, const char *, void (*)(object *));
	void *(*CapsulePointer)(object *, const char *);
	object *(*Callable)(struct method *, object *, object *);
	object *(*BuildValue)(const char *, ...);
	void (*Keep)(object *);
	void (*Forget)(object *);
	object *none;
	object *(*FrameVariable)(object *, object *);       /* NULL before 3.12 */
	int (*DictGetOwned)(object *, object *, object **); /* NULL before 3.13 */
} py;

static const struct python_name functions[] = {
	{ "PyList_Size", &py.ListSize },
	{ "PyList_GetItem", &py.ListItem },
	{ "PyTuple_GetItem", &py.TupleItem },
	{ "PyObject_IsTrue", &py.IsTrue },
	{ "PyUnicode_AsUTF8AndSize", &py.AsText },
	{ "PyUnicode_InternFromString", &py.FromText },
	{ "PyLong_AsLongLongAndOverflow", &py.AsLong },
	{ "PyDict_GetItem", &py.DictGet },
	{ "PyContextVar_Get", &py.VariableGet },
	{ "PyEval_GetFrame", &py.Frame },
	{ "PyObject_Call", &py.Call },
	{ "PyObject_Type", &py.Type },
	{ "PyExceptionClass_Name", &py.ClassName },
	{ "PyErr_Occurred", &py.Error },
	{ "PyErr_Clear", &py.ErrorClear },
	{ "PyErr_Fetch", &py.ErrorFetch },
	{ "PyErr_Restore", &py.ErrorRestore },
	{ "PyCapsule_New", &py.CapsuleNew },
	{ "PyCapsule_GetPointer", &py.CapsulePointer },
	{ "PyCFunction_NewEx", &py.Callable },
	{ "Py_BuildValue", &py.BuildValue },
	{ "Py_IncRef", &py.Keep },
	{ "Py_DecRef", &py.Forget },
	{ "_Py_NoneStruct", &py.none },
	{ "PyFrame_GetVar", &py.FrameVariable, true },
	{ "PyDict_GetItemRef", &py.DictGetOwned, true },
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

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Rows ---- */

enum { COLUMNS = 6 };

static struct {
	bool is_on;
	uint32_t generation; /* of begin(): a call that began before it has no row */
	uint32_t n_forks;
	struct rows_table *table;
	object *append, *rows, *step_name, *span; /* owned */
} to;

int64_t trace_thread_id(void)
{
	static __thread int64_t id;
	static __thread uint32_t id_forks;

	if (!id || id_forks != to.n_forks) {
		id = syscall(SYS_gettid);
		id_forks = to.n_forks;
	}
	return id;
}

/* NULL where it is no integer: None, or something that somebody has given to step(). */
static struct ring_value integer_of(object *value)
{
	int overflow = 0;
	long long integer;

	if (!value || value == py.none)
		return (struct ring_value){ .kind = RING_NULL };
	integer = py.AsLong(value, &overflow);
	if (integer == -1 && py.Error()) {
		py.ErrorClear();
		overflow = 1;
	}
	return overflow ? (struct ring_value){ .kind = RING_NULL }
			: (struct ring_value){ .kind = RING_IS_INTEGER, .integer = integer };
}

/* 0, the default: there is no span. */
static struct ring_value span_now(void)
{
	struct ring_value span;
	object *value = NULL;

	if (py.VariableGet(to.span, NULL, &value) < 0)
		py.ErrorClear();
	span = integer_of(value);
	if (value)
		py.Forget(value);
	return span.kind == RING_IS_INTEGER && span.integer == 0 ? (struct ring_value){ .kind = RING_NULL } : span;
}

/* Without the interpreter's lock another thread may replace it meanwhile: it is owned where that can be (3.13). */
static struct ring_value step_now(void)
{
	struct ring_value step;
	object *value = NULL;

	if (!py.DictGetOwned)
		return integer_of(py.DictGet(to.rows, to.step_name));
	if (py.DictGetOwned(to.rows, to.step_name, &value) < 0)
		py.ErrorClear();
	step = integer_of(value);
	if (value)
		py.Forget(value);
	return step;
}

static struct ring_value text_of(const char *text, size_t n_text)
{
	return text ? (struct ring_value){ .kind = RING_IS_TEXT, .text = text, .n_text = n_text }
		    : (struct ring_value){ .kind = RING_NULL };
}

/* No Python error may be set: the values ask the interpreter. @error: a class' name; NULL: it has returned. */
static void append_row(const char *name, size_t n_name, uint64_t begun_ns, const char *error)
{
	uint64_t ended_ns = now_ns();
	const struct ring_value values[COLUMNS] = {
		text_of(name, n_name),
		{ .kind = RING_IS_REAL, .real = (double)(ended_ns - begun_ns) / 1e6 },
		step_now(),
		span_now(),
		{ .kind = RING_IS_INTEGER, .integer = trace_thread_id() },
		text_of(error, error ? strlen(error) : 0),
	};

	rows_append(to.table, ended_ns, values);
}

/* ---- Codes ---- */

struct timed {
	object *code, *name; /* owned */
	const char *text;
	size_t n_text;
	bool may_suspend;
};

struct codes {
	size_t n_slots; /* a power of two, more than half of them empty */
	struct timed slots[];
};

static struct codes *codes;

static size_t slot_of(const struct codes *in, const object *code)
{
	size_t slot = (size_t)((uintptr_t)code >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (;; slot++) {
		const object *found = in->slots[slot & (in->n_slots - 1)].code;

		if (!found || found == code)
			return slot & (in->n_slots - 1);
	}
}

/* NULL: it is not timed. */
static const struct timed *find_code(const object *code)
{
	const struct codes *in = __atomic_load_n(&codes, __ATOMIC_ACQUIRE);
	const struct timed *found = in && to.is_on ? &in->slots[slot_of(in, code)] : NULL;

	return found && found->code ? found : NULL;
}

static struct codes *new_codes(size_t n)
{
	size_t n_slots = 4;
	struct codes *made;

	while (n_slots < 2 * n + 1)
		n_slots *= 2;
	made = calloc(1, sizeof *made + n_slots * sizeof made->slots[0]);
	if (made)
		made->n_slots = n_slots;
	return made;
}

static bool take_code(struct codes *in, object *entry)
{
	struct timed one = { .code = py.TupleItem(entry, 0), .name = py.TupleItem(entry, 1) };
	ssize_t n = 0;

	one.text = one.name ? py.AsText(one.name, &n) : NULL;
	if (!one.text)
		return false;
	one.n_text = (size_t)n;
	one.may_suspend = py.IsTrue(py.TupleItem(entry, 2)) > 0;
	py.Keep(one.code);
	py.Keep(one.name);
	in->slots[slot_of(in, one.code)] = one;
	return true;
}

/* Tables and what they own stay: a callback may be using them in a thread that has lent the lock, or has none. They are as
 * few as changes of the configuration. */
static object *set_codes(object *self, object *list)
{
	ssize_t n = py.ListSize(list);
	struct codes *made = n < 0 ? NULL : new_codes((size_t)n);

	(void)self;
	for (ssize_t i = 0; made && i < n; i++)
		if (!take_code(made, py.ListItem(list, i))) {
			free(made);
			return NULL;
		}
	if (made)
		__atomic_store_n(&codes, made, __ATOMIC_RELEASE);
	return py.Error() ? NULL : py.BuildValue("i", made != NULL);
}

/* ---- Calls ---- */

enum { DEPTH = 128 }; /* calls of timed functions in one another; further ones have rows without the outermost */

struct running {
	const object *code;
	uint64_t begun_ns;
};

static __thread struct {
	uint32_t n, generation;
	struct running calls[DEPTH];
} stack;

static void push(const object *code)
{
	if (stack.generation != to.generation) {
		stack.generation = to.generation;
		stack.n = 0;
	}
	if (stack.n == DEPTH)
		memmove(stack.calls, stack.calls + 1, --stack.n * sizeof stack.calls[0]);
	stack.calls[stack.n++] = (struct running){ code, now_ns() };
}

/* False: its start was not seen. */
static bool pop(const object *code, uint64_t *ret_begun_ns)
{
	if (stack.generation != to.generation)
		return false;
	for (uint32_t i = stack.n; i-- > 0;) {
		if (stack.calls[i].code != code)
			continue;
		*ret_begun_ns = stack.calls[i].begun_ns;
		memmove(stack.calls + i, stack.calls + i + 1, (--stack.n - i) * sizeof stack.calls[0]);
		return true;
	}
	return false;
}

/* Calls that may be suspended: sets of slots by their frames' addresses. One that never finishes is evicted eventually. */
enum { SETS = 512, WAYS = 8 };

static struct suspended {
	const object *frame, *code;
	uint64_t begun_ns;
	uint32_t generation;
} suspended[SETS][WAYS];
static pthread_mutex_t suspended_lock = PTHREAD_MUTEX_INITIALIZER;

static struct suspended *set_of(const object *frame)
{
	return suspended[((uintptr_t)frame >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 55];
}

static void put_suspended(const object *frame, const object *code)
{
	struct suspended *set = set_of(frame), *to_replace = set;

	pthread_mutex_lock(&suspended_lock);
	for (int i = 0; i < WAYS; i++) {
		if (set[i].frame == frame) {
			to_replace = &set[i];
			break;
		}
		if (set[i].begun_ns < to_replace->begun_ns)
			to_replace = &set[i];
	}
	*to_replace = (struct suspended){ frame, code, now_ns(), to.generation };
	pthread_mutex_unlock(&suspended_lock);
}

static bool take_suspended(const object *frame, const object *code, uint64_t *ret_begun_ns)
{
	struct suspended *set = set_of(frame);
	bool is_found = false;

	pthread_mutex_lock(&suspended_lock);
	for (int i = 0; i < WAYS && !is_found; i++) {
		is_found = set[i].frame == frame && set[i].code == code && set[i].generation == to.generation;
		if (is_found) {
			*ret_begun_ns = set[i].begun_ns;
			set[i] = (struct suspended){ 0 };
		}
	}
	pthread_mutex_unlock(&suspended_lock);
	return is_found;
}

static object *start(object *self, object *const *arguments, ssize_t n)
{
	const struct timed *found = n > 0 ? find_code(arguments[0]) : NULL;

	(void)self;
	if (!found)
		return none();
	if (found->may_suspend)
		put_suspended(py.Frame(), found->code);
	else
		push(found->code);
	return none();
}

static void end_call(const struct timed *found, const char *error)
{
	uint64_t begun_ns;

	if (found->may_suspend ? take_suspended(py.Frame(), found->code, &begun_ns) : pop(found->code, &begun_ns))
		append_row(found->text, found->n_text, begun_ns, error);
}

static object *leave(object *self, object *const *arguments, ssize_t n)
{
	const struct timed *found = n > 0 ? find_code(arguments[0]) : NULL;

	(void)self;
	if (found)
		end_call(found, NULL);
	return none();
}

/* For all functions, because the event does not exist for single ones; it is cheap for the others. */
static object *unwind(object *self, object *const *arguments, ssize_t n)
{
	const struct timed *found = n > 2 ? find_code(arguments[0]) : NULL;
	object *type = found ? py.Type(arguments[2]) : NULL;

	(void)self;
	if (type) {
		end_call(found, py.ClassName(type));
		py.Forget(type);
	}
	return none();
}

/* ---- Before 3.12: a callable in the function's place ---- */

struct wrapper {
	object *name, *function; /* owned */
	uint32_t generation;
};

static object *run(object *self, object *arguments, object *named)
{
	const struct wrapper *wrapper = py.CapsulePointer(self, NULL);
	bool is_timed = to.is_on && wrapper->generation == to.generation;
	uint64_t begun_ns = now_ns();
	object *value = py.Call(wrapper->function, arguments, named), *type, *error, *trace;
	const char *text;
	ssize_t n = 0;

	if (!is_timed || !to.is_on || wrapper->generation != to.generation)
		return value;
	text = py.AsText(wrapper->name, &n);
	if (value) {
		append_row(text, (size_t)n, begun_ns, NULL);
		return value;
	}
	py.ErrorFetch(&type, &error, &trace);
	append_row(text, (size_t)n, begun_ns, type ? py.ClassName(type) : NULL);
	py.ErrorRestore(type, error, trace);
	return NULL;
}

static struct method run_method = { "timed", run, METHOD_ARGUMENTS | METHOD_NAMED, NULL };

static void end_wrapper(object *capsule)
{
	struct wrapper *wrapper = py.CapsulePointer(capsule, NULL);

	py.Forget(wrapper->name);
	py.Forget(wrapper->function);
	free(wrapper);
}

static object *wrap(object *self, object *arguments)
{
	struct wrapper *wrapper = calloc(1, sizeof *wrapper);
	object *capsule, *made = NULL;

	(void)self;
	if (!wrapper)
		return none();
	*wrapper = (struct wrapper){ py.TupleItem(arguments, 0), py.TupleItem(arguments, 1), to.generation };
	if (!wrapper->name || !wrapper->function) {
		free(wrapper);
		return NULL;
	}
	py.Keep(wrapper->name);
	py.Keep(wrapper->function);
	capsule = py.CapsuleNew(wrapper, NULL, end_wrapper);
	if (capsule) {
		made = py.Callable(&run_method, capsule, NULL);
		py.Forget(capsule);
	}
	return made;
}

/* ---- A variable, from 3.12 on: f_locals of 3.12 would keep all variables of the function until its next use ---- */

static object *variable(object *self, object *arguments)
{
	object *frame = py.TupleItem(arguments, 0), *name = py.TupleItem(arguments, 1);

	(void)self;
	if (!py.FrameVariable)
		return none();
	return frame && name ? py.FrameVariable(frame, name) : NULL;
}

/* ---- Begin and end ---- */

static void forget(object **pointer)
{
	if (*pointer)
		py.Forget(*pointer);
	*pointer = NULL;
}

static object *end(object *self, object *unused)
{
	(void)self;
	(void)unused;
	to.is_on = false;
	return none();
}

static object *begin(object *self, object *arguments)
{
	object *append = py.TupleItem(arguments, 0), *rows = py.TupleItem(arguments, 1),
	       *span = py.TupleItem(arguments, 2);
	struct rows_table *table = append && rows && span ? rows_table_of(append) : NULL;

	(void)self;
	if (!table)
		return py.Error() ? NULL : py.BuildValue("i", 0);
	to.is_on = false;
	py.Keep(append);
	py.Keep(rows);
	py.Keep(span);
	forget(&to.append);
	forget(&to.rows);
	forget(&to.span);
	to.table = table;
	to.append = append;
	to.rows = rows;
	to.span = span;
	to.step_name = to.step_name ? to.step_name : py.FromText("_step");
	to.generation++;
	to.is_on = to.step_name != NULL;
	return py.BuildValue("i", to.is_on);
}

void trace_fork(void)
{
	const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	suspended_lock = unlocked; /* a thread that is not here may have had it */
	to.is_on = false;
	to.n_forks++;
}

static struct method methods[] = {
	{ "begin", begin, METHOD_ARGUMENTS, NULL }, { "codes", set_codes, 8 /* METH_O */, NULL },
	{ "end", end, METHOD_ARGUMENTS, NULL },     { "start", start, METHOD_FAST, NULL },
	{ "leave", leave, METHOD_FAST, NULL },      { "unwind", unwind, METHOD_FAST, NULL },
	{ "timed", wrap, METHOD_ARGUMENTS, NULL },  { "variable", variable, METHOD_ARGUMENTS, NULL },
};

void *trace_builtins(void)
{
	object *made[sizeof methods / sizeof methods[0]], *all = NULL;
	size_t n = 0;

	if (!find_functions())
		return NULL;
	while (n < sizeof methods / sizeof methods[0] && (made[n] = py.Callable(&methods[n], NULL, NULL)))
		n++;
	if (n == sizeof methods / sizeof methods[0])
		all = py.BuildValue("(OOOOOOOO)", made[0], made[1], made[2], made[3], made[4], made[5], made[6],
				    made[7]);
	while (n-- > 0)
		py.Forget(made[n]);
	return all;
}
