/* SPDX-License-Identifier: MIT */
/* native.h - native stacks from captured registers and stack bytes, by CFI.
 *
 * libdw compiles rows of call frame information for the first sample with a PC. Each module caches
 * them, so all processes that map it share them. A hash of run-time PCs per process finds them
 * again. A warm frame costs one hash probe and two or three loads from the captured bytes.
 */
#ifndef PROBING_NATIVE_H
#define PROBING_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address_space.h"
#include "base/remote.h"
#include "base/sample.h"

/* Deeper stacks end with STACK_FRAME_LIMIT. */
#define NATIVE_MAX_FRAMES 65536

struct native_frame {
	uint64_t pc;  /* the instruction itself, or the return address */
	uint64_t sp;  /* its part of the stack is [sp, cfa) */
	uint64_t cfa; /* canonical frame address; 0 where no rule was found */
	uint64_t fp;  /* frame pointer register, which code may use for anything */
	uint32_t row; /* compiled row, the unwinder's own business */
	bool is_return_address : 1;
	bool is_signal : 1;     /* a signal trampoline: its caller was interrupted, and did not call */
	bool is_trampoline : 1; /* one without CFI: the kernel's signal frame begins at sp */
	bool fp_is_lost : 1;    /* fp differs from its value there: no callee saved it */
	bool without_cfi : 1;   /* its caller was found by the frame pointer, or by search */
};

/* The address to look a frame up by: inside the call instruction for callers. */
static inline uint64_t native_frame_lookup(const struct native_frame *frame)
{
	return frame->pc - frame->is_return_address;
}

struct native_unwinder;
struct native_process;

enum { NATIVE_KEPT_RESTS = 4 };

/* Stack bytes of a thread that were not captured, but read at some time: [start, + n_bytes). */
struct stack_rest {
	uint8_t *bytes;
	uint64_t start;
	size_t n_bytes, n_allocated;
	pid_t tid;
	uint64_t time_ns; /* of the sample that they were read for */
};

/*
 * A native stack, together with its memory. Reused for the next sample; the
 * arrays keep their size.
 */
struct native_stack {
	struct native_frame *frames; /* leaf first */
	size_t n_frames, frames_allocated;
	enum stack_end end;
	/* Since the last native_unwind; borrowed. */
	const struct sample *sample;
	struct remote *remote;
	const struct native_unwinder *unwinder;
	struct stack_rest rest;                    /* after the captured bytes */
	bool rest_refused;                         /* the seam did not match, or nothing could be read */
	struct stack_rest kept[NATIVE_KEPT_RESTS]; /* of samples before, for those that are come to too late */
	unsigned next_kept;
};

/* @modules: borrowed; must outlive the unwinder. */
int native_unwinder_new(struct module_table *modules, struct native_unwinder **ret);
void native_unwinder_free(struct native_unwinder *unwinder);
void native_unwinder_freep(struct native_unwinder **unwinder);

/* Per-process cache. @space: borrowed, outlives the result. */
int native_process_new(struct native_unwinder *unwinder, struct address_space *space, struct native_process **ret);
void native_process_free(struct native_process *process);
void native_process_freep(struct native_process **process);

/*
 * native_unwind - unwind the stack of one sample.
 * @remote: live memory of the process for uncaptured parts; NULL: none.
 * @stack:  zeroed before its first use, ended with native_stack_done(); keeps
 *          borrowing sample and remote until the next call.
 * An incomplete stack is not an error: stack->end says why it ended.
 * Errors: -ENOMEM.
 */
int native_unwind(struct native_process *process, const struct sample *sample, struct remote *remote,
		  struct native_stack *stack);

/*
 * native_expect - announce the sample that is unwound next, before this one is.
 * Captured bytes are cold; this prefetches them. A wrong announcement only costs time.
 * @sample: need not outlive the call: none of its bytes is read.
 */
void native_expect(struct native_process *process, const struct sample *sample);
void native_stack_done(struct native_stack *stack);

/*
 * native_stack_read - bytes of the stack as of the sample.
 * Only captured bytes (or those read behind a matching seam).
 * Errors: -EFAULT not there.
 */
int native_stack_read(struct native_stack *stack, uint64_t address, void *to, size_t n_bytes);

/*
 * native_seam_holds - do the bytes read behind the captured ones still belong to them?
 * True if there are none. Recheck after each live read that depends on them: a thread that
 * alternates between stacks may match by chance.
 */
bool native_seam_holds(const struct native_stack *stack);

/*
 * native_register - a register as it was in frame number @frame.
 * Callee-saved registers are recovered from where inner frames saved them.
 * @reg: DWARF number. Errors: -ENODATA not recoverable; -EFAULT.
 */
int native_register(struct native_stack *stack, size_t frame, unsigned reg, uint64_t *ret);

/* ---- Rows that another process compiles ---- */

enum {
	NATIVE_ROWS_MAX_BYTES = 32 << 10, /* of an answer */
	NATIVE_ROWS_MAX_ADDRESSES = 16,   /* of a question */
};

/*
 * Compiles rows for an unwinder that must not read call frame information itself. One answer has the rows of several
 * functions, as native_rows_compile() writes them. The unwinder does not trust it.
 */
struct native_row_source {
	/*
	 * ask - the rows around addresses of a module.
	 * @n: 1 to NATIVE_ROWS_MAX_ADDRESSES. The first address is needed now, the others probably soon.
	 * @ret: borrowed until the next call. Errors: -ENOENT no answer; the unwinder does not ask for the first address
	 *       again.
	 */
	int (*ask)(void *data, struct module *module, const uint64_t *addresses, size_t n, const uint8_t **ret,
		   size_t *ret_bytes);
	/* The last answer was malformed: native_rows_compile() did not write it. */
	void (*refuse)(void *data, struct module *module);
	void *data;
};

/* @source: borrowed, outlives the unwinder; NULL: rows are compiled here. Set it before the first walk. */
void native_unwinder_set_source(struct native_unwinder *unwinder, const struct native_row_source *source);

/*
 * native_rows_compile - serialise the rows of the functions that contain the addresses.
 * @module: only its elf is used, and its slot cfi; ended with native_rows_done().
 * @addresses, @n: as in ask() above. All are answered that find room, the first one always.
 * @to: NATIVE_ROWS_MAX_BYTES. The result can state that there is no CFI. Errors: -ENOMEM.
 */
int native_rows_compile(struct module *module, const uint64_t *addresses, size_t n, uint8_t *to, size_t *ret_bytes);
void native_rows_done(struct module *module);

#endif
