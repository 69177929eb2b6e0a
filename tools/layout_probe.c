/* SPDX-License-Identifier: MIT */
/* layout_probe.c - prints where a CPython release has what probing reads.
 *
 * Compiled by tools/layout_probe.py against the headers of one release, 2.7 or 3.4
 * and later. It calls nothing of Python's, so that no library is needed.
 * Output: VERSION, FREE_THREADED and, from 3.13, N_WORDS, the length of
 * _Py_DebugOffsets in words of 8 bytes; then for each field of
 * unwind/cpython/layout.h that this release has a line "offset FIELD N", or, where the
 * runtime itself tells it, "word FIELD INDEX N", with the index of the word that does.
 */
#define Py_BUILD_CORE 1
#define NDEBUG 1 /* no object is one here */
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>

#if PY_VERSION_HEX < 0x030b0000
#include <longintrepr.h>
#endif
#if PY_VERSION_HEX >= 0x030a0000
#include <internal/pycore_moduleobject.h>
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>
#endif

#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#elif PY_VERSION_HEX >= 0x03080000
#include <internal/pycore_pystate.h>
#elif PY_VERSION_HEX >= 0x03070000
#include <internal/pystate.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_frame.h>
#include <internal/pycore_interpframe_structs.h>
#elif PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif

#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_ceval.h>
#include <internal/pycore_runtime_init.h>
static _PyRuntimeState runtime = _PyRuntimeState_INIT(runtime, _Py_Debug_Cookie);

/* A field that the runtime tells, and what it says must be what the headers say. */
#define TOLD(name, member, value)                                                                                      \
	do {                                                                                                           \
		if (runtime.debug_offsets.member != (value))                                                           \
			printf("wrong %s\n", #name);                                                                   \
		printf("word %s %zu %zu\n", #name, offsetof(_Py_DebugOffsets, member) / 8, (size_t)(value));           \
	} while (0)
#else
#define TOLD(name, member, value) PRINT(name, value)
#endif
#if PY_VERSION_HEX >= 0x030e0000
#define TOLD_FROM_3_14(name, member, value) TOLD(name, member, value)
#else
#define TOLD_FROM_3_14(name, member, value) PRINT(name, value)
#endif
#if PY_VERSION_HEX >= 0x030f0000
#define TOLD_FROM_3_15(name, member, value) TOLD(name, member, value)
#else
#define TOLD_FROM_3_15(name, member, value) PRINT(name, value)
#endif

/* What headers had not before: how a dict keeps its keys (3.6 to 3.10), and a module object. */
#if PY_VERSION_HEX >= 0x030b0000
typedef struct _dictkeysobject keys_of_dict;
#else
typedef struct {
	Py_ssize_t dk_refcnt, dk_size;
	void *dk_lookup;
	Py_ssize_t dk_usable, dk_nentries;
	char dk_indices[8];
} keys_of_dict;
#endif
#if PY_VERSION_HEX < 0x030a0000
typedef struct {
	PyObject_HEAD PyObject *md_dict;
} PyModuleObject;
#endif

#define PRINT(name, value) printf("offset %s %zu\n", #name, (size_t)(value))

/* Types, instances and containers. */
static void print_objects(void)
{
	TOLD(TYPE_NAME, type_object.tp_name, offsetof(PyTypeObject, tp_name));
	TOLD(TYPE_FLAGS, type_object.tp_flags, offsetof(PyTypeObject, tp_flags));
	TOLD_FROM_3_15(TYPE_BASIC_SIZE, type_object.tp_basicsize, offsetof(PyTypeObject, tp_basicsize));
	PRINT(TYPE_ITEM_SIZE, offsetof(PyTypeObject, tp_itemsize));
	TOLD_FROM_3_15(TYPE_DICT_OFFSET, type_object.tp_dictoffset, offsetof(PyTypeObject, tp_dictoffset));
	PRINT(TYPE_WEAKREF_OFFSET, offsetof(PyTypeObject, tp_weaklistoffset));
	PRINT(TYPE_BASE, offsetof(PyTypeObject, tp_base));
	PRINT(TYPE_DICT, offsetof(PyTypeObject, tp_dict));
#if PY_VERSION_HEX >= 0x030b0000
	TOLD_FROM_3_15(TYPE_KEYS, heap_type_object.ht_cached_keys, offsetof(PyHeapTypeObject, ht_cached_keys));
#endif
	PRINT(MODULE_DICT, offsetof(PyModuleObject, md_dict));
#if PY_VERSION_HEX >= 0x030c0000
	TOLD(INTERPRETER_MODULES, interpreter_state.imports_modules, offsetof(PyInterpreterState, imports.modules));
#else
	PRINT(INTERPRETER_MODULES, offsetof(PyInterpreterState, modules));
#endif

	/* Where an instance keeps its attributes: as bytes before it. */
#if PY_VERSION_HEX >= 0x030d0000
	PRINT(MANAGED_DICT, -MANAGED_DICT_OFFSET);
#elif PY_VERSION_HEX >= 0x030b0000
	{
		static PyObject *before[8];
		PyObject *object = (PyObject *)(before + 4);

#if PY_VERSION_HEX >= 0x030c0000
		PRINT(MANAGED_DICT, (char *)object - (char *)_PyObject_DictOrValuesPointer(object));
#else
		PRINT(MANAGED_DICT, (char *)object - (char *)_PyObject_ManagedDictPointer(object));
		PRINT(MANAGED_VALUES, (char *)object - (char *)_PyObject_ValuesPointer(object));
#endif
	}
#endif
#if PY_VERSION_HEX >= 0x030b0000
	PRINT(VALUES_ITEMS, offsetof(PyDictValues, values));
#else
	PRINT(VALUES_ITEMS, 0);
#endif
#if PY_VERSION_HEX >= 0x030d0000
	PRINT(VALUES_VALID, offsetof(PyDictValues, valid));
#endif

	/* Containers. */
	PRINT(DICT_USED, offsetof(PyDictObject, ma_used));
#if PY_MAJOR_VERSION == 2
	PRINT(DICT_MASK, offsetof(PyDictObject, ma_mask));
	PRINT(DICT_TABLE, offsetof(PyDictObject, ma_table));
#else
	TOLD(DICT_KEYS, dict_object.ma_keys, offsetof(PyDictObject, ma_keys));
	TOLD(DICT_VALUES, dict_object.ma_values, offsetof(PyDictObject, ma_values));
#if PY_VERSION_HEX >= 0x030b0000
	PRINT(KEYS_LOG2_INDEX_BYTES, offsetof(keys_of_dict, dk_log2_index_bytes));
	PRINT(KEYS_KIND, offsetof(keys_of_dict, dk_kind));
#else
	PRINT(KEYS_SIZE, offsetof(keys_of_dict, dk_size));
#endif
	PRINT(KEYS_N_ENTRIES, offsetof(keys_of_dict, dk_nentries));
	PRINT(KEYS_TABLE, offsetof(keys_of_dict, dk_indices));
#endif
	TOLD(LIST_ITEMS, list_object.ob_item, offsetof(PyListObject, ob_item));
	TOLD(TUPLE_ITEMS, tuple_object.ob_item, offsetof(PyTupleObject, ob_item));
	TOLD_FROM_3_14(SET_USED, set_object.used, offsetof(PySetObject, used));
	TOLD_FROM_3_14(SET_MASK, set_object.mask, offsetof(PySetObject, mask));
	TOLD_FROM_3_14(SET_TABLE, set_object.table, offsetof(PySetObject, table));
	PRINT(SET_ENTRY_KEY, offsetof(setentry, key));
	PRINT(SET_ENTRY_HASH, offsetof(setentry, hash));
	PRINT(WEAKREF_OBJECT, offsetof(PyWeakReference, wr_object));
	PRINT(CELL_OBJECT, offsetof(PyCellObject, ob_ref));
	PRINT(MEMBER_DEFINITION, offsetof(PyMemberDescrObject, d_member));
}

/* Numbers, text, functions. */
static void print_values(void)
{
#if PY_MAJOR_VERSION == 2
	PRINT(INT_VALUE, offsetof(PyIntObject, ob_ival));
	PRINT(UNICODE_LENGTH, offsetof(PyUnicodeObject, length));
	PRINT(UNICODE_DATA, offsetof(PyUnicodeObject, str));
	PRINT(FUNCTION_NAME, offsetof(PyFunctionObject, func_name));
#else
	PRINT(FUNCTION_NAME, offsetof(PyFunctionObject, func_qualname));
#endif
#if PY_VERSION_HEX >= 0x030c0000
	TOLD(LONG_TAG, long_object.lv_tag, offsetof(PyLongObject, long_value.lv_tag));
	TOLD(LONG_DIGITS, long_object.ob_digit, offsetof(PyLongObject, long_value.ob_digit));
#else
	PRINT(LONG_DIGITS, offsetof(PyLongObject, ob_digit));
#endif
	TOLD(FLOAT_VALUE, float_object.ob_fval, offsetof(PyFloatObject, ob_fval));
	PRINT(EXCEPTION_ARGUMENTS, offsetof(PyBaseExceptionObject, args));
	PRINT(COMPLEX_VALUE, offsetof(PyComplexObject, cval));
}

/* A frame's variables, and what they are called. */
static void print_variables(void)
{
#if PY_VERSION_HEX >= 0x030b0000
	TOLD(FRAME_VARIABLES, interpreter_frame.localsplus, offsetof(_PyInterpreterFrame, localsplus));
	PRINT(FRAME_NAMESPACE, offsetof(_PyInterpreterFrame, f_locals));
	PRINT(CODE_N_VARIABLES, offsetof(PyCodeObject, co_nlocalsplus));
	TOLD(CODE_VARIABLES, code_object.localsplusnames, offsetof(PyCodeObject, co_localsplusnames));
	TOLD(CODE_VARIABLE_KINDS, code_object.localspluskinds, offsetof(PyCodeObject, co_localspluskinds));
#else
	PRINT(FRAME_VARIABLES, offsetof(PyFrameObject, f_localsplus));
	PRINT(FRAME_NAMESPACE, offsetof(PyFrameObject, f_locals));
	PRINT(CODE_VARIABLES, offsetof(PyCodeObject, co_varnames));
	PRINT(CODE_CELLS, offsetof(PyCodeObject, co_cellvars));
	PRINT(CODE_FREE_VARIABLES, offsetof(PyCodeObject, co_freevars));
#endif
	PRINT(CODE_FLAGS, offsetof(PyCodeObject, co_flags));
}

int main(void)
{
	printf("VERSION %#lx\n", (unsigned long)PY_VERSION_HEX);
#ifdef Py_GIL_DISABLED
	printf("FREE_THREADED 1\n");
#else
	printf("FREE_THREADED 0\n");
#endif
#if PY_VERSION_HEX >= 0x03070000
	TOLD(RUNTIME_INTERPRETERS, runtime_state.interpreters_head, offsetof(struct pyruntimestate, interpreters.head));
#endif
#if PY_VERSION_HEX >= 0x030d0000
	printf("N_WORDS %zu\n", sizeof(_Py_DebugOffsets) / 8);
#endif
	TOLD(OBJECT_TYPE, pyobject.ob_type, offsetof(PyObject, ob_type));
	TOLD(OBJECT_SIZE, bytes_object.ob_size, offsetof(PyVarObject, ob_size));

	/* Interpreters and threads. */
	TOLD(INTERPRETER_NEXT, interpreter_state.next, offsetof(PyInterpreterState, next));
#if PY_VERSION_HEX >= 0x030b0000
	TOLD(INTERPRETER_THREADS, interpreter_state.threads_head, offsetof(PyInterpreterState, threads.head));
	TOLD(THREAD_NATIVE_ID, thread_state.native_thread_id, offsetof(PyThreadState, native_thread_id));
#else
	PRINT(INTERPRETER_THREADS, offsetof(PyInterpreterState, tstate_head));
	PRINT(THREAD_PTHREAD, offsetof(PyThreadState, thread_id));
#endif
	TOLD(THREAD_IDENT, thread_state.thread_id, offsetof(PyThreadState, thread_id));
	TOLD(THREAD_NEXT, thread_state.next, offsetof(PyThreadState, next));
	TOLD(THREAD_INTERPRETER, thread_state.interp, offsetof(PyThreadState, interp));
#if PY_VERSION_HEX >= 0x030d0000
	TOLD(THREAD_FRAME, thread_state.current_frame, offsetof(PyThreadState, current_frame));
#elif PY_VERSION_HEX >= 0x030b0000
	PRINT(THREAD_CFRAME, offsetof(PyThreadState, cframe));
	PRINT(THREAD_ROOT_CFRAME, offsetof(PyThreadState, root_cframe));
	PRINT(CFRAME_FRAME, offsetof(_PyCFrame, current_frame));
	PRINT(CFRAME_PREVIOUS, offsetof(_PyCFrame, previous));
#else
	PRINT(THREAD_FRAME, offsetof(PyThreadState, frame));
#endif

#if PY_VERSION_HEX >= 0x03070000
	TOLD(INTERPRETER_ID, interpreter_state.id, offsetof(PyInterpreterState, id));
#endif

	/* Who holds the GIL, and whether garbage is being collected. */
#if PY_VERSION_HEX >= 0x030c0000
	TOLD(INTERPRETER_GIL, interpreter_state.ceval_gil, offsetof(PyInterpreterState, ceval.gil));
	TOLD(INTERPRETER_OWN_GIL, interpreter_state.gil_runtime_state, offsetof(PyInterpreterState, _gil));
	TOLD(INTERPRETER_OWN_GIL_LOCKED, interpreter_state.gil_runtime_state_locked,
	     offsetof(PyInterpreterState, _gil.locked));
	TOLD(INTERPRETER_OWN_GIL_HOLDER, interpreter_state.gil_runtime_state_holder,
	     offsetof(PyInterpreterState, _gil.last_holder));
#elif PY_VERSION_HEX >= 0x03070000
	PRINT(RUNTIME_CURRENT_THREAD, offsetof(struct pyruntimestate, gilstate.tstate_current));
	PRINT(RUNTIME_GIL, offsetof(struct pyruntimestate, ceval.gil));
#endif
#if PY_VERSION_HEX >= 0x03070000
	PRINT(GIL_BYTES, sizeof(struct _gil_runtime_state));
#endif
#if PY_VERSION_HEX >= 0x030d0000
	TOLD(INTERPRETER_GC, interpreter_state.gc, offsetof(PyInterpreterState, gc));
	TOLD(GC_COLLECTING, gc.collecting, offsetof(struct _gc_runtime_state, collecting));
#elif PY_VERSION_HEX >= 0x03090000
	PRINT(INTERPRETER_GC, offsetof(PyInterpreterState, gc));
	PRINT(GC_COLLECTING, offsetof(struct _gc_runtime_state, collecting));
#elif PY_VERSION_HEX >= 0x03070000
	PRINT(RUNTIME_GC, offsetof(struct pyruntimestate, gc));
	PRINT(GC_COLLECTING, offsetof(struct _gc_runtime_state, collecting));
#endif
#ifdef Py_GIL_DISABLED
	PRINT(GIL_ENABLED, offsetof(struct _gil_runtime_state, enabled));
#endif

	/* Scripts that are run for somebody outside: PEP 768. */
#if PY_VERSION_HEX >= 0x030e0000
	TOLD(INTERPRETER_REMOTE_DEBUG, debugger_support.remote_debugging_enabled,
	     offsetof(PyInterpreterState, config.remote_debug));
	TOLD(THREAD_BREAKER, debugger_support.eval_breaker, offsetof(PyThreadState, eval_breaker));
	TOLD(THREAD_DEBUGGER, debugger_support.remote_debugger_support,
	     offsetof(PyThreadState, remote_debugger_support));
	TOLD(DEBUGGER_PENDING, debugger_support.debugger_pending_call,
	     offsetof(_PyRemoteDebuggerSupport, debugger_pending_call));
	TOLD(DEBUGGER_SCRIPT, debugger_support.debugger_script_path,
	     offsetof(_PyRemoteDebuggerSupport, debugger_script_path));
	TOLD(DEBUGGER_SCRIPT_BYTES, debugger_support.debugger_script_path_size,
	     sizeof((_PyRemoteDebuggerSupport *)0)->debugger_script_path);
#endif

	/* Frames. */
#if PY_VERSION_HEX >= 0x030b0000
	TOLD(FRAME_PREVIOUS, interpreter_frame.previous, offsetof(_PyInterpreterFrame, previous));
	TOLD(FRAME_OWNER, interpreter_frame.owner, offsetof(_PyInterpreterFrame, owner));
#else
	TOLD(FRAME_PREVIOUS, interpreter_frame.previous, offsetof(PyFrameObject, f_back));
	PRINT(FRAME_CODE, offsetof(PyFrameObject, f_code));
	PRINT(FRAME_LAST_INSTRUCTION, offsetof(PyFrameObject, f_lasti));
#endif
#if PY_VERSION_HEX >= 0x030d0000
	TOLD(FRAME_CODE, interpreter_frame.executable, offsetof(_PyInterpreterFrame, f_executable));
	TOLD(FRAME_INSTRUCTION, interpreter_frame.instr_ptr, offsetof(_PyInterpreterFrame, instr_ptr));
#elif PY_VERSION_HEX >= 0x030b0000
	PRINT(FRAME_CODE, offsetof(_PyInterpreterFrame, f_code));
	PRINT(FRAME_INSTRUCTION, offsetof(_PyInterpreterFrame, prev_instr));
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
	PRINT(FRAME_ENTRY, offsetof(_PyInterpreterFrame, is_entry));
#endif
#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
	TOLD(FRAME_BYTECODE_INDEX, interpreter_frame.tlbc_index, offsetof(_PyInterpreterFrame, tlbc_index));
	TOLD(CODE_BYTECODES, code_object.co_tlbc, offsetof(PyCodeObject, co_tlbc));
#endif

	/* What a frame, and a coroutine, is in the middle of. */
#if PY_VERSION_HEX >= 0x030e0000
	TOLD(FRAME_LOCALS, interpreter_frame.localsplus, offsetof(_PyInterpreterFrame, localsplus));
	TOLD(FRAME_STACK_TOP, interpreter_frame.stackpointer, offsetof(_PyInterpreterFrame, stackpointer));
	TOLD(GENERATOR_FRAME, gen_object.gi_iframe, offsetof(PyGenObject, gi_iframe));
	TOLD(GENERATOR_STATE, gen_object.gi_frame_state, offsetof(PyGenObject, gi_frame_state));
	PRINT(GENERATOR_AWAITS, (unsigned char)FRAME_SUSPENDED_YIELD_FROM);
#elif PY_VERSION_HEX >= 0x030b0000
	PRINT(FRAME_LOCALS, offsetof(_PyInterpreterFrame, localsplus));
	PRINT(FRAME_STACK_DEPTH, offsetof(_PyInterpreterFrame, stacktop));
	PRINT(GENERATOR_FRAME, offsetof(PyGenObject, gi_iframe));
	PRINT(GENERATOR_STATE, offsetof(PyGenObject, gi_frame_state));
#if PY_VERSION_HEX >= 0x030d0000
	PRINT(GENERATOR_AWAITS, (unsigned char)FRAME_SUSPENDED_YIELD_FROM);
#else
	PRINT(GENERATOR_AWAITS, (unsigned char)FRAME_SUSPENDED);
#endif
#else
	PRINT(FRAME_STACK, offsetof(PyFrameObject, f_valuestack));
#if PY_VERSION_HEX >= 0x030a0000
	PRINT(FRAME_STACK_DEPTH, offsetof(PyFrameObject, f_stackdepth));
#else
	PRINT(FRAME_STACK_TOP, offsetof(PyFrameObject, f_stacktop));
#endif
	PRINT(GENERATOR_FRAME, offsetof(PyGenObject, gi_frame));
#endif
#if PY_VERSION_HEX >= 0x030b0000
	PRINT(GENERATOR_RUNS, FRAME_EXECUTING);
	PRINT(CODE_N_LOCALS, offsetof(PyCodeObject, co_nlocalsplus));
#endif

	/* Code objects. */
	TOLD(CODE_FIRST_LINE, code_object.firstlineno, offsetof(PyCodeObject, co_firstlineno));
	TOLD(CODE_FILE, code_object.filename, offsetof(PyCodeObject, co_filename));
	TOLD(CODE_NAME, code_object.name, offsetof(PyCodeObject, co_name));
#if PY_VERSION_HEX >= 0x030b0000
	TOLD(CODE_QUALNAME, code_object.qualname, offsetof(PyCodeObject, co_qualname));
	TOLD(CODE_BYTECODE, code_object.co_code_adaptive, offsetof(PyCodeObject, co_code_adaptive));
#else
	PRINT(CODE_BYTECODE_OBJECT, offsetof(PyCodeObject, co_code));
#endif
#if PY_VERSION_HEX >= 0x030c0000
	PRINT(CODE_VERSION, offsetof(PyCodeObject, co_version));
#endif
#if PY_VERSION_HEX >= 0x030a0000
	TOLD(CODE_LINES, code_object.linetable, offsetof(PyCodeObject, co_linetable));
#else
	PRINT(CODE_LINES, offsetof(PyCodeObject, co_lnotab));
#endif

	/* Bytes and names. */
#if PY_MAJOR_VERSION == 2
	PRINT(BYTES_DATA, offsetof(PyStringObject, ob_sval));
	PRINT(STRING_LENGTH, offsetof(PyVarObject, ob_size));
	PRINT(STRING_HASH, offsetof(PyStringObject, ob_shash));
#else
	TOLD(BYTES_DATA, bytes_object.ob_sval, offsetof(PyBytesObject, ob_sval));
	TOLD(STRING_LENGTH, unicode_object.length, offsetof(PyASCIIObject, length));
	PRINT(STRING_HASH, offsetof(PyASCIIObject, hash));
	TOLD(STRING_STATE, unicode_object.state, offsetof(PyASCIIObject, state));
	TOLD(STRING_ASCII_DATA, unicode_object.asciiobject_size, sizeof(PyASCIIObject));
	PRINT(STRING_COMPACT_DATA, sizeof(PyCompactUnicodeObject));
	{
		/* The bit that a kind of 1 sets. */
		union {
			PyASCIIObject object;
			unsigned char bytes[sizeof(PyASCIIObject)];
		} string = { .bytes = { 0 } };
		unsigned bit = 0;

		string.object.state.kind = 1;
		while (!(string.bytes[offsetof(PyASCIIObject, state) + bit / 8] >> bit % 8 & 1))
			bit++;
		PRINT(STRING_KIND_BIT, bit);
	}
#endif
	print_objects();
	print_values();
	print_variables();
	return 0;
}
