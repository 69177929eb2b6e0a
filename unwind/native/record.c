/* SPDX-License-Identifier: MIT */
/* record.c - callers by frame records, in code without CFI.
 *
 * A frame record is the pair that the frame pointer points at: the caller's
 * frame pointer, and the return address. On AMD64 it is the end of a frame, and
 * the caller's stack begins right behind it. On AArch64 it may be anywhere in
 * the frame, mostly at its start, so that it does not determine where the caller's
 * stack begins. The caller's CFI does: the caller has a record too, its frame
 * pointer points at it, and its rules give the distance from its CFA.
 *
 * There a call also leaves the return address in a register. As long as that
 * points to code with CFI, the function has not called anything since: it is a
 * leaf (a stub of a PLT, for one), or is in its prologue.
 *
 * A result is verified, if possible, by unwinding on to the thread's start.
 */
#include <errno.h>

#include "base/util.h"
#include "unwind/native/memory.h"
#include "unwind/native/walk.h"

/* A leaf function that has not stored its return address rarely uses more stack than this. */
enum { LEAF_BYTES = 256 };

/*
 * Compute a caller's SP from its frame pointer. -ENODATA: its rules have no frame record, or the SP is not above the
 * callee's frame.
 * @above: lower bound.
 */
static int sp_of_caller(struct walk *walk, uint64_t pc, uint64_t fp, uint64_t above, uint64_t *ret)
{
	const struct cfi_row *row;
	int16_t saved_fp;
	uint64_t sp;
	uint32_t id;
	int r;

	r = walk_find_row(walk->process, pc - 1, &id);
	if (r < 0)
		return r;
	row = &walk->process->unwinder->pool.rows[id];
	saved_fp = row->saved[row_saved_index(MACHINE_REG_FP)];
	if (id == ROW_NONE || !row->is_plain || row->cfa_register != MACHINE_REG_SP || saved_fp < SAVED_FIRST_OFFSET ||
	    row->saved[0] != saved_fp + (int)sizeof fp)
		return -ENODATA;
	sp = fp - (uint64_t)(int64_t)saved_fp - (uint64_t)(int64_t)row->cfa_offset;
	if (sp < above || fp < above)
		return -ENODATA;
	*ret = sp;
	return 0;
}

/* Whether the first words of the frame contain a word. */
static bool is_stored(struct walk *walk, uint64_t word)
{
	for (uint64_t offset = 0; offset < LEAF_BYTES; offset += sizeof word) {
		uint64_t found;

		if (native_stack_read(walk->stack, walk->sp + offset, &found, sizeof found) < 0)
			return false;
		if (found == word)
			return true;
	}
	return false;
}

/* Without a record in the caller, try possible sizes of the leaf's frame. */
static int search_leaf(struct walk *walk, struct supposition *caller)
{
	for (uint64_t offset = 0; offset < LEAF_BYTES && walk->searches_left > 0; offset += 2 * sizeof offset) {
		int r;

		caller->sp = walk->sp + offset;
		r = suppose(walk, caller);
		if (r != 0)
			return r;
	}
	return 0;
}

static int search_by_link(struct walk *walk)
{
	struct supposition caller = { .fp = walk->fp, .saved_pc = SAVED_SAME, .saved_fp = SAVED_SAME };
	uint64_t link, recorded;
	int r;

	if (link_register(walk, &link) < 0)
		return 0;
	/* The frame record is already the leaf's own. */
	if (memory_load(walk->stack, walk->fp + sizeof link, &recorded) == 0 && recorded == link)
		return 0;
	caller.pc = machine_return_address(link);
	if (!is_return_address(walk->process, caller.pc))
		return 0;
	r = sp_of_caller(walk, caller.pc, caller.fp, walk->sp, &caller.sp);
	if (r == 0)
		r = suppose(walk, &caller);
	else if (r == -ENODATA)
		r = 0;
	if (r != 0 || is_stored(walk, link))
		return r;
	return search_leaf(walk, &caller);
}

/* Load the frame record at the frame pointer. False: there is none. */
static bool load_record(struct walk *walk, uint64_t *ret_pc, uint64_t *ret_fp)
{
	struct native_stack *stack = walk->stack;

	if (walk->fp < walk->sp || walk->fp % sizeof *ret_fp != 0 || memory_load(stack, walk->fp, ret_fp) < 0 ||
	    memory_load(stack, walk->fp + sizeof *ret_fp, ret_pc) < 0)
		return false;
	*ret_pc = machine_return_address(*ret_pc);
	return is_code(walk->process, *ret_pc - 1);
}

int search_by_record(struct walk *walk)
{
	struct supposition caller;
	int64_t saved;
	int r;

	if (MACHINE_RECORD_ENDS_AT_CFA || walk->searches_left == 0)
		return 0;
	r = search_by_link(walk);
	if (r != 0 || walk->searches_left == 0)
		return r;
	if (!load_record(walk, &caller.pc, &caller.fp) || !is_return_address(walk->process, caller.pc))
		return 0;
	r = sp_of_caller(walk, caller.pc, caller.fp, walk->fp + 2 * sizeof caller.fp, &caller.sp);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	saved = (int64_t)(walk->fp - caller.sp);
	if (saved < SAVED_FIRST_OFFSET)
		return 0;
	caller.saved_fp = (int16_t)saved;
	caller.saved_pc = (int16_t)(saved + (int64_t)sizeof caller.fp);
	return suppose(walk, &caller);
}

/* A caller without CFI, or with its CFA at its frame pointer, only needs a lower bound of SP. */
static bool needs_no_sp(struct walk *walk, uint64_t pc)
{
	const struct cfi_row *row;
	uint32_t id;

	if (MACHINE_RECORD_ENDS_AT_CFA)
		return true; /* the lower bound is exact */
	if (walk_find_row(walk->process, pc - 1, &id) < 0)
		return false;
	row = &walk->process->unwinder->pool.rows[id];
	return id == ROW_NONE || (row->cfa_kind == CFA_REGISTER && row->cfa_register == MACHINE_REG_FP);
}

int step_by_frame_pointer(struct walk *walk)
{
	struct native_stack *stack = walk->stack;
	struct native_frame *frame = &stack->frames[stack->n_frames - 1];
	uint64_t pc, fp, sp = walk->fp + 2 * sizeof fp;
	int r = 0;

	stack->end = STACK_NO_UNWIND_INFO;
	if (!load_record(walk, &pc, &fp))
		return 0;
	if (!needs_no_sp(walk, pc))
		r = sp_of_caller(walk, pc, fp, sp, &sp);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	frame->row = ROW_NONE;
	frame->without_cfi = true;
	frame->cfa = sp;
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->fp_is_lost = false;
	walk->is_return_address = true;
	walk->is_unproven = true;
	return 1;
}
