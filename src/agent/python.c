/* SPDX-License-Identifier: MIT */
/* python.c - see python.h. */
#include "src/agent/python.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/agent/crash.h"
#include "src/agent/modules.h"
#include "src/agent/private.h"
#include "src/agent/rows.h"

typedef struct object object; /* PyObject */
typedef object *call(object *self, object *argument);

/* PyMethodDef, part of the stable ABI (PEP 384). */
struct method {
	const char *name;
	call *function;
	int flags;
	const char *text;
};
enum { METHOD_ONE_ARGUMENT = 8 /* METH_O */, FILE_INPUT = 257 /* Py_file_input */ };

/* Source: Doc/c-api of CPython 3.6 to 3.15. */
static struct {
	int (*IsInitialized)(void);
	void *(*ThisThreadState)(void);
	const char *(*GetVersion)(void);
	int (*Ensure)(void);
	void (*Release)(int);
	void *(*SaveThread)(void);
	void (*RestoreThread)(void *);
	int (*AddPendingCall)(int (*)(void *), void *);
	object *(*RunString)(const char *, int, object *, object *, void *);
	object *(*DictNew)(void);
	int (*DictSet)(object *, const char *, object *);
	object *(*DictGet)(object *, const char *);
	object *(*Builtins)(void);
	object *(*Callable)(struct method *, object *, object *);
	object *(*CallObjects)(object *, ...);
	object *(*Bytes)(const char *, ssize_t);
	object *(*Encode)(object *);
	int (*BytesText)(object *, char **, ssize_t *);
	object *(*Text)(const char *, ssize_t, const char *);
	object *(*BuildValue)(const char *, ...);
	void (*Keep)(object *);
	void (*Forget)(object *);
	object *(*SysGet)(const char *);
	int (*SysSet)(const char *, object *);
	object *(*Modules)(void);
	object *(*Attribute)(object *, const char *);
	int (*IsTrue)(object *);
	object *(*Error)(void);
	void (*ErrorClear)(void);
	int (*AsyncError)(unsigned long, object *);
	unsigned long (*ThreadIdent)(void);
	int (*IsError)(object *);
	object **KeyboardInterrupt;
	/* Only in some releases; otherwise NULL. */
	int (*IsFinalizing)(void);
	void *(*MainInterpreter)(void);
	int (*HasThreads)(void);
	void (*InitThreads)(void);
} py;

static const struct python_name functions[] = {
	{ "Py_IsInitialized", &py.IsInitialized, false },
	{ "PyGILState_GetThisThreadState", &py.ThisThreadState, false },
	{ "Py_GetVersion", &py.GetVersion, false },
	{ "PyGILState_Ensure", &py.Ensure, false },
	{ "PyGILState_Release", &py.Release, false },
	{ "PyEval_SaveThread", &py.SaveThread, false },
	{ "PyEval_RestoreThread", &py.RestoreThread, false },
	{ "Py_AddPendingCall", &py.AddPendingCall, false },
	{ "PyRun_StringFlags", &py.RunString, false },
	{ "PyDict_New", &py.DictNew, false },
	{ "PyDict_SetItemString", &py.DictSet, false },
	{ "PyDict_GetItemString", &py.DictGet, false },
	{ "PyEval_GetBuiltins", &py.Builtins, false },
	{ "PyCFunction_NewEx", &py.Callable, false },
	{ "PyObject_CallFunctionObjArgs", &py.CallObjects, false },
	{ "PyBytes_FromStringAndSize", &py.Bytes, false },
	{ "PyUnicode_AsUTF8String", &py.Encode, false },
	{ "PyBytes_AsStringAndSize", &py.BytesText, false },
	{ "PyUnicode_DecodeUTF8", &py.Text, false },
	{ "Py_BuildValue", &py.BuildValue, false },
	{ "Py_IncRef", &py.Keep, false },
	{ "Py_DecRef", &py.Forget, false },
	{ "PySys_GetObject", &py.SysGet, false },
	{ "PySys_SetObject", &py.SysSet, false },
	{ "PyImport_GetModuleDict", &py.Modules, false },
	{ "PyObject_GetAttrString", &py.Attribute, false },
	{ "PyObject_IsTrue", &py.IsTrue, false },
	{ "PyErr_Occurred", &py.Error, false },
	{ "PyErr_Clear", &py.ErrorClear, false },
	{ "PyThreadState_SetAsyncExc", &py.AsyncError, false },
	{ "PyThread_get_thread_ident", &py.ThreadIdent, false },
	{ "PyErr_ExceptionMatches", &py.IsError, false },
	{ "PyExc_KeyboardInterrupt", &py.KeyboardInterrupt, false },
	{ "Py_IsFinalizing", &py.IsFinalizing, true },
	{ "PyInterpreterState_Main", &py.MainInterpreter, true }, /* 3.7 */
	{ "PyEval_ThreadsInitialized", &py.HasThreads, true },
	{ "PyEval_InitThreads", &py.InitThreads, true },
};

extern const char evaluate_source[], package_source[]; /* evaluate.py, package.py */

#define SPACE "_probing_agent" /* key in sys */

static char missing[96], version[32];
static bool is_free_threaded;

const char *python_look_up(const struct python_name *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *found = dlsym(RTLD_DEFAULT, names[i].name);

		if (!found && !names[i].is_optional)
			return names[i].name;
		memcpy(names[i].to, &found, sizeof found);
	}
	return NULL;
}

const char *python_find(void)
{
	static bool is_found;
	const char *absent;

	if (is_found)
		return NULL;
	absent = python_look_up(functions, sizeof functions / sizeof functions[0]);
	if (absent == functions[0].name)
		return "there is no Python in this process, or it is hidden from libraries";
	if (absent) {
		snprintf(missing, sizeof missing, "its Python has no %s", absent);
		return missing;
	}
	/* Before 3.12 it is called _Py_IsFinalizing. */
	if (!py.IsFinalizing) {
		void *found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");

		memcpy(&py.IsFinalizing, &found, sizeof found);
	}
	snprintf(version, sizeof version, "%.*s", (int)strcspn(py.GetVersion(), " "), py.GetVersion());
	if (strncmp(version, "3.", 2) != 0 || atoi(version + 2) < 6)
		return "its Python is older than 3.6";
	is_free_threaded = strstr(py.GetVersion(), "free-threading") != NULL;
	is_found = true;
	return NULL;
}

bool python_is_free_threaded(void)
{
	return is_free_threaded;
}

const char *python_version(void)
{
	return version;
}

bool python_has_package(void)
{
	return atoi(version + 2) >= 8;
}

/* From 3.15 on Py_IsInitialized() is false until `site` is imported, and start hooks run during that. */
static bool is_in_site;

void python_look_at_caller(void)
{
	if (!py.IsInitialized() && py.ThisThreadState())
		__atomic_store_n(&is_in_site, true, __ATOMIC_SEQ_CST);
}

static bool has_begun(void)
{
	if (py.IsInitialized()) {
		__atomic_store_n(&is_in_site, false, __ATOMIC_SEQ_CST);
		return true;
	}
	return __atomic_load_n(&is_in_site, __ATOMIC_SEQ_CST) && py.MainInterpreter && py.MainInterpreter();
}

bool python_is_running(void)
{
	return has_begun() && !(py.IsFinalizing && py.IsFinalizing());
}

/* ---- Up to 3.6: the first thread creates the GIL ---- */

static int make_lock(void *unused)
{
	(void)unused;
	py.InitThreads();
	return 0;
}

static bool has_lock(void)
{
	return atoi(version + 2) >= 7 || !py.HasThreads || !py.InitThreads || py.HasThreads();
}

bool python_prepare(bool (*is_wanted)(void))
{
	const struct timespec a_while = { .tv_nsec = 10 * 1000000 };

	if (has_lock())
		return true;
	(void)py.AddPendingCall(make_lock, NULL); /* if the queue is full, the loop below still waits for the lock */
	while (!has_lock()) {
		if (!is_wanted() || !python_is_running())
			return false;
		nanosleep(&a_while, NULL);
	}
	return true;
}

bool python_call_soon(int (*function)(void *))
{
	return py.AddPendingCall(function, NULL) == 0;
}

static void forget(object **pointer)
{
	if (*pointer)
		py.Forget(*pointer);
}
#define OWNED __attribute__((cleanup(forget))) object *

/* os.fork() holds the import lock until PyOS_AfterFork() ends. Source: Modules/posixmodule.c of 3.6. */
bool python_is_forking(void)
{
	object *imp = atoi(version + 2) < 7 ? py.DictGet(py.Modules(), "_imp") : NULL;
	OWNED lock_held = imp ? py.Attribute(imp, "lock_held") : NULL;
	OWNED is_held = lock_held ? py.CallObjects(lock_held, NULL) : NULL;

	if (py.Error())
		py.ErrorClear();
	return is_held && py.IsTrue(is_held) > 0;
}

/* ---- GIL ---- */

int python_enter(void)
{
	return py.Ensure();
}

void python_leave(int state)
{
	py.Release(state);
}

void *python_pause(void)
{
	return py.SaveThread();
}

void python_resume(void *paused)
{
	py.RestoreThread(paused);
}

unsigned long python_thread(void)
{
	return py.ThreadIdent();
}

void python_interrupt(unsigned long thread)
{
	(void)py.AsyncError(thread, *py.KeyboardInterrupt);
}

/* ---- Evaluation ---- */

enum { PROBES_STREAM = 3 }; /* no output: probes.py reports that it armed or disarmed probes */

static const struct python_side *side; /* NULL in a forked child: its evaluation has no client */

static object *take_output(object *self, object *argument)
{
	char *text;
	ssize_t n;

	(void)self;
	if (py.BytesText(argument, &text, &n) < 0)
		return NULL;
	if (side && n == 2 && text[0] == PROBES_STREAM)
		side->arm(text[1] != 0);
	else if (side && n > 1)
		side->write(text[0], text + 1, (size_t)n - 1);
	return py.BuildValue("i", side != NULL);
}

static struct method write_method = { "write", take_output, METHOD_ONE_ARGUMENT, NULL };

void python_forget_evaluation(void)
{
	side = NULL;
}

/* source(name) of package.py. */
static object *find_module(object *self, object *argument)
{
	OWNED name = py.Encode(argument);
	char *text;
	ssize_t n;

	(void)self;
	if (!name || py.BytesText(name, &text, &n) < 0)
		return NULL;
	for (const struct python_module *one = python_modules; one->name; one++)
		if (strcmp(one->name, text) == 0)
			return py.BuildValue("s", one->text);
	return py.BuildValue("");
}

/* has_undo(0 or 1) of package.py. */
static object *take_undo(object *self, object *argument)
{
	(void)self;
	__atomic_store_n(&agent.has_undo, (uint32_t)(py.IsTrue(argument) > 0), __ATOMIC_SEQ_CST);
	return py.BuildValue("");
}

static struct method undo_method = { "has_undo", take_undo, METHOD_ONE_ARGUMENT, NULL };
/* crash_tell(traceback), for python/probing/_crash.py. With the lock, so that other threads stay where they were. */
static object *tell_crash(object *self, object *argument)
{
	char *text;
	ssize_t n;

	(void)self;
	if (py.BytesText(argument, &text, &n) < 0)
		return NULL;
	return py.BuildValue("i", (int)crash_tell(text, (size_t)n));
}

/* crash_why(""): None: the agent has not set it yet. */
static object *explain_crash(object *self, object *argument)
{
	const char *why;

	(void)self;
	(void)argument;
	return crash_is_set(&why) ? py.BuildValue("s", why) : py.BuildValue("");
}

static struct method crash_methods[] = {
	{ "crash_tell", tell_crash, METHOD_ONE_ARGUMENT, NULL },
	{ "crash_why", explain_crash, METHOD_ONE_ARGUMENT, NULL },
};

static struct method source_method = { "source", find_module, METHOD_ONE_ARGUMENT, NULL };

/* The namespace of our Python code, kept in sys: the interpreter drops it at its end; evaluate.py explains why. NULL with
 * Python's error set. */
static object *get_space(void)
{
	object *space = py.SysGet(SPACE);

	if (space && py.DictGet(space, "__builtins__")) {
		py.Keep(space);
		return space;
	}
	space = py.DictNew();
	if (space && py.DictSet(space, "__builtins__", py.Builtins()) == 0 && py.SysSet(SPACE, space) == 0)
		return space;
	forget(&space);
	return NULL;
}

/* Have the functions of a source in the namespace. @function: one of them, by which it is known to be there. */
static bool add_functions(object *space, const char *function, const char *source)
{
	OWNED done = NULL;

	if (py.DictGet(space, function))
		return true;
	done = py.RunString(source, FILE_INPUT, space, space, NULL);
	return done != NULL;
}

static bool add_package(object *space)
{
	OWNED source = py.Callable(&source_method, NULL, NULL);
	OWNED its_version = py.BuildValue("s", python_modules_version);
	OWNED has_undo = py.Callable(&undo_method, NULL, NULL);

	for (size_t i = 0; i < sizeof crash_methods / sizeof crash_methods[0]; i++) {
		OWNED one = py.Callable(&crash_methods[i], NULL, NULL);

		if (!one || py.DictSet(space, crash_methods[i].name, one) < 0)
			return false;
	}

	return source && its_version && has_undo && py.DictSet(space, "source", source) == 0 &&
	       py.DictSet(space, "has_undo", has_undo) == 0 && py.DictSet(space, "version", its_version) == 0 &&
	       add_functions(space, "package", package_source);
}

/* Call a function of evaluate.py. False: the user's code has broken it, or the interpreter refuses. */
static bool call_ours(object *space, const char *function, object *argument)
{
	object *callee = py.DictGet(space, function);
	OWNED done = callee ? py.CallObjects(callee, argument, NULL) : NULL;

	if (!done && py.Error())
		py.ErrorClear();
	return done != NULL;
}

static char *copy_of(const char *text, size_t n_bytes)
{
	char *copy = malloc(n_bytes + 1);

	if (copy)
		memcpy(copy, text, n_bytes);
	return copy;
}

/* @answer: result of run(); NULL: none, perhaps with Python's error set. */
static void judge(object *answer, enum outcome *ret, char **ret_text, size_t *ret_bytes)
{
	static const char refused[] = "the interpreter refused to run the code (an audit hook, or no memory)\n";
	static const char interrupted[] = "KeyboardInterrupt\n"; /* a second one, while describing the first */
	const char *text = refused;
	char *bytes;
	ssize_t n;

	*ret = OUTCOME_EXCEPTION;
	*ret_bytes = sizeof refused - 1;
	if (answer && py.BytesText(answer, &bytes, &n) == 0 && n > 0 && (unsigned char)bytes[0] < OUTCOME_N) {
		*ret = (enum outcome)bytes[0];
		*ret_bytes = (size_t)n - 1;
		text = bytes + 1;
	} else if (py.Error() && py.IsError(*py.KeyboardInterrupt)) {
		*ret = OUTCOME_INTERRUPTED;
		*ret_bytes = sizeof interrupted - 1;
		text = interrupted;
	}
	if (py.Error())
		py.ErrorClear();
	*ret_text = copy_of(text, *ret_bytes);
	if (!*ret_text)
		*ret_bytes = 0;
}

void python_evaluate(const char *code, size_t n_bytes, const struct python_side *in, enum outcome *ret, char **ret_text,
		     size_t *ret_bytes)
{
	OWNED space = get_space();
	bool is_whole = space && add_functions(space, "run", evaluate_source) && add_package(space) &&
			call_ours(space, "offer", NULL);
	OWNED source = is_whole ? py.Bytes(code, (ssize_t)n_bytes) : NULL;
	OWNED name = source ? py.Text("<probing>", 9, NULL) : NULL;
	OWNED write = name ? py.Callable(&write_method, NULL, NULL) : NULL;
	OWNED answer = NULL;
	object *run = write ? py.DictGet(space, "run") : NULL;
	bool may_be_pending = false;

	rows_offer_once();
	side = in;
	if (run && call_ours(space, "begin", write)) {
		in->allow_interrupts(true);
		answer = py.CallObjects(run, source, name, NULL);
		may_be_pending = in->allow_interrupts(false);
	}
	judge(answer, ret, ret_text, ret_bytes);
	if (may_be_pending)
		(void)call_ours(space, "absorb", NULL);
	if (write)
		(void)call_ours(space, "end", NULL);
	side = NULL;
}

void python_offer_package(void)
{
	OWNED space = py.DictGet(py.Modules(), "probing") ? NULL : get_space();

	if (space && add_package(space))
		(void)call_ours(space, "offer", NULL);
	if (py.Error())
		py.ErrorClear();
}

/* ---- Keys that a module applies ---- */

static const char *text_of(const struct config *config, unsigned key, char text[CONFIG_MAX_TEXT])
{
	text[0] = '\0';
	if (config->values[key].is_set)
		config_format(config, key, text);
	return text;
}

static const char *short_name(unsigned key)
{
	return config_keys[key]->name + sizeof "probing." - 1;
}

void python_apply(const struct config *config)
{
	char text[CONFIG_MAX_TEXT];

	for (unsigned i = 0; i < n_config_keys; i++) {
		OWNED space = NULL;
		OWNED arguments = NULL;

		if (!config_keys[i]->module || !config->values[i].is_set)
			continue;
		space = get_space();
		if (space && add_package(space))
			arguments = py.BuildValue("(sss)", config_keys[i]->module, short_name(i),
						  text_of(config, i, text));
		if (arguments)
			(void)call_ours(space, "apply", arguments);
		if (py.Error())
			py.ErrorClear();
	}
}

char *python_apply_code(const struct config *config, unsigned key)
{
	static const char begin[] = "__import__('sys')._probing_agent['call']('%s', 'configure', '%s', b'";
	char text[CONFIG_MAX_TEXT], *code;
	size_t n_bytes = sizeof begin + 2 * CONFIG_MAX_NAME + 4 * sizeof text, n;

	code = malloc(n_bytes);
	if (!code)
		return NULL;
	n = (size_t)snprintf(code, n_bytes, begin, config_keys[key]->module, short_name(key));
	for (const char *at = text_of(config, key, text); *at; at++)
		n += (size_t)snprintf(code + n, n_bytes - n, "\\x%02x", (unsigned)(unsigned char)*at);
	snprintf(code + n, n_bytes - n, "'.decode())");
	return code;
}
