/* layout.h - where things are inside an interpreter: data, not code.
 *
 * A layout is a list of changes (layout_changes.h), replayed up to the version
 * at hand; from 3.13 the runtime's own debug offsets replace what they cover
 * (debug_offsets.h). A field that no row has set stays ABSENT. Behaviours that
 * changed between versions are fields too, with named values.
 */
#ifndef PROBING_LAYOUT_H
#define PROBING_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { ABSENT = -1 };

/* What an evaluation's anchor is. */
enum { ANCHOR_CFRAME, ANCHOR_SHIM };
/* What ends an evaluation's chain of frames. */
enum { ENTRY_FLAG, ENTRY_OWNER };

#define LAYOUT_FIELDS(X)                                                                           \
	X(RUNTIME_INTERPRETERS) /* _PyRuntime: head of the list of interpreters */                 \
	X(INTERPRETER_NEXT)                                                                        \
	X(INTERPRETER_THREADS)  /* head of its list of threads */                                  \
	X(THREAD_NEXT)                                                                             \
	X(THREAD_INTERPRETER)                                                                      \
	X(THREAD_NATIVE_ID)     /* the operating system's thread id */                             \
	X(THREAD_CFRAME)                                                                           \
	X(THREAD_ROOT_CFRAME)   /* inside the thread state: the outermost _PyCFrame */             \
	X(THREAD_FRAME)         /* innermost frame */                                              \
	X(CFRAME_FRAME)                                                                            \
	X(CFRAME_PREVIOUS)                                                                         \
	X(FRAME_CODE)                                                                              \
	X(FRAME_PREVIOUS)                                                                          \
	X(FRAME_INSTRUCTION)    /* pointer into the bytecode */                                    \
	X(FRAME_ENTRY)          /* byte: this is an evaluation's outermost frame */                \
	X(FRAME_OWNER)          /* byte: who holds the frame's memory */                           \
	X(CODE_UNITS)           /* length of the bytecode in units of two bytes */                 \
	X(CODE_FIRST_LINE)                                                                         \
	X(CODE_FILE)                                                                               \
	X(CODE_NAME)                                                                               \
	X(CODE_QUALNAME)                                                                           \
	X(CODE_LINES)           /* line table, a bytes object */                                   \
	X(CODE_BYTECODE)        /* first byte of the bytecode */                                   \
	X(CODE_VERSION)         /* a number no other code object has had */                        \
	X(BYTES_SIZE)                                                                              \
	X(BYTES_DATA)                                                                              \
	X(STRING_LENGTH)                                                                           \
	X(STRING_HASH)                                                                             \
	X(STRING_STATE)                                                                            \
	X(STRING_ASCII_DATA)                                                                       \
	X(STRING_COMPACT_DATA)  /* of compact strings that are not ASCII */                        \
	X(ANCHOR)               /* ANCHOR_* */                                                     \
	X(ENTRY)                /* ENTRY_* */

enum layout_field {
#define X(name) name,
	LAYOUT_FIELDS(X)
#undef X
	LAYOUT_N_FIELDS
};

/* How much of a structure is read at once, from its start. */
enum { THREAD_HEAD_BYTES = 192, FRAME_HEAD_BYTES = 80, CODE_HEAD_BYTES = 208, STRING_HEAD_BYTES = 64 };

/* frame.owner: who holds it (Include/internal/pycore_frame.h). */
enum { OWNER_THREAD = 0, OWNER_GENERATOR = 1, OWNER_FRAME_OBJECT = 2, OWNER_CSTACK = 3 };

struct layout {
	unsigned version; /* as in PY_VERSION_HEX, 0x030b07f0 */
	int32_t field[LAYOUT_N_FIELDS];
};

const char *layout_field_name(enum layout_field field);

/*
 * layout_replay - the layout of one released version.
 * Errors: -EOPNOTSUPP older or newer than the table, or not a final release.
 */
int layout_replay(unsigned version, struct layout *ret);

/*
 * layout_read_debug_offsets - put the runtime's own offsets into a layout.
 * @words: the structure _Py_DebugOffsets from its cookie on, n_words read.
 * Errors: -EOPNOTSUPP not that of layout->version, free-threaded, or fields
 *         that cannot be.
 */
int layout_read_debug_offsets(const uint64_t *words, unsigned n_words, struct layout *layout);

/* Words of _Py_DebugOffsets that are needed; 0: that version has none. */
unsigned layout_debug_offsets_words(unsigned version);

#endif
