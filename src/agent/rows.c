/* SPDX-License-Identifier: MIT */
/* rows.c - see rows.h.
 *
 * A row's values are converted first, which may run code of the program (__index__, __float__); then the ring is looked up,
 * and the row appended without calling into the interpreter. So a ring cannot be dropped under a row that is being written:
 * the interpreter's lock is held in between. Without such a lock (free-threaded builds) dropped rings stay mapped.
 */
#include "src/agent/rows.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/agent/private.h"
#include "src/agent/python.h"
#include "src/agent/settings.h"
#include "src/agent/torch.h"
#include "src/agent/trace.h"
#include "src/ring/ring.h"

typedef struct object object; /* PyObject */
typedef object *call(object *self, object *arguments);

/* PyMethodDef, part of the stable ABI (PEP 384). */
struct method {
	const char *name;
	call *function;
	int flags;
	const char *text;
};
enum { METHOD_ARGUMENTS = 1 /* METH_VARARGS */ };

/* Source: Doc/c-api of CPython 3.6 to 3.15. */
static struct {
	ssize_t (*TupleSize)(object *);
	object *(*TupleItem)(object *, ssize_t);
	object *(*Type)(object *);
	int (*IsInstance)(object *, object *);
	long long (*AsLong)(object *, int *);
	double (*AsDouble)(object *);
	const char *(*AsText)(object *, ssize_t *);
	object *(*Index)(object *);
	object *(*FromLong)(long long);
	object *(*FromDouble)(double);
	object *(*FromText)(const char *, ssize_t, const char *);
	object *(*ListNew)(ssize_t);
	int (*ListAppend)(object *, object *);
	object *(*ListTuple)(object *);
	object *(*CapsuleNew)(void *, const char *, void (*)(object *));
	void *(*CapsulePointer)(object *, const char *); /* no name */
	object *(*Callable)(struct method *, object *, object *);
	object *(*CallObjects)(object *, ...);
	object *(*BuildValue)(const char *, ...);
	object *(*Attribute)(object *, const char *);
	object *(*Modules)(void);
	object *(*DictGet)(object *, const char *);
	int (*SysSet)(const char *, object *);
	object *(*Error)(void);
	void (*ErrorClear)(void);
	int (*IsError)(object *);
	void (*Forget)(object *);
	object *none, *long_type, *float_type, *text_type;
	object **exception;
} py;

static const struct python_name functions[] = {
	{ "PyTuple_Size", &py.TupleSize },
	{ "PyTuple_GetItem", &py.TupleItem },
	{ "PyObject_Type", &py.Type },
	{ "PyObject_IsInstance", &py.IsInstance },
	{ "PyLong_AsLongLongAndOverflow", &py.AsLong },
	{ "PyFloat_AsDouble", &py.AsDouble },
	{ "PyUnicode_AsUTF8AndSize", &py.AsText },
	{ "PyNumber_Index", &py.Index },
	{ "PyLong_FromLongLong", &py.FromLong },
	{ "PyFloat_FromDouble", &py.FromDouble },
	{ "PyUnicode_DecodeUTF8", &py.FromText },
	{ "PyList_New", &py.ListNew },
	{ "PyList_Append", &py.ListAppend },
	{ "PyList_AsTuple", &py.ListTuple },
	{ "PyCapsule_New", &py.CapsuleNew },
	{ "PyCapsule_GetPointer", &py.CapsulePointer },
	{ "PyCFunction_NewEx", &py.Callable },
	{ "PyObject_CallFunctionObjArgs", &py.CallObjects },
	{ "Py_BuildValue", &py.BuildValue },
	{ "PyObject_GetAttrString", &py.Attribute },
	{ "PyImport_GetModuleDict", &py.Modules },
	{ "PyDict_GetItemString", &py.DictGet },
	{ "PySys_SetObject", &py.SysSet },
	{ "PyErr_Occurred", &py.Error },
	{ "PyErr_Clear", &py.ErrorClear },
	{ "PyErr_ExceptionMatches", &py.IsError },
	{ "Py_DecRef", &py.Forget },
	{ "_Py_NoneStruct", &py.none },
	{ "PyLong_Type", &py.long_type },
	{ "PyFloat_Type", &py.float_type },
	{ "PyUnicode_Type", &py.text_type },
	{ "PyExc_Exception", &py.exception },
};

static bool find_functions(void)
{
	static bool is_found;

	is_found = is_found || !python_look_up(functions, sizeof functions / sizeof functions[0]);
	return is_found;
}

static void forget(object **pointer)
{
	if (*pointer)
		py.Forget(*pointer);
}
#define OWNED __attribute__((cleanup(forget))) object *

/* ---- Rings ---- */

enum { MAX_TABLES = 256, MAX_WHY = 384, MB = 1 << 20, MAX_MB = 256, MAX_ENDED_MB = 256 };

static const double default_days = 1;

/* What builtins have for their self, in a capsule. */
struct rows_table {
	struct ring *ring; /* NULL: dropped */
	uint32_t n_forks;  /* of the process that created it */
	char name[RING_NAME_BYTES];
	char names[RING_MAX_COLUMNS][RING_COLUMN_BYTES];
	struct ring_column columns[RING_MAX_COLUMNS];
	struct ring_description description;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of creating and dropping */
static uint32_t n_forks;
static unsigned n_tables;
static uint64_t n_bytes; /* of files, dropped ones not included */
static bool child_writes, has_removed;

static bool is_on(void)
{
	uint32_t status = __atomic_load_n(&agent.status, __ATOMIC_RELAXED);

	if (__atomic_load_n(&agent.options, __ATOMIC_RELAXED) & AGENT_NO_ROWS)
		return false;
	return status == AGENT_ARMED || status == AGENT_STARTING || child_writes;
}

void rows_fork(void)
{
	const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	child_writes = is_on();
	n_bytes = 0;
	has_removed = false;
	lock = unlocked; /* a thread that is not here may have had it */
	n_forks++;
	trace_fork();
	torch_fork();
}

static const char *parent_folder(void)
{
	const char *parent = getenv("PROBING_DATA_DIR");

	return parent && parent[0] == '/' ? parent : RING_PARENT;
}

/* Remove rings of ended processes, once in a process, before its first ring. With the lock. */
static int open_folder(int *ret)
{
	struct ring_retention retention = { .days = default_days, .max_bytes = (uint64_t)MAX_ENDED_MB * MB };
	struct config config;
	int r;

	settings_get(&config);
	(void)config_number(&config, &config_retention_days, &retention.days);
	r = ring_folder_make(parent_folder(), has_removed ? NULL : &retention, ret);
	has_removed = true;
	return r;
}

/* With the lock. -EDQUOT: the process has enough of them. */
static int create_ring(struct rows_table *table)
{
	int folder, r;

	if (n_bytes > (uint64_t)MAX_MB * MB)
		return -EDQUOT;
	r = open_folder(&folder);
	if (r < 0)
		return r;
	r = ring_create(folder, &table->description, &table->ring);
	close(folder);
	table->n_forks = n_forks;
	n_bytes += r == 0 ? ring_file_bytes(table->ring) : 0;
	return r;
}

/* The ring of this process; NULL: none. A forked child does not use its parent's. */
static struct ring *ring_of(struct rows_table *table)
{
	struct ring *ring = __atomic_load_n(&table->ring, __ATOMIC_ACQUIRE);

	if (!ring || table->n_forks == n_forks)
		return ring;
	pthread_mutex_lock(&lock);
	if (table->n_forks != n_forks) {
		table->ring = NULL;
		if (create_ring(table) < 0)
			table->n_forks = n_forks;
	}
	ring = table->ring;
	pthread_mutex_unlock(&lock);
	return ring;
}

/* ---- Values ---- */

static object *none(void)
{
	return py.BuildValue("");
}

static bool is_of(object *value, object *type)
{
	object *its = py.Type(value);

	if (its)
		py.Forget(its);
	return its == type;
}

static void take_real(object *value, struct ring_value *ret)
{
	double real = py.AsDouble(value);

	if (real != -1 || !py.Error())
		*ret = (struct ring_value){ .kind = RING_IS_REAL, .real = real };
}

static void take_integer(object *value, struct ring_value *ret)
{
	int overflow = 0;
	long long integer = py.AsLong(value, &overflow);

	if (overflow)
		take_real(value, ret);
	else if (integer != -1 || !py.Error())
		*ret = (struct ring_value){ .kind = RING_IS_INTEGER, .integer = integer };
}

static void take_text(object *value, struct ring_value *ret)
{
	ssize_t n;
	const char *text = py.AsText(value, &n);

	if (text)
		*ret = (struct ring_value){ .kind = RING_IS_TEXT, .text = text, .n_text = (size_t)n };
}

/* Scalars of NumPy and torch, Decimal, bool: by __index__, else by __float__. */
static void take_other(object *value, struct ring_value *ret)
{
	OWNED index = NULL;

	if (py.IsInstance(value, py.text_type) > 0) {
		take_text(value, ret);
		return;
	}
	index = py.Error() ? NULL : py.Index(value);
	if (index) {
		take_integer(index, ret);
		return;
	}
	if (py.Error() && !py.IsError(*py.exception))
		return;
	py.ErrorClear();
	take_real(value, ret);
}

/*
 * False: an exception is set that is not ours to clear (KeyboardInterrupt).
 * @ret: a text borrows from the value. @n_unfit: counts those that are no value of a ring, which become NULL.
 */
static bool convert(object *value, struct ring_value *ret, unsigned *n_unfit)
{
	*ret = (struct ring_value){ .kind = RING_NULL };
	if (value == py.none)
		return true;
	if (is_of(value, py.float_type))
		take_real(value, ret);
	else if (is_of(value, py.long_type))
		take_integer(value, ret);
	else if (is_of(value, py.text_type))
		take_text(value, ret);
	else
		take_other(value, ret);
	if (py.Error()) {
		if (!py.IsError(*py.exception))
			return false;
		py.ErrorClear();
	}
	*n_unfit += ret->kind == RING_NULL;
	return true;
}

bool rows_number(void *number, struct ring_value *ret)
{
	unsigned n_unfit = 0;

	if (!convert(number, ret, &n_unfit))
		return false;
	if (ret->kind == RING_IS_TEXT)
		ret->kind = RING_NULL;
	return true;
}

/* ---- append(*values): a value too few is NULL, one too many is counted ---- */

static object *append(object *self, object *arguments)
{
	struct rows_table *table = py.CapsulePointer(self, NULL);
	ssize_t n = py.TupleSize(arguments), n_columns = (ssize_t)table->description.n_columns;
	struct ring_value values[RING_MAX_COLUMNS];
	unsigned n_unfit = n > n_columns ? (unsigned)(n - n_columns) : 0;
	struct ring *ring;

	if (!is_on())
		return none();
	for (ssize_t i = 0; i < n_columns; i++) {
		if (i >= n)
			values[i].kind = RING_NULL;
		else if (!convert(py.TupleItem(arguments, i), &values[i], &n_unfit))
			return NULL;
	}
	ring = ring_of(table);
	if (ring) {
		(void)ring_append(ring, values);
		if (n_unfit > 0)
			ring_count_unfit(ring, n_unfit);
	}
	return none();
}

struct rows_table *rows_table_of(void *builtin)
{
	OWNED self = py.Attribute(builtin, "__self__");
	struct rows_table *table = self ? py.CapsulePointer(self, NULL) : NULL;

	if (!table && py.Error())
		py.ErrorClear();
	return table;
}

void rows_append(struct rows_table *table, uint64_t time_ns, const struct ring_value *values)
{
	struct ring *ring = is_on() ? ring_of(table) : NULL;

	if (ring)
		(void)ring_append_at(ring, time_ns, values);
}

/* ---- take(n): the newest rows, (seconds since 1970, values...) each; n < 0: all ---- */

static object *object_of(const struct ring_value *value)
{
	switch (value->kind) {
	case RING_IS_INTEGER:
		return py.FromLong(value->integer);
	case RING_IS_REAL:
		return py.FromDouble(value->real);
	case RING_IS_TEXT:
		return py.FromText(value->text, (ssize_t)value->n_text, "replace");
	default:
		return none();
	}
}

static bool put(object *list, object *owned)
{
	bool is_put = owned && py.ListAppend(list, owned) == 0;

	forget(&owned);
	return is_put;
}

static object *row_of(const struct ring_snapshot *snapshot, size_t row)
{
	double time_ns = (double)ring_row_time_ns(snapshot, row) + (double)snapshot->realtime_offset_ns;
	OWNED list = py.ListNew(0);
	bool is_whole = list && put(list, py.FromDouble(time_ns / 1e9));

	for (size_t i = 0; i < snapshot->n_columns && is_whole; i++) {
		struct ring_value value;

		ring_cell(snapshot, row, i, &value);
		is_whole = put(list, object_of(&value));
	}
	return is_whole ? py.ListTuple(list) : NULL;
}

static object *take(object *self, object *arguments)
{
	struct ring_value wanted = { .kind = RING_NULL };
	struct ring_snapshot snapshot = { 0 };
	struct ring_source source;
	struct ring *ring;
	object *list = py.ListNew(0);
	unsigned n_unfit = 0;
	size_t first = 0;

	if (!list)
		return NULL;
	if (py.TupleSize(arguments) > 0 && !convert(py.TupleItem(arguments, 0), &wanted, &n_unfit)) {
		forget(&list);
		return NULL;
	}
	/* Only now: the program's own code, which may have run, may have dropped the table. */
	ring = ring_of(py.CapsulePointer(self, NULL));
	if (!ring)
		return list;
	ring_source_own(ring, &source);
	if (ring_read(&source, &snapshot) < 0)
		return list;
	if (wanted.kind == RING_IS_INTEGER && wanted.integer >= 0 && (uint64_t)wanted.integer < snapshot.n_rows)
		first = snapshot.n_rows - (size_t)wanted.integer;
	for (size_t row = first; row < snapshot.n_rows && list; row++)
		if (!put(list, row_of(&snapshot, row))) {
			forget(&list);
			list = NULL;
		}
	ring_snapshot_done(&snapshot);
	return list;
}

/* ---- drop() ---- */

static object *drop(object *self, object *arguments)
{
	struct rows_table *table = py.CapsulePointer(self, NULL);
	struct ring *ring;
	int folder;

	(void)arguments;
	pthread_mutex_lock(&lock);
	ring = table->ring;
	__atomic_store_n(&table->ring, NULL, __ATOMIC_RELEASE);
	if (ring && table->n_forks == n_forks && open_folder(&folder) == 0) {
		(void)ring_remove(ring, folder); /* on failure a file that is left goes with retention */
		close(folder);
		n_bytes -= ring_file_bytes(ring);
		if (!python_is_free_threaded())
			ring_close(ring);
	}
	pthread_mutex_unlock(&lock);
	return none();
}

/* ---- open(name, n_rows, names, types, bytes) ---- */

static bool copy_text(object *from, char *to, size_t n_bytes)
{
	struct ring_value value;
	unsigned n_unfit = 0;

	if (!convert(from, &value, &n_unfit) || value.kind != RING_IS_TEXT || value.n_text >= n_bytes)
		return false;
	memcpy(to, value.text, value.n_text);
	to[value.n_text] = '\0';
	return true;
}

static int64_t number_at(object *tuple, ssize_t i)
{
	object *item = py.TupleItem(tuple, i);
	struct ring_value value = { .kind = RING_NULL };
	unsigned n_unfit = 0;

	if (!item || !convert(item, &value, &n_unfit) || value.kind != RING_IS_INTEGER)
		return 0;
	return value.integer;
}

static bool fill(struct rows_table *table, object *arguments)
{
	object *names = py.TupleItem(arguments, 2), *types = py.TupleItem(arguments, 3),
	       *bytes = py.TupleItem(arguments, 4);
	ssize_t n = py.TupleSize(names);

	if (n > RING_MAX_COLUMNS || !copy_text(py.TupleItem(arguments, 0), table->name, sizeof table->name))
		return false;
	for (ssize_t i = 0; i < n; i++) {
		if (!copy_text(py.TupleItem(names, i), table->names[i], sizeof table->names[i]))
			return false;
		table->columns[i] = (struct ring_column){ .name = table->names[i],
							  .type = (enum ring_type)number_at(types, i),
							  .bytes = (uint32_t)number_at(bytes, i) };
	}
	table->description = (struct ring_description){ .name = table->name,
							.columns = table->columns,
							.n_columns = (size_t)n,
							.n_rows = (uint64_t)number_at(arguments, 1) };
	return true;
}

/* Why there is no ring; "": there is one. */
static void begin_table(struct rows_table *table, object *arguments, char why[MAX_WHY])
{
	int r;

	why[0] = '\0';
	if (!fill(table, arguments)) {
		snprintf(why, MAX_WHY, "a name is too long, or there are more than %d columns", RING_MAX_COLUMNS);
		return;
	}
	pthread_mutex_lock(&lock);
	r = n_tables < MAX_TABLES ? create_ring(table) : -EDQUOT;
	n_tables += r == 0;
	if (r == -EDQUOT)
		snprintf(why, MAX_WHY, "the process has %d tables, or %d MB of them", MAX_TABLES, MAX_MB);
	else if (r < 0)
		ring_folder_explain(r, parent_folder(), geteuid(), why, MAX_WHY);
	pthread_mutex_unlock(&lock);
}

static struct method methods[] = { { "append", append, METHOD_ARGUMENTS, NULL },
				   { "take", take, METHOD_ARGUMENTS, NULL },
				   { "drop", drop, METHOD_ARGUMENTS, NULL } };

/* No builtin of the table is left. Its file is. */
static void end_table(struct rows_table *table)
{
	pthread_mutex_lock(&lock);
	ring_close(table->ring);
	n_tables--;
	pthread_mutex_unlock(&lock);
	free(table);
}

static void end_capsule(object *capsule)
{
	end_table(py.CapsulePointer(capsule, NULL));
}

static object *make_builtins(struct rows_table *table)
{
	OWNED self = py.CapsuleNew(table, NULL, end_capsule);
	OWNED list = py.ListNew(0);
	bool is_whole = self && list;

	if (!self)
		end_table(table);
	for (size_t i = 0; i < sizeof methods / sizeof methods[0] && is_whole; i++)
		is_whole = put(list, py.Callable(&methods[i], self, NULL));
	return is_whole ? py.ListTuple(list) : NULL;
}

/* The package passes the expected types; anything else is a bug of the package and raises Python's error. */
static object *open_table(object *self, object *arguments)
{
	struct rows_table *table;
	char why[MAX_WHY];

	(void)self;
	if (!is_on())
		return none();
	table = calloc(1, sizeof *table);
	if (!table)
		return py.BuildValue("s", "not enough memory");
	begin_table(table, arguments, why);
	if (table->ring)
		return make_builtins(table);
	free(table);
	if (py.Error()) {
		if (!py.IsError(*py.exception))
			return NULL;
		py.ErrorClear();
	}
	return py.BuildValue("s", why);
}

/* ---- The offer ---- */

#define OFFER "_probing_rings" /* in sys */

static struct method open_method = { "open", open_table, METHOD_ARGUMENTS, NULL };

static void hand_to_package(object *offered)
{
	object *package = py.DictGet(py.Modules(), "probing._rows");
	OWNED activate = package ? py.Attribute(package, "_activate") : NULL;
	OWNED done = activate ? py.CallObjects(activate, offered, NULL) : NULL;

	(void)done;
}

static bool is_offered;

int rows_offer(void *unused)
{
	OWNED open = NULL;
	OWNED trace = NULL;
	OWNED torch = NULL;
	OWNED offered = NULL;

	(void)unused;
	if (!find_functions())
		return 0;
	open = py.Callable(&open_method, NULL, NULL);
	trace = trace_builtins();
	torch = torch_builtins();
	if (py.Error())
		py.ErrorClear();
	offered = open ? py.BuildValue("(OOO)", open, trace ? trace : py.none, torch ? torch : py.none) : NULL;
	if (offered && py.SysSet(OFFER, offered) == 0) {
		is_offered = true;
		hand_to_package(offered);
	}
	if (py.Error())
		py.ErrorClear();
	return 0;
}

void rows_offer_once(void)
{
	if (!is_offered)
		(void)rows_offer(NULL);
}
