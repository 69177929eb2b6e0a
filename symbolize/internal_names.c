/* SPDX-License-Identifier: MIT */
/* internal_names.c - names of interpreter-internal functions.
 *
 * The functions between one frame of interest and the next: the evaluation
 * loop, the calling conventions, slots that call Python methods, start-up and
 * thread start, the path to the garbage collector. Functions with work of their own are not internal and stay visible:
 * builtins, imports, allocation, garbage collection, comparison, look-ups.
 *
 * A trailing '*' is a wildcard; take care
 * that it matches no more (PyObject_Calloc, wrap_strftime). To add one, look at
 * `nm` of an interpreter of that version and keep the groups.
 * Source: the symbols of CPython 2.7 and 3.6 to 3.13.
 */
#include <string.h>

#include "base/util.h"
#include "symbolize/symbolize.h"

static const char *const glue_names[] = {
	/* evaluation loop, entering and leaving it */
	"_PyEval_EvalFrameDefault",
	"_PyEval_EvalFrame",
	"PyEval_EvalFrame",
	"PyEval_EvalFrameEx",
	"_PyEval_Vector",
	"PyEval_EvalCode",
	"PyEval_EvalCodeEx",
	"_PyEval_EvalCode",
	"_PyEval_EvalCodeWithName",
	"_PyEvalFramePushAndInit",
	"_PyEvalFramePushAndInit_Ex",
	"_PyEvalFrameClearAndPop",
	"_PyEval_FrameClearAndPop",
	"_TAIL_CALL_*",
	"py_trampoline_evaluator",
	"_Py_trampoline_func_start",

	/* calls */
	"PyObject_Call",
	"PyObject_CallFunction*",
	"PyObject_CallMethod*",
	"PyObject_CallNoArgs",
	"PyObject_CallObject",
	"PyObject_CallOneArg",
	"PyObject_Vectorcall*",
	"PyVectorcall_*",
	"_PyObject_Call",
	"_PyObject_Call_Prepend",
	"_PyObject_CallFunction*",
	"_PyObject_CallMethod*",
	"_PyObject_CallNoArg*",
	"_PyObject_CallOneArg",
	"_PyObject_FastCall*",
	"_PyObject_MakeTpCall",
	"_PyObject_Vectorcall*",
	"_PyVectorcall_*",
	"_PyStack_*",
	"_Py_CheckFunctionResult",
	"PyEval_CallFunction",
	"PyEval_CallMethod",
	"PyEval_CallObjectWithKeywords",
	"object_vacall",
	"vectorcall_method",
	"vectorcall_maybe",
	"vectorcall_unbound",
	"call_method",
	"call_maybe",
	"call_unbound",
	"call_unbound_noarg",
	"call_function_tail",
	"call_function",
	"fast_function",
	"do_call",
	"do_call_core",
	"ext_do_call",
	"trace_call_function",

	/* calls into the import machinery in Python, which is internal, too */
	"import_find_and_load",

	/* calls into the garbage collector, which gets a frame of its own */
	"collect_generations",
	"collect_with_callback",
	"gc_collect_generations",
	"gc_collect_with_callback",
	"gc_collect_internal",
	"_Py_RunGC",
	"_Py_HandlePending",

	/* callables */
	"_PyFunction_Vectorcall",
	"_PyFunction_FastCall*",
	"function_code_fastcall",
	"function_call",
	"PyCFunction_Call",
	"_PyCFunction_FastCall*",
	"_PyMethodDef_RawFastCall*",
	"_PyMethodDescr_*",
	"_PyCFunctionWithKeywords_TrampolineCall",
	"_PyCFunction_TrampolineCall",
	"cfunction_vectorcall_*",
	"cfunction_call",
	"cfunction_call_varargs",
	"cfunction_enter_call",
	"cfunction_check_kwargs",
	"method_vectorcall*",
	"method_enter_call",
	"method_check_args",
	"method_call",
	"methoddescr_call",
	"classmethoddescr_call",
	"instancemethod_call",
	"instance_call",
	"wrapperdescr_call",
	"wrapperdescr_raw_call",
	"wrapper_call",
	"type_call",
	"_Py_EnterRecursiveCall*",
	"_Py_LeaveRecursiveCall*",

	/* slots that call Python methods, and methods that call slots */
	"slot_*",
	"_Py_slot_*",
	"wrap_binaryfunc*",
	"wrap_buffer",
	"wrap_call",
	"wrap_cmpfunc",
	"wrap_del",
	"wrap_delattr",
	"wrap_delitem",
	"wrap_descr_*",
	"wrap_hashfunc",
	"wrap_indexargfunc",
	"wrap_init",
	"wrap_inquirypred",
	"wrap_lenfunc",
	"wrap_next",
	"wrap_objobj*",
	"wrap_releasebuffer",
	"wrap_richcmpfunc",
	"richcmp_eq",
	"richcmp_ge",
	"richcmp_gt",
	"richcmp_le",
	"richcmp_lt",
	"richcmp_ne",
	"wrap_setattr",
	"wrap_sq_*",
	"wrap_ternaryfunc*",
	"wrap_unaryfunc",

	/* resuming generators */
	"gen_send_ex",
	"gen_send_ex2",
	"gen_iternext",
	"PyGen_am_send",
	"gen_am_send",
	"PyIter_Send",

	/* start of program and threads */
	"_start",
	"main",
	"Py_BytesMain",
	"Py_Main",
	"Py_FrozenMain",
	"Py_RunMain",
	"pymain_*",
	"PyRun_*",
	"_PyRun_*",
	"pyrun_*",
	"run_mod",
	"run_eval_code_obj",
	"run_pyc_file",
	"RunModule",
	"RunInteractiveHook",
	"thread_run",
	"t_bootstrap",
	"pythread_wrapper",

	/* the same, if only method tables are known */
	"slot *",
	"type.__call__",
	"function.__call__",
	"method.__call__",
	"instancemethod.__call__",
	"builtin_function_or_method.__call__",
	"method_descriptor.__call__",
	"classmethod_descriptor.__call__",
	"wrapper_descriptor.__call__",
	"method-wrapper.__call__",
	"generator.__next__",
	"generator am_send",
	"coroutine am_send",
	"async_generator am_send",
};

/* Compare byte by byte: almost every name of an interpreter differs in its first bytes. */
static bool matches(const char *pattern, const char *name)
{
	while (*pattern == *name && *pattern != '\0') {
		pattern++;
		name++;
	}
	return *pattern == '*' || *pattern == *name;
}

bool symbol_is_internal(const char *linkage)
{
	for (size_t i = 0; i < N_ELEMENTS(glue_names); i++)
		if (matches(glue_names[i], linkage))
			return true;
	return false;
}

/* Interpreters without frozen modules, and 3.4, load these from files. */
bool symbol_is_import_file(const char *file)
{
	static const char *const frozen[] = { "<frozen importlib._bootstrap>",
					      "<frozen importlib._bootstrap_external>" };
	static const char *const files[] = { "/importlib/_bootstrap.py", "/importlib/_bootstrap_external.py" };
	const size_t n = file ? strlen(file) : 0;

	for (size_t i = 0; file && i < N_ELEMENTS(frozen); i++)
		if (strcmp(file, frozen[i]) == 0)
			return true;
	for (size_t i = 0; file && i < N_ELEMENTS(files); i++)
		if (n > strlen(files[i]) && strcmp(file + n - strlen(files[i]), files[i]) == 0)
			return true;
	return false;
}

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *name, const char *suffix)
{
	size_t n = strlen(name), n_suffix = strlen(suffix);

	return n >= n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

/* argument_loader::call() and call_impl(), which debug information names without their class in some compilers. */
static bool is_argument_loader(const char *name)
{
	if (begins(name, "pybind11::detail::argument_loader<"))
		return strstr(name, ">::call") != NULL;
	return (begins(name, "call<") || begins(name, "call_impl<")) && strstr(name, "pybind11::detail::void_type");
}

bool symbol_is_pybind11(const char *name, bool is_inlined)
{
	static const char dispatcher[] = "pybind11::cpp_function::dispatcher";

	if (!is_inlined)
		return strcmp(name, dispatcher) == 0;
	return is_argument_loader(name) || (begins(name, "pybind11::cpp_function::") && ends(name, "::operator()"));
}

/*
 * The innermost function that every collection passes through. Source: Modules/gcmodule.c of 2.7 and 3.6 to 3.12,
 * Python/gc.c and Python/gc_free_threading.c from 3.13 on.
 */
bool symbol_is_collector(const char *linkage)
{
	static const char *const names[] = {
		"collect",         /* up to 3.8 */
		"gc_collect_main", /* 3.9 to 3.13, and without the GIL */
		"_PyGC_Collect",   /* 3.14 */
	};

	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		if (strcmp(linkage, names[i]) == 0)
			return true;
	return false;
}
