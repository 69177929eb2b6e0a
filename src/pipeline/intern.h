/* SPDX-License-Identifier: MIT */
/* intern.h - ids of frames and stacks. Private.
 *
 * Ids are dense from 1. A frame is a place: a native address of a module, an expression (before
 * 3.11 a line) of a code object, or a kernel address; a task's name, or an address in anonymous
 * memory of one program. The last kind is evicted when its code is replaced: the next sample there
 * then creates a new frame. A stack is a node of the calling-context tree.
 */
#ifndef PROBING_INTERN_H
#define PROBING_INTERN_H

#include "base/interner.h"
#include "base/sample.h"
#include "src/pipeline/batch.h"

/* Where and when a stack was taken. */
struct stack_origin {
	uint32_t program;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

struct intern {
	struct id_map native, kernel; /* address -> frame */
	struct id_map programs;       /* a program -> index of its places */
	struct id_map *anonymous;     /* of a program: address -> frame */
	size_t n_anonymous, anonymous_allocated;
	struct id_map positions;    /* lines and columns -> number */
	struct id_map expressions;  /* code and number of a position -> frame */
	struct id_map instructions; /* code and instruction -> frame, without decoding a line table */
	struct interner task_names;
	struct id_map tasks;          /* number of the name + 1 -> frame */
	struct interner object_names; /* kept by intern_renew() */
	struct id_map objects;        /* number of the name + 1 -> frame */
	uint32_t waits[STATE_N];      /* frame of each state; 0: none yet */
	uint32_t unsampled;           /* the frame of unsampled time; 0: none yet */
	struct id_map stacks;         /* parent and frame -> stack */
	struct id_map totals;         /* thread and stack -> index in the batch's totals + 1 */
	uint8_t *module_is_known;     /* by module id */
	size_t n_modules;
	uint32_t n_frames, n_stacks, n_codes, n_positions;
};

void intern_done(struct intern *intern);

/*
 * intern_renew - evict all frames and stacks, and use new numbers from now on, so that other parts can drop
 * the old ones; frees the memory. Modules remain.
 * To be called right after a flush.
 */
void intern_renew(struct intern *intern);

/* Bytes that frames and stacks take. */
size_t intern_bytes(const struct intern *intern);

/* The stack's id (0: no frames); new rows are appended to the batch. -ENOMEM. */
int intern_stack(struct intern *intern, struct batch *batch, const struct stack *stack,
		 const struct stack_origin *origin, uint32_t *ret);

/*
 * intern_wait - the frame of a wait, below a stack with an id (0: none).
 * @depth: frames in that stack.
 */
int intern_wait(struct intern *intern, struct batch *batch, uint32_t parent, unsigned depth, enum thread_state state,
		uint32_t *ret);

/*
 * intern_object_name - the number of the name of an object that a thread waits for.
 * @name: as its frame shows it: "[pipe]"; "": unknown.
 * @ret:  0: unknown, or one more than INTERN_MAX_OBJECTS.
 */
enum { INTERN_MAX_OBJECTS = 4096 };
int intern_object_name(struct intern *intern, const char *name, uint32_t *ret);

/*
 * intern_object - the frame of the object of a wait, below the stack that intern_wait() returned.
 * @depth:  frames in that stack.
 * @object: a number of intern_object_name(), not 0.
 */
int intern_object(struct intern *intern, struct batch *batch, uint32_t parent, unsigned depth, uint32_t object,
		  uint32_t *ret);

/* intern_unsampled - the stack of time that no sample was taken of: one frame, which says so. */
int intern_unsampled(struct intern *intern, struct batch *batch, uint32_t *ret);

/* The code at an address of a program's anonymous memory has been replaced. */
void intern_forget(struct intern *intern, uint32_t program, uint64_t address);

/* Whether a module has a row. */
bool intern_knows_module(const struct intern *intern, unsigned module);

/* Add a sample to its thread's total in this batch. @thread: dense index. -ENOMEM. */
int intern_total(struct intern *intern, struct batch *batch, uint32_t thread, const struct sample_row *row);

/* The batch has been handed over: totals restart at zero. */
void intern_flushed(struct intern *intern);

#endif
