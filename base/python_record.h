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
	PYTHON_MAX_ENTRIES = 512, /* deeper stacks are cut, and marked */
	PYTHON_MAX_STATES = 4,    /* interpreters that one thread is in */
	PYTHON_MAX_SPAN = 504,    /* bytes from a structure's start to the end of its last field */
	PYTHON_MAX_RANGE = 2040,  /* bytes that are read at once, because of some fields in it: less than a page */
	PYTHON_ABSENT = -1,       /* a field that a release does not have */
};

/* Addresses and offsets in one process' interpreter. Offsets in bytes from each structure's start;
 * spans: up to the end of the last field that is read. */
struct python_layout {
	uint64_t id;           /* not 0: each record made with this layout contains it */
	uint64_t interpreters; /* address of the pointer to the first interpreter; 0: ... */
	uint64_t interpreter;  /* ... it is this one */
	uint64_t roots;        /* a range to read at once: that pointer, and the other single addresses near it */
	uint64_t namespace_device, namespace_inode; /* of its PID namespace; 0: ours */
	int32_t pthread_tid;                        /* where libc's thread structure has the thread's id;
				   * PYTHON_ABSENT: thread states have it themselves */
	int32_t interpreter_next, interpreter_threads;
	int32_t interpreter_start; /* a range to read at once: these, and the other fields near them */
	uint32_t roots_span, interpreter_span;
	int32_t thread_span, thread_next, thread_interpreter;
	int32_t thread_id;          /* the thread's id (64 bits), or pthread_self() */
	int32_t thread_top;         /* innermost frame, or _PyCFrame where there are such */
	int32_t thread_root_cframe; /* PYTHON_ABSENT: there are none */
	int32_t cframe_span, cframe_frame, cframe_previous;
	int32_t frame_span, frame_code, frame_previous;
	uint32_t frame_before; /* bytes to read before a frame: words of the frame below; 0: frames are not adjacent */
	int32_t frame_type;    /* where frames are objects */
	int32_t frame_instruction, frame_instruction_bytes; /* 4 or 8 */
	int32_t frame_entry, frame_owner, frame_bytecode_index;
	int32_t shim_owner; /* from this owner on a frame has no code */
	int32_t code_span, code_name, code_file, code_lines, code_first_line, code_version;
	int32_t code_size;     /* length of the bytecode, or the object that holds it */
	int32_t name_identity; /* in a name: length and hash; PYTHON_ABSENT: code_version identifies it better */
	/*
	 * The GIL: one word names the state that holds it, or each interpreter points to a GIL. That one has whether it
	 * is taken (32 bits), its last holder, and maybe whether it is enabled (32 bits).
	 */
	uint64_t gil_holder;     /* address; 0: by interpreter_gil */
	int32_t interpreter_gil; /* PYTHON_ABSENT: not known either */
	int32_t gil_span, gil_locked, gil_last_holder, gil_enabled;
	/* Whether garbage is collected (32 bits). */
	uint64_t collecting;            /* address; 0: by interpreter_collecting */
	int32_t interpreter_collecting; /* PYTHON_ABSENT: not known either */
	uint32_t calls_for_new;         /* not 0: new code wakes the reader, which then reads it */
};

enum { PYTHON_ENTRY_FRAME, PYTHON_ENTRY_CFRAME };

/* One frame, or one _PyCFrame, as of the interrupt. Fields that its release lacks are 0. */
struct python_entry {
	uint64_t address;
	uint64_t previous;
	uint64_t instruction; /* pointer into the bytecode, or 32-bit index; of a _PyCFrame: its frame */
	uint64_t type;
	/* Its code object, which is not read again: the fields that identify it. */
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
	/* State of the thread: a bit for each fact, and a bit whether that fact is known. */
	PYTHON_GIL_KNOWN = 1 << 8,
	PYTHON_GIL_HELD = 1 << 9,
	PYTHON_GC_KNOWN = 1 << 10,
	PYTHON_GC_RUNS = 1 << 11, /* its interpreter collects garbage, and it holds that one's GIL */
};

/* No event's number has these upper bits: they count up from 1. */
enum { PYTHON_MARK = 0x50790000 };

/*
 * The kernel's own fields would take half of the writing time. So the event requests none of them; this record
 * begins like its samples (decode.c), with the mark in one half of the event's number.
 */
struct python_record {
	uint32_t n_bytes;  /* that follow; the kernel writes it before the BPF program's bytes */
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
