/* SPDX-License-Identifier: MIT */
/* python_record.h - the description of an interpreter for the BPF program, and the records that the program writes.
 *
 * Compiled for BPF, too: fixed-size members only, nothing of libc. Both sides are built
 * together, so there is no version; a record that is not as described here is refused.
 */
#ifndef PROBING_BASE_PYTHON_RECORD_H
#define PROBING_BASE_PYTHON_RECORD_H

#include <stdint.h>

enum {
	PYTHON_MAX_ENTRIES = 512,  /* deeper stacks are cut, and marked */
	PYTHON_MAX_STATES = 4,     /* interpreters that one thread is in */
	PYTHON_MAX_SPAN = 504,     /* bytes from a structure's start to the end of its last field */
	PYTHON_MAX_STRETCH = 2040, /* bytes that are read at once, because of some fields in it: less than a page */
	PYTHON_ABSENT = -1,        /* a field that a release does not have */
};

/* Where things are in one process' interpreter. Offsets in bytes from each structure's start;
 * spans: up to the end of the last field that is read. */
struct python_layout {
	uint64_t id;           /* not 0: comes back in each record that was made by this */
	uint64_t interpreters; /* address of the pointer to the first interpreter; 0: ... */
	uint64_t interpreter;  /* ... it is this one */
	uint64_t roots; /* a stretch to read at once: that pointer, and what of the other single addresses lies near it */
	uint64_t namespace_device, namespace_inode; /* of its PID namespace; 0: ours */
	int32_t pthread_tid;                        /* where libc's thread structure has the thread's id;
				   * PYTHON_ABSENT: thread states have it themselves */
	int32_t interpreter_next, interpreter_threads;
	int32_t interpreter_start; /* a stretch to read at once: these, and what of the other fields lies near them */
	uint32_t roots_span, interpreter_span;
	int32_t thread_span, thread_next, thread_interpreter;
	int32_t thread_id;          /* the thread's id (64 bits), or pthread_self() */
	int32_t thread_top;         /* innermost frame, or _PyCFrame where there are such */
	int32_t thread_root_cframe; /* PYTHON_ABSENT: there are none */
	int32_t cframe_span, cframe_frame, cframe_previous;
	int32_t frame_span, frame_code, frame_previous;
	uint32_t frame_before; /* bytes to read with a frame, of what lies before it: words; 0: frames are not side by side */
	int32_t frame_type;                                 /* where frames are objects */
	int32_t frame_instruction, frame_instruction_bytes; /* 4 or 8 */
	int32_t frame_entry, frame_owner, frame_bytecode_index;
	int32_t shim_owner; /* from this owner on a frame has no code */
	int32_t code_span, code_name, code_file, code_lines, code_first_line, code_version;
	int32_t code_size;     /* length of the bytecode, or the object that holds it */
	int32_t name_identity; /* in a name: length and hash; PYTHON_ABSENT: code_version tells more */
	/* The GIL: one word says which state holds it, or each interpreter points to one, which says whether
	 * it is taken (32 bits), by which state it was last, and maybe whether it is in use at all (32 bits). */
	uint64_t gil_holder;     /* address; 0: by interpreter_gil */
	int32_t interpreter_gil; /* PYTHON_ABSENT: not known either */
	int32_t gil_span, gil_locked, gil_last_holder, gil_enabled;
	/* Whether garbage is collected (32 bits). */
	uint64_t collecting;            /* address; 0: by interpreter_collecting */
	int32_t interpreter_collecting; /* PYTHON_ABSENT: not known either */
	uint32_t calls_for_new;         /* not 0: code that was not met before wakes the reader, who will look at it */
};

enum { PYTHON_ENTRY_FRAME, PYTHON_ENTRY_CFRAME };

/* One frame, or one _PyCFrame, as it was in the interrupt. What its release does not have is 0. */
struct python_entry {
	uint64_t address;
	uint64_t previous;
	uint64_t instruction; /* pointer into the bytecode, or 32-bit index; of a _PyCFrame: its frame */
	uint64_t type;
	/* Its code object, which is never looked at again: what tells it from all others. */
	uint64_t code; /* without the tag; 0: none */
	uint64_t name, file, lines, size, name_length, name_hash;
	uint32_t first_line, version;
	uint32_t bytecode_index;
	uint8_t kind, owner, is_entry, reserved;
};

struct python_state {
	uint64_t state, interpreter;
	uint64_t top; /* the thread's innermost frame, or _PyCFrame */
};

enum {
	PYTHON_CUT = 1,   /* more entries than there is room for */
	PYTHON_FAULT = 2, /* memory that cannot be read in an interrupt */
	PYTHON_INCOMPLETE = PYTHON_CUT | PYTHON_FAULT,
	/* What the thread had: each is told by a bit, and whether it was to be known by another. */
	PYTHON_GIL_KNOWN = 1 << 8,
	PYTHON_GIL_HELD = 1 << 9,
	PYTHON_GC_KNOWN = 1 << 10,
	PYTHON_GC_RUNS = 1 << 11, /* its interpreter collects garbage, and it holds that one's GIL */
};

/* No event's number has these upper bits: they count up from 1. */
enum { PYTHON_MARK = 0x50790000 };

/*
 * What the kernel is asked to write of itself takes half of the writing. So it is told to write nothing but this, which
 * begins as its samples do (decode.c), with the mark where half of an event's number would be.
 */
struct python_record {
	uint32_t n_bytes;  /* that follow; the kernel puts it before what it is given */
	uint32_t mark;     /* PYTHON_MARK */
	uint32_t pid, tid; /* as the kernel numbers them */
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint32_t cpu, reserved;
	uint64_t layout_id; /* 0: without frames, it only makes its sample be read at once */
	uint32_t n_entries;
	uint32_t n_states, flags, reserved_behind;
	struct python_state states[PYTHON_MAX_STATES];
};

/* Its entries follow right behind: state by state, of each the _PyCFrames and then the frames. */
static inline const struct python_entry *python_entries(const struct python_record *record)
{
	return (const struct python_entry *)(record + 1);
}

enum { PYTHON_RECORD_BYTES = sizeof(struct python_record) + PYTHON_MAX_ENTRIES * sizeof(struct python_entry) };

_Static_assert(sizeof(struct python_entry) == 104 && sizeof(struct python_record) == 152, "padding");

#endif
