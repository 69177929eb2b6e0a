/* SPDX-License-Identifier: MIT */
/* walk.h - one walk under way, shared by the files of this folder. Private. */
#ifndef PROBING_WALK_H
#define PROBING_WALK_H

#include "unwind/native/prefetch.h"
#include "unwind/native/cfi.h"
#include "unwind/native/native.h"
#include "unwind/native/pc_table.h"

struct native_unwinder {
	struct module_table *modules;
	const struct native_row_source *source; /* NULL: rows are compiled here */
	struct row_pool pool;
	struct prefetch prefetch;
};

/* A caller of code without CFI: its return address, the callee's frame size, and its slot for FP. */
struct known_caller {
	uint64_t pc; /* 0: none */
	uint32_t bytes;
	int16_t saved_fp; /* as in a row */
	uint16_t unused;
};

enum { N_KNOWN_CALLERS = 8 };

struct native_process {
	struct native_unwinder *unwinder;
	struct address_space *space;
	struct pc_table pcs;      /* by run-time look-up PC */
	struct pc_table returns;  /* return addresses that were checked; row 1: can be one, 0: not */
	struct pc_table failures; /* PCs without CFI -> searches that failed since the last that did not */
	struct known_caller known_callers[N_KNOWN_CALLERS]; /* results of searches, the last one first */
	unsigned generation;
	const struct native_stack *stack; /* walked now; NULL: none */
};

/* Attempts that one sample may spend on code without CFI. */
enum { WALK_MAX_SEARCHES = 128 };

/*
 * Limits of recovering registers in one unwinding. In the CFI of a hostile file
 * each can depend on many others in all inner frames.
 */
struct effort {
	unsigned n_frames;  /* frames still to examine */
	unsigned depth;     /* expressions within expressions now */
	bool read_below_sp; /* an expression of the leaf's did: a word that was not captured */
};

enum { EFFORT_MAX_FRAMES = 4 * NATIVE_MAX_FRAMES, EFFORT_MAX_DEPTH = 8 };

/* A possible caller of the last frame, and the source of its PC and frame pointer. */
struct supposition {
	uint64_t pc, sp, fp;
	int16_t saved_pc, saved_fp; /* as in a row */
};

/* A search under way, and those that it is part of. */
struct walk_search {
	uint64_t pc;
	struct walk_search *outer;
	bool has_early;
	struct supposition early; /* the first from which unwinding reached the end of the captured bytes */
};

struct walk {
	struct native_process *process;
	struct native_stack *stack;
	uint64_t pc, sp, fp;
	bool is_return_address, fp_is_lost;
	bool is_unproven; /* a caller was found by the frame pointer alone: a zero may be any word */
	unsigned searches_left;
	struct walk_search *search; /* NULL: none */
	bool may_end_early;         /* a search may believe a walk that ends where the captured bytes do */
	bool is_at_start;           /* the last frame has no caller by its own rules, and not because of a zero word */
	struct effort effort;
	size_t callee; /* slot of the last frame; SIZE_MAX: none, or not known */
	int fp_index;  /* of the frame pointer in a row's saved[] */
};

/* From walk->pc on to the end of the stack. 0, or -ENOMEM; stack->end says the rest. */
int walk_on(struct walk *walk);

/*
 * stack_rows_ask - ask the source for the row of a PC, and for those of return addresses further up the stack.
 * @mapping: of the PC; @address: of the PC in its module. Neither has the module a row yet. Errors: -ENOMEM.
 */
int stack_rows_ask(struct native_process *process, const struct mapping *mapping, uint64_t pc, uint64_t address,
		   uint32_t *ret);

/* The row for a lookup PC; ROW_NONE: no CFI. */
int walk_find_row(struct native_process *process, uint64_t pc, uint32_t *ret);

/*
 * step_without_cfi - find the caller of the last frame without a row.
 * Returns 1 to continue from walk, 0 when unwinding has ended (stack->end is set).
 */
int step_without_cfi(struct walk *walk);

/*
 * link_register - the return address of the last frame, if its rules leave the
 * link register untouched.
 * Valid for the leaf and for a frame that a signal interrupted; a frame that has
 * called another has lost it. -ENODATA: that is the case, or the machine has no such register.
 */
int link_register(struct walk *walk, uint64_t *ret);

/*
 * Is the last frame in the code that a signal handler returns to, and only its
 * instructions reveal that?
 */
bool is_trampoline(struct walk *walk, const struct cfi_row *row);

/* Out of a signal handler by the kernel's frame. Returns 1 or 0 like step_without_cfi. */
int step_by_trampoline(struct walk *walk);

/* Is the address in executable memory; and does it follow a call, in a function with CFI? */
bool is_code(struct native_process *process, uint64_t pc);
bool is_return_address(struct native_process *process, uint64_t pc);

/*
 * suppose - unwind from there to the end of the stack; keeps the frames if they reach the thread's start.
 * Counts as a search. 1: they did, 0: they did not and nothing has changed; -ENOMEM.
 */
int suppose(struct walk *walk, const struct supposition *caller);

/*
 * search_by_record - find the caller by the link register and the frame record.
 * Only if frame records do not determine the CFA; otherwise 0 at once. Returns as suppose().
 */
int search_by_record(struct walk *walk);

/* Return address and frame pointer of the last frame's caller, by its row and its CFA, into walk. -EFAULT and others.
 * */
int load_caller(struct walk *walk);

/*
 * search_in_place - find the leaf's CFA if its rule reads it from below SP.
 * That word was not captured. Its present value counts if unwinding from it reaches
 * the thread's start; otherwise the stack is searched. The row remains unchanged.
 * @read_cfa: the rule's result; 0: none. Returns as suppose(); 0: neither reached the start.
 */
int search_in_place(struct walk *walk, uint64_t read_cfa);

/* By the frame pointer alone, without proof. Returns 1 or 0 like step_without_cfi. */
int step_by_frame_pointer(struct walk *walk);

/* Does a row that was found by search fit here too? */
bool guess_holds(struct walk *walk, const struct cfi_row *row);

#endif
