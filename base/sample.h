/* SPDX-License-Identifier: MIT */
/* sample.h - the shapes that flow through the house, leaf first everywhere:
 *
 *   struct sample (borrowed from the ring) -> struct native_frame[] and
 *   struct py_frame[] -> struct frame[] in a struct stack -> a row.
 */
#ifndef PROBING_BASE_SAMPLE_H
#define PROBING_BASE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/machine.h"
#include "base/python_record.h"
#include "base/remote.h"

struct module;
struct py_code;

/* To a question that memory may not answer. */
enum answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };

/* Default size of the copied part of a stack; deeper parts are read later. */
#define SAMPLE_STACK_BYTES 32768

/* One sample as the kernel took it. Pointers are borrowed: valid until the
 * next record is read. */
struct sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	pid_t pid, tid;   /* as this process' PID namespace sees them */
	unsigned cpu;
	uint64_t weight;   /* where the event is no clock: of how many events it is one */
	bool has_user;     /* regs and stack below are valid (a kernel thread has none) */
	bool is_32_bit;    /* then they are not: nothing here unwinds such a stack */
	bool is_held;      /* the thread is stopped until its stack is complete: its memory is
			* as of the sample, too */
	bool is_still;     /* the same by the kernel's records of context switches: it is off-CPU, which
			* is checked again when its stack is complete */
	bool is_polled;    /* neither registers nor stack were taken: memory has the Python frames of now */
	bool is_switch;    /* taken as the thread left the processor: its weight is the coming wait */
	bool is_elsewhere; /* polled, and by now it is not where it used that time: no stack is its own */
	struct regs regs;
	const uint8_t *stack; /* copy of [regs.value[SP], + stack_bytes) */
	size_t stack_bytes;
	/* The thread's Python frames, read in the same interrupt; NULL: were not. */
	const struct python_record *python;
	const void *raw; /* the event's own data (a tracepoint's record); NULL: none */
	size_t raw_bytes;
	const uint64_t *kernel_ips; /* innermost first; kernel addresses only */
	size_t n_kernel_ips;
};

/* Why a native stack ended. */
enum stack_end {
	STACK_COMPLETE,       /* reached the thread's start in the captured bytes */
	STACK_COMPLETED,      /* the same, with bytes read after the sample, or for one before; seam compared */
	STACK_TRUNCATED,      /* captured bytes ended and the rest could not be had */
	STACK_NO_UNWIND_INFO, /* code without CFI and no believable frame pointer */
	STACK_BAD_MEMORY,     /* a rule led to memory that is not there */
	STACK_FRAME_LIMIT,    /* deeper than the unwinder's array */
	STACK_N_ENDS
};

/* How sure it is that Python and native frames belong together. */
enum verdict {
	VERDICT_EXACT,       /* same instant by construction */
	VERDICT_VERIFIED,    /* memory agrees with the captured bytes, or the thread did not run meanwhile */
	VERDICT_APPROXIMATE, /* the thread moved on; the common outer part is certain */
	VERDICT_NO_PYTHON,   /* no Python on this thread */
	VERDICT_PYTHON,      /* native part unusable */
	VERDICT_N
};

/* State of a thread in an interval. All but the first are off-CPU. */
enum thread_state {
	STATE_NONE, /* unknown: a recording of CPU time alone */
	STATE_RUNNING,
	STATE_RUNNABLE, /* it would have run, had there been a processor for it */
	STATE_SLEEP,    /* until a timeout */
	STATE_LOCK,     /* a lock, a condition, a semaphore */
	STATE_GIL,      /* the interpreter's */
	STATE_IO,       /* a file, a pipe, a socket, or whichever of some gets ready */
	STATE_CHILD,    /* a child process */
	STATE_BLOCKED,  /* anything else, or unknown */
	STATE_AWAIT,    /* no thread's: an asyncio task waits */
	STATE_N
};

/* A task is no code: the frames above it run, or wait, on behalf of that asyncio task. A wait is no code either: it is
 * the innermost frame of an off-CPU stack, and names the reason. FRAME_UNSAMPLED is the only frame of its stack: it
 * has the CPU time that the kernel accounts to a process, and for which there is no sample. */
enum frame_kind { FRAME_PYTHON, FRAME_NATIVE, FRAME_KERNEL, FRAME_TASK, FRAME_WAIT, FRAME_UNSAMPLED, FRAME_N_KINDS };

/* The words under which these are stored: "complete", "verified", "python"... */
const char *stack_end_name(enum stack_end end);
const char *verdict_name(enum verdict verdict);
/* -EINVAL: text names none. Recordings of the first format call no_python native. */
int verdict_parse(const char *text, enum verdict *ret);
const char *frame_kind_name(enum frame_kind kind);
/* The kind of that name. -EINVAL: it is none's; @text may be NULL. */
int frame_kind_parse(const char *text, enum frame_kind *ret);
const char *thread_state_name(enum thread_state state); /* NULL: STATE_NONE */

/* One frame of a merged stack. */
struct frame {
	enum frame_kind kind;
	bool is_evaluation; /* native: the interpreter's loop that ran the Python frames above it */
	bool without_cfi;   /* native: its caller was found without CFI */
	bool is_uncertain;  /* python: read after the thread had moved on */
	union {
		struct {
			struct module *module; /* NULL: anonymous code */
			uint64_t address;      /* module's own (ELF) address; absolute when anonymous */
		} native;
		struct {
			struct py_code *code;
			int32_t instruction; /* bytes from the start of the bytecode; -1 not started, -2 unknown */
			uint64_t address;    /* of the interpreter's frame; 0: not known */
		} python;
		struct {
			uint64_t ip;
		} kernel;
		struct {
			const char *name; /* borrowed, as the stack is */
		} task;
		struct {
			enum thread_state state;
		} wait;
	};
};

struct stack {
	struct frame *frames; /* leaf first */
	size_t n_frames;
	enum stack_end end;
	enum verdict verdict;
	bool python_cut; /* Python frames beyond the limit were left out */
};

#endif
