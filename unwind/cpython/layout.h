/* SPDX-License-Identifier: MIT */
/* layout.h - the layout of an interpreter's structures: data, not code.
 *
 * A release has a file in unwind/cpython/releases, made from its headers by
 * tools/layout_probe.py: offsets, and from 3.13 the words of the runtime's
 * debug offsets that replace them. A version without a file is refused, never read
 * with a neighbour's. Other differences are fields too, with named values
 * (behaviours.h). A field that a release does not have is ABSENT.
 */
#ifndef PROBING_LAYOUT_H
#define PROBING_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ABSENT = -1 };

/* Root of all structures: _PyRuntime, or the thread that holds the GIL. */
enum { ROOT_CURRENT_THREAD, ROOT_RUNTIME };
/* Type of an evaluation's anchor. */
enum { ANCHOR_FRAME, ANCHOR_CFRAME, ANCHOR_SHIM };
/* End of an evaluation's chain of frames. */
enum { ENTRY_EACH, ENTRY_FLAG, ENTRY_OWNER };
/* Encoding of lines (line_table.c). */
enum { LINES_UNSIGNED_DELTAS, LINES_SIGNED_DELTAS, LINES_RANGES, LINES_LOCATIONS };
/* Where the GIL is: a lock of its own, the interpreter's own variables, a part of _PyRuntime, or where each
 * interpreter points. */
enum { GIL_LOCK, GIL_VARIABLES, GIL_RUNTIME, GIL_POINTER };
/* Type of names: bytes in an unknown encoding, or text. */
enum { STRINGS_BYTES, STRINGS_COMPACT };

/* A dict's entries: a table; a table in the keys; in insertion order behind an index, and
 * with or without hashes, depending on the keys' kind. */
enum { DICTS_TABLE, DICTS_KEYS_TABLE, DICTS_INDEX, DICTS_KINDS };
/* Where instances have their attributes, beside a dict: nowhere; in values that are pointed to; the
 * same, by the pointer to the dict less one; in values within the instance. */
enum { INSTANCES_DICT, INSTANCES_VALUES, INSTANCES_TAGGED, INSTANCES_INLINE };

/* The futex of a thread that waits for a lock object: a semaphore behind the object's pointer; the thread's own; or the
 * former for an RLock, and either for a Lock, which changed between patch releases. */
enum { LOCKS_SEMAPHORE, LOCKS_EITHER, LOCKS_PARKED };

/* Where asyncio has its tasks: in its class, or variables of its C code; in its module; or in lists of the
 * interpreter's. */
enum { TASKS_CLASS, TASKS_MODULE, TASKS_LISTS };

#define LAYOUT_FIELDS(X)                                                                                                       \
	X(RUNTIME_INTERPRETERS) /* _PyRuntime: head of the list of interpreters */                                             \
	X(OBJECT_TYPE)                                                                                                         \
	X(OBJECT_SIZE) /* number of items, of objects that have some */                                                        \
	X(INTERPRETER_NEXT)                                                                                                    \
	X(INTERPRETER_ID)                                                                                                      \
	X(INTERPRETER_THREADS) /* head of its list of threads */                                                               \
	X(THREAD_NEXT)                                                                                                         \
	X(THREAD_INTERPRETER)                                                                                                  \
	X(THREAD_NATIVE_ID)       /* the operating system's thread id */                                                       \
	X(THREAD_PTHREAD)         /* pthread_self(), where there is no such id */                                              \
	X(THREAD_IDENT)           /* threading.get_ident(), which is pthread_self() */                                         \
	X(RUNTIME_CURRENT_THREAD) /* the thread that holds the GIL; before: a symbol, later: in the GIL */                     \
	X(RUNTIME_GC)             /* state of the garbage collector */                                                         \
	X(INTERPRETER_GC)         /* the same, one an interpreter */                                                           \
	X(INTERPRETER_GIL)        /* pointer to the GIL it uses */                                                             \
	X(INTERPRETER_OWN_GIL)    /* a GIL, used or not; shows the layout of one */                                            \
	X(INTERPRETER_OWN_GIL_LOCKED)                                                                                          \
	X(INTERPRETER_OWN_GIL_HOLDER)                                                                                          \
	X(RUNTIME_GIL)              /* the GIL itself, if all interpreters share one */                                        \
	X(GIL_BYTES)                /* size of one, with all that threads wait on */                                           \
	X(GIL_ENABLED)              /* free-threaded builds: whether there is one at all */                                    \
	X(GC_COLLECTING)            /* in the collector's state: whether it runs */                                            \
	X(INTERPRETER_REMOTE_DEBUG) /* int: whether other processes may run scripts (PEP 768) */                               \
	X(THREAD_BREAKER)           /* makes a thread leave its instructions for a moment */                                   \
	X(THREAD_DEBUGGER)          /* the script that it shall run then: */                                                   \
	X(DEBUGGER_PENDING)         /* int: whether there is something */                                                      \
	X(DEBUGGER_SCRIPT)          /* its path, */                                                                            \
	X(DEBUGGER_SCRIPT_BYTES)    /* size of the path's buffer */                                                            \
	X(THREAD_CFRAME)                                                                                                       \
	X(THREAD_ROOT_CFRAME) /* inside the thread state: the outermost _PyCFrame */                                           \
	X(THREAD_FRAME)       /* innermost frame */                                                                            \
	X(CFRAME_FRAME)                                                                                                        \
	X(CFRAME_PREVIOUS)                                                                                                     \
	X(FRAME_CODE)                                                                                                          \
	X(FRAME_PREVIOUS)                                                                                                      \
	X(FRAME_INSTRUCTION)      /* pointer into the bytecode */                                                              \
	X(FRAME_LAST_INSTRUCTION) /* index of the running instruction */                                                       \
	X(FRAME_ENTRY)            /* byte: this is an evaluation's outermost frame */                                          \
	X(FRAME_OWNER)            /* byte: owner of the frame's memory */                                                      \
	X(FRAME_BYTECODE_INDEX)   /* which of the code's bytecodes, one a thread, it runs */                                   \
	X(FRAME_LOCALS)           /* where its local variables begin, and behind them its stack */                             \
	X(FRAME_STACK)            /* pointer to where its stack begins, of frame objects */                                    \
	X(FRAME_STACK_TOP)        /* pointer to the end of its stack */                                                        \
	X(FRAME_STACK_DEPTH) /* its depth, in releases without that pointer; includes local variables that are in the frame */ \
	X(GENERATOR_FRAME)  /* of generators and coroutines: the frame, or a pointer to the frame object */                    \
	X(GENERATOR_STATE)  /* byte, signed */                                                                                 \
	X(GENERATOR_AWAITS) /* first of its values that say so, */                                                             \
	X(GENERATOR_RUNS)   /* behind which this one follows; larger ones: it has ended */                                     \
	X(CODE_N_LOCALS)    /* of the local variables in the frame */                                                          \
	X(CODE_FIRST_LINE)                                                                                                     \
	X(CODE_FILE)                                                                                                           \
	X(CODE_NAME)                                                                                                           \
	X(CODE_QUALNAME)                                                                                                       \
	X(CODE_LINES)           /* line table, a bytes object */                                                               \
	X(CODE_BYTECODE)        /* first byte of the bytecode */                                                               \
	X(CODE_BYTECODE_OBJECT) /* the bytecode, a bytes object */                                                             \
	X(CODE_BYTECODES)       /* array of bytecodes, one a thread */                                                         \
	X(CODE_VERSION)         /* a number no other code object has had */                                                    \
	X(BYTES_DATA)                                                                                                          \
	X(STRING_LENGTH)                                                                                                       \
	X(STRING_HASH)                                                                                                         \
	X(STRING_STATE)                                                                                                        \
	X(STRING_KIND_BIT) /* first bit of the kind in the state */                                                            \
	X(STRING_ASCII_DATA)                                                                                                   \
	X(STRING_COMPACT_DATA) /* of compact strings that are not ASCII */                                                     \
	X(TYPE_NAME)           /* a C string */                                                                                \
	X(TYPE_FLAGS)                                                                                                          \
	X(TYPE_BASIC_SIZE)                                                                                                     \
	X(TYPE_ITEM_SIZE)                                                                                                      \
	X(TYPE_DICT_OFFSET)    /* where its instances point to their dict */                                                   \
	X(TYPE_WEAKREF_OFFSET) /* where its instances have the list of weak references to them */                              \
	X(TYPE_BASE)                                                                                                           \
	X(TYPE_DICT)                                                                                                           \
	X(TYPE_KEYS) /* keys that its instances share */                                                                       \
	X(MODULE_DICT)                                                                                                         \
	X(INTERPRETER_MODULES) /* sys.modules */                                                                               \
	X(MANAGED_DICT)        /* this far before an instance: its dict */                                                     \
	X(MANAGED_VALUES)      /* this far before an instance: the values of its attributes */                                 \
	X(VALUES_ITEMS)        /* in such values: the first */                                                                 \
	X(VALUES_VALID)        /* byte: whether they are in use */                                                             \
	X(DICT_USED)                                                                                                           \
	X(DICT_MASK) /* size of the table less one */                                                                          \
	X(DICT_TABLE)                                                                                                          \
	X(DICT_KEYS)                                                                                                           \
	X(DICT_VALUES)           /* apart from the keys, which are shared; 0: they are with them */                            \
	X(KEYS_SIZE)             /* slots of the index */                                                                      \
	X(KEYS_LOG2_INDEX_BYTES) /* byte */                                                                                    \
	X(KEYS_KIND)             /* byte; 0: entries have a hash */                                                            \
	X(KEYS_N_ENTRIES)                                                                                                      \
	X(KEYS_TABLE)  /* the index, which the entries follow; or entries */                                                   \
	X(LIST_ITEMS)  /* pointer to them */                                                                                   \
	X(TUPLE_ITEMS) /* the items themselves */                                                                              \
	X(SET_USED)                                                                                                            \
	X(SET_MASK)                                                                                                            \
	X(SET_TABLE)                                                                                                           \
	X(SET_ENTRY_KEY)                                                                                                       \
	X(SET_ENTRY_HASH)                                                                                                      \
	X(WEAKREF_OBJECT)                                                                                                      \
	X(CELL_OBJECT)                                                                                                         \
	X(MEMBER_DEFINITION) /* of a slot's descriptor: its PyMemberDef */                                                     \
	X(INT_VALUE)         /* of an int that is a machine word */                                                            \
	X(LONG_TAG)          /* number of digits and sign */                                                                   \
	X(LONG_DIGITS)       /* of 30 bits, the lowest first */                                                                \
	X(FLOAT_VALUE)                                                                                                         \
	X(COMPLEX_VALUE)                                                                                                       \
	X(UNICODE_LENGTH) /* text, where names are bytes */                                                                    \
	X(UNICODE_DATA)                                                                                                        \
	X(EXCEPTION_ARGUMENTS)                                                                                                 \
	X(FUNCTION_NAME)   /* qualified where there is such */                                                                 \
	X(FRAME_VARIABLES) /* first of its variables */                                                                        \
	X(FRAME_NAMESPACE) /* f_locals */                                                                                      \
	X(CODE_FLAGS)                                                                                                          \
	X(CODE_N_VARIABLES)                                                                                                    \
	X(CODE_VARIABLES)      /* tuple of names */                                                                            \
	X(CODE_VARIABLE_KINDS) /* bytes, one each */                                                                           \
	X(CODE_CELLS)          /* tuples of names, which follow the others */                                                  \
	X(CODE_FREE_VARIABLES)                                                                                                 \
	X(TASKS)                  /* TASKS_* */                                                                                \
	X(AWAITED_SLOT)           /* slot of a frame's stack, from the top, that has the awaited object */                     \
	X(DICTS)                  /* DICTS_* */                                                                                \
	X(INSTANCES)              /* INSTANCES_* */                                                                            \
	X(ROOT)                   /* ROOT_* */                                                                                 \
	X(ANCHOR)                 /* ANCHOR_* */                                                                               \
	X(ENTRY)                  /* ENTRY_* */                                                                                \
	X(MAX_OWNER)              /* largest value of an owner */                                                              \
	X(GIL)                    /* GIL_* */                                                                                  \
	X(LOCKS)                  /* LOCKS_* */                                                                                \
	X(LINES)                  /* LINES_* */                                                                                \
	X(STRINGS)                /* STRINGS_* */                                                                              \
	X(INSTRUCTION_BYTES)      /* smallest instruction */                                                                   \
	X(LAST_INSTRUCTION_BYTES) /* unit of FRAME_LAST_INSTRUCTION */

enum layout_field {
#define X(name) name,
	LAYOUT_FIELDS(X)
#undef X
		LAYOUT_N_FIELDS
};

/* frame.owner (Include/internal/pycore_frame.h, 3.12 to 3.15). From the
 * last on, frames are the interpreter's own: shims. */
enum { OWNER_THREAD = 0, OWNER_GENERATOR = 1, OWNER_FRAME_OBJECT = 2, OWNER_SHIM = 3 };

/* How much of a structure is read at once, from its start: never past its end. */
enum { MAX_HEAD_BYTES = 320 };

struct layout {
	unsigned version; /* as in PY_VERSION_HEX, 0x030b07f0 */
	bool free_threaded;
	int32_t field[LAYOUT_N_FIELDS];
	/* Up to the last field of each that is read. */
	uint16_t thread_bytes, frame_bytes, code_bytes, string_bytes;
};

/*
 * layout_releases - which releases there are layouts of.
 * The n-th, default builds only, in order. False: there are no more.
 */
bool layout_releases(size_t n, unsigned *ret_major, unsigned *ret_minor);

/*
 * layout_of - the layout of one released version.
 * Errors: -EOPNOTSUPP there is no file for it, or it is not a final release.
 */
int layout_of(unsigned version, bool free_threaded, struct layout *ret);

/* Words of _Py_DebugOffsets that are needed; 0: that release has none. */
unsigned layout_n_words(const struct layout *layout);

/*
 * layout_read_debug_offsets - apply the runtime's own offsets to a layout.
 * @words: the structure _Py_DebugOffsets, from its cookie on, n_words read.
 * Errors: -EOPNOTSUPP they belong to another version or build, or have
 *         impossible fields.
 */
int layout_read_debug_offsets(const uint64_t *words, unsigned n_words, struct layout *layout);

/* Version and build in the first three words of _Py_DebugOffsets. -EOPNOTSUPP: it is none. */
int layout_peek_debug_offsets(const uint64_t words[3], unsigned *ret_version, bool *ret_free_threaded);

#endif
