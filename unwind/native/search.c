/* SPDX-License-Identifier: MIT */
/* search.c - callers of code that has no CFI.
 *
 * Code that was generated at run time (oneDNN's kernels, a JIT's functions)
 * has none. Mostly it keeps no frame pointer either, but pushes some
 * registers and calls nothing. So the stack is searched upwards for the return
 * address: a word that points behind a call instruction in code with CFI, and
 * from which unwinding reaches the thread's start (or the end of the available
 * bytes, far away). Stale return addresses fail that test,
 * since the CFA they imply is wrong. Results at other PCs are tried first. If calls leave the return address in a
 * register, a leaf's is searched there first; stubs of a PLT are such leaves.
 *
 * At one PC such code always has the same distance to its return address, also
 * further up in a recursion, which exposes stale words that lead back to the truth
 * through the same code's old frames. A result is kept as a row like any
 * other, but checked at each use: there must be a return address, and if the
 * code's memory is writable, so that no event reports changes, the code must
 * be the same. Only if the search fails does the frame pointer count, if
 * it points up the stack and to a return address.
 *
 * search_in_place() does the same for a leaf with CFI that needs an uncaptured
 * word.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/native/memory.h"
#include "unwind/native/walk.h"

enum {
	SEARCH_BYTES = 8192,
	/*
	 * Callee-saved registers are pushed right after the call: the frame pointer is among the first words below the
	 * return address, or unchanged.
	 */
	PUSHED_WORDS = 6,
};

bool is_code(struct native_process *process, uint64_t pc)
{
	const struct mapping *mapping = address_space_find(process->space, pc);

	return mapping && mapping->executable;
}

/* Whether pc follows a call instruction in a function with CFI. */
static bool check_return_address(struct native_process *process, uint64_t pc)
{
	const void *before;
	struct module *module;
	struct elf_file *elf;
	uint64_t address;
	uint32_t row;

	if (address_space_resolve(process->space, pc - 1, &module, &address) < 0 || !module ||
	    module_elf(module, &elf) < 0 ||
	    elf_file_data(elf, address + 1 - MACHINE_CALL_BYTES, MACHINE_CALL_BYTES, &before) < 0)
		return false;
	return machine_is_after_call(before) && walk_find_row(process, pc - 1, &row) == 0 && row != ROW_NONE;
}

/* Cached, because generated code has few callers, which repeat. */
bool is_return_address(struct native_process *process, uint64_t pc)
{
	const struct pc_slot *slot = pc_table_find(&process->returns, pc);
	bool is_one;

	if (slot)
		return slot->row;
	/* Reject what is no code first: it is fast, and stacks are full of it. */
	if (pc - 1 >= MACHINE_USER_END || pc % MACHINE_CODE_ALIGNMENT != 0 || !is_code(process, pc - 1))
		return false;
	is_one = check_return_address(process, pc);
	(void)pc_table_add(&process->returns, pc, is_one, 0); /* only a cache */
	return is_one;
}

/* A hash of the current code around a PC, never 0. */
enum { CODE_UNREADABLE = 1, CODE_READ = 2 };

static uint32_t hash_code(struct walk *walk, uint64_t pc)
{
	uint64_t words[16], hash = 0;

	if (!walk->stack->remote ||
	    remote_read(walk->stack->remote, RADDR(pc - sizeof words / 2), words, sizeof words) < 0)
		return CODE_UNREADABLE;
	for (unsigned i = 0; i < N_ELEMENTS(words); i++)
		hash = mix64(hash ^ words[i]);
	return (uint32_t)hash | CODE_READ;
}

/* Whether the code that a guess was made for is unchanged. */
static bool code_is_same(struct walk *walk, uint64_t pc)
{
	const struct pc_slot *slot = pc_table_find(&walk->process->pcs, pc);

	return !slot || slot->code == 0 || slot->code == hash_code(walk, pc);
}

/* Only code in writable mappings changes without an event. */
static void remember_code(struct walk *walk, uint64_t pc)
{
	const struct mapping *mapping = address_space_find(walk->process->space, pc);
	struct pc_slot *slot = pc_table_find(&walk->process->pcs, pc);

	if (slot)
		slot->code = mapping && mapping->writable ? hash_code(walk, pc) : 0;
}

bool guess_holds(struct walk *walk, const struct cfi_row *row)
{
	const struct native_frame *frame = &walk->stack->frames[walk->stack->n_frames - 1];
	uint64_t pc;
	int r;

	if (!code_is_same(walk, native_frame_lookup(frame)))
		return false;
	if (row->saved[0] == SAVED_SAME)
		r = link_register(walk, &pc);
	else
		r = memory_load(walk->stack, walk->sp + (uint64_t)(int64_t)row->cfa_offset + row->saved[0], &pc);
	return r == 0 && is_return_address(walk->process, machine_return_address(pc));
}

/*
 * Make a supposition the row of the last frame's PC. Store it in the table at once, so that it must also hold for the
 * same PC in outer, recursive frames.
 */
static int set_supposed(struct walk *walk, const struct supposition *caller)
{
	struct native_frame *frame = &walk->stack->frames[walk->stack->n_frames - 1];
	struct pc_slot *slot = pc_table_find(&walk->process->pcs, native_frame_lookup(frame));
	struct cfi_row row = {
		.cfa_kind = CFA_REGISTER,
		.cfa_register = MACHINE_REG_SP,
		.cfa_offset = (int32_t)(caller->sp - frame->sp),
		.is_guess = true,
	};
	int r;

	/* A function with an empty frame cannot save registers, so it changes none. */
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		row.saved[i] = row.cfa_offset == 0 ? SAVED_SAME : SAVED_UNDEFINED;
	row.saved[0] = caller->saved_pc;
	row.saved[row_saved_index(MACHINE_REG_FP)] = caller->saved_fp;
	r = row_pool_share(&walk->process->unwinder->pool, &row, &frame->row);
	if (r < 0)
		return r;
	frame->cfa = caller->sp;
	frame->without_cfi = true;
	if (slot)
		slot->row = frame->row;
	return 0;
}

/* Undo a supposition: the PC has no row, the frame no CFA. */
static void forget(struct walk *walk)
{
	struct native_frame *frame = &walk->stack->frames[walk->stack->n_frames - 1];
	struct pc_slot *slot = pc_table_find(&walk->process->pcs, native_frame_lookup(frame));

	frame->row = ROW_NONE;
	frame->cfa = 0;
	frame->without_cfi = false;
	if (slot)
		slot->row = ROW_NONE;
}

/* Stale words on a stack rarely form this many consistent frames. */
enum { ENOUGH_FRAMES = 8 };

/*
 * A walk that reaches the thread's start is right, because the frame before led exactly there. A walk that starts there
 * may result from a stale word. A zero word also ends a walk and proves nothing, because stacks are full of zeros, so
 * such a walk needs many frames.
 */
static bool is_convincing(const struct walk *further, size_t n_frames)
{
	enum stack_end end = further->stack->end;

	if (end == STACK_TRUNCATED)
		return further->may_end_early && n_frames >= ENOUGH_FRAMES;
	return (end == STACK_COMPLETE || end == STACK_COMPLETED) &&
	       n_frames >= (further->is_at_start ? 2 : ENOUGH_FRAMES);
}

/* A long walk up to the end of the captured bytes is the second choice. */
static void note_early(struct walk_search *search, const struct walk *further, const struct supposition *caller,
		       size_t n_frames)
{
	if (!search || search->has_early || further->stack->end != STACK_TRUNCATED || n_frames < ENOUGH_FRAMES)
		return;
	search->has_early = true;
	search->early = *caller;
}

/* Continue from a supposition. 1: it is right, 0: it is wrong. */
static int try_from(struct walk *walk, const struct supposition *caller)
{
	struct native_stack *stack = walk->stack;
	size_t before = stack->n_frames;
	struct walk further = *walk;
	int r;

	further.pc = caller->pc;
	further.sp = caller->sp;
	further.fp = caller->fp;
	further.fp_is_lost = false;
	further.is_return_address = true;
	further.callee = SIZE_MAX;
	r = walk_on(&further);
	walk->searches_left = further.searches_left;
	walk->effort = further.effort;
	if (r < 0)
		return r;
	if (is_convincing(&further, stack->n_frames - before)) {
		walk->is_at_start = further.is_at_start;
		return 1;
	}
	note_early(walk->search, &further, caller, stack->n_frames - before);
	stack->n_frames = before;
	return 0;
}

/* Keep known callers in order of their last use; evict the oldest. */
static void remember_caller(struct walk *walk, const struct supposition *caller)
{
	struct known_caller *known = walk->process->known_callers;
	const struct known_caller found = {
		.pc = caller->pc,
		.bytes = (uint32_t)(caller->sp - walk->sp),
		.saved_fp = caller->saved_fp,
	};
	size_t i = 0;

	if (caller->saved_pc != -(int16_t)sizeof found.pc)
		return;
	while (i < N_KNOWN_CALLERS - 1 && memcmp(&known[i], &found, sizeof found) != 0)
		i++;
	memmove(&known[1], &known[0], i * sizeof *known);
	known[0] = found;
}

int suppose(struct walk *walk, const struct supposition *caller)
{
	int r;

	walk->searches_left--;
	r = set_supposed(walk, caller);
	if (r >= 0)
		r = try_from(walk, caller);
	if (r == 0)
		forget(walk);
	if (r == 1) {
		walk->process->unwinder->pool.n_compiled++; /* counts as compiled from now on */
		remember_caller(walk, caller);
	}
	return r;
}

/*
 * Try all frame pointers that may belong to a return address. A call pushes the return address at the frame's end;
 * generated code then pushes the registers it has to keep.
 */
static int try_return_address(struct walk *walk, uint64_t address, uint64_t pc)
{
	struct native_stack *stack = walk->stack;
	uint64_t cfa = address + sizeof pc;

	for (int64_t pushed = 0; pushed <= PUSHED_WORDS; pushed++) {
		int64_t offset = pushed ? -(pushed + 1) * (int64_t)sizeof pc : 0;
		struct supposition caller = {
			.pc = pc,
			.sp = cfa,
			.fp = walk->fp,
			.saved_pc = -(int16_t)sizeof pc,
			.saved_fp = pushed ? (int16_t)offset : SAVED_SAME,
		};
		int r;

		if (walk->searches_left == 0 || cfa + (uint64_t)offset < walk->sp)
			break;
		if (pushed && memory_load(stack, cfa + (uint64_t)offset, &caller.fp) < 0)
			break;
		if (pushed && caller.fp < cfa)
			continue; /* a frame pointer must point to an outer frame */
		r = suppose(walk, &caller);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Check a known caller against this stack. False: it is not the caller. */
static bool is_known_here(struct walk *walk, const struct known_caller *known, struct supposition *ret)
{
	uint64_t pc, cfa = walk->sp + known->bytes, fp = walk->fp;

	if (native_stack_read(walk->stack, cfa - sizeof pc, &pc, sizeof pc) < 0 ||
	    machine_return_address(pc) != known->pc)
		return false;
	if (known->saved_fp != SAVED_SAME &&
	    (memory_load(walk->stack, cfa + (uint64_t)(int64_t)known->saved_fp, &fp) < 0 || fp < cfa))
		return false;
	*ret = (struct supposition){
		.pc = known->pc, .sp = cfa, .fp = fp, .saved_pc = -(int16_t)sizeof pc, .saved_fp = known->saved_fp
	};
	return true;
}

/*
 * Generated code has few callers, and its frame size is the same at different PCs of a function. So first try return
 * addresses found for other PCs, at the same distance. If both agree, the walk may end at the captured bytes. Returns
 * as search().
 */
static int try_known_callers(struct walk *walk)
{
	struct known_caller known[N_KNOWN_CALLERS];
	struct supposition caller;
	int r = 0;

	memcpy(known, walk->process->known_callers, sizeof known); /* searches in outer frames change them */
	walk->may_end_early = true;
	for (size_t i = 0; i < N_KNOWN_CALLERS && known[i].pc != 0 && walk->searches_left > 0 && r == 0; i++)
		if (is_known_here(walk, &known[i], &caller))
			r = suppose(walk, &caller);
	walk->may_end_early = false;
	return r;
}

/* No walk reached the thread's start. Returns as search(). */
static int take_early(struct walk *walk, const struct walk_search *search)
{
	int r;

	if (!search->has_early)
		return 0;
	walk->searches_left = MAX(walk->searches_left, 1U);
	walk->may_end_early = true;
	r = suppose(walk, &search->early);
	walk->may_end_early = false;
	return r;
}

/* 1: found, including the rest of the stack. */
static int search(struct walk *walk)
{
	struct native_stack *stack = walk->stack;

	for (uint64_t offset = 0; offset < SEARCH_BYTES && walk->searches_left > 0; offset += sizeof(uint64_t)) {
		uint64_t pc;
		int r;

		if (native_stack_read(stack, walk->sp + offset, &pc, sizeof pc) < 0)
			break;
		pc = machine_return_address(pc);
		if (!is_return_address(walk->process, pc))
			continue;
		r = try_return_address(walk, walk->sp + offset, pc);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Continue from a possible CFA of the last frame, by its row. */
static int try_cfa(struct walk *walk, uint64_t cfa)
{
	struct native_stack *stack = walk->stack;
	struct native_frame *frame = &stack->frames[stack->n_frames - 1];
	struct walk tried = *walk;
	struct supposition caller;
	int r;

	if (cfa <= frame->sp || cfa - frame->sp > SEARCH_BYTES || walk->searches_left == 0)
		return 0;
	frame->cfa = cfa;
	r = load_caller(&tried);
	walk->effort = tried.effort;
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !is_return_address(walk->process, tried.pc))
		return 0;
	walk->searches_left--;
	caller = (struct supposition){ .pc = tried.pc, .sp = cfa, .fp = tried.fp };
	return try_from(walk, &caller);
}

int search_in_place(struct walk *walk, uint64_t read_cfa)
{
	uint64_t sp = walk->sp;
	int r;

	r = try_cfa(walk, read_cfa);
	for (uint64_t cfa = sp + sizeof cfa; r == 0 && cfa <= sp + SEARCH_BYTES; cfa += sizeof cfa)
		r = try_cfa(walk, cfa);
	return r;
}

/*
 * A failed search usually fails again: the captured bytes end before the thread's start, or the code has switched
 * stacks. After a few failures in a row, each one halves the rate of searches, down to one in 256.
 */
static bool may_search(struct walk *walk, uint64_t pc)
{
	enum { PATIENCE = 4, MAX_SHIFT = 8 };
	struct pc_slot *slot = pc_table_find(&walk->process->failures, pc);
	unsigned shift;

	if (!slot || slot->row < PATIENCE)
		return true;
	shift = MIN(slot->row - PATIENCE + 1, (uint32_t)MAX_SHIFT);
	return ++slot->plain % (1u << shift) == 0;
}

static void remember_search(struct walk *walk, uint64_t pc, bool failed)
{
	struct pc_slot *slot = pc_table_find(&walk->process->failures, pc);

	if (slot)
		slot->row = failed ? slot->row + 1 : 0;
	else if (failed)
		(void)pc_table_add(&walk->process->failures, pc, 1, 0); /* only a cache */
}

static bool is_searched_for(const struct walk *walk, uint64_t pc)
{
	for (const struct walk_search *search = walk->search; search; search = search->outer)
		if (search->pc == pc)
			return true;
	return false;
}

/* Returns as search(). */
static int search_anew(struct walk *walk, uint64_t pc)
{
	struct walk_search this_one = { .pc = pc, .outer = walk->search };
	const struct pc_slot *known = pc_table_find(&walk->process->pcs, pc);
	uint32_t before = known && code_is_same(walk, pc) ? known->row : ROW_NONE;
	bool may_end_early = walk->may_end_early;
	struct pc_slot *slot;
	int r;

	walk->search = &this_one;
	walk->may_end_early = false;
	remember_code(walk, pc);
	r = search_by_record(walk);
	if (r == 0)
		r = try_known_callers(walk);
	if (r == 0)
		r = search(walk);
	if (r == 0)
		r = take_early(walk, &this_one);
	walk->search = this_one.outer;
	walk->may_end_early = may_end_early;
	if (r < 0)
		return r;
	/* A row that fails here, perhaps because bytes are missing, may work next time. */
	slot = pc_table_find(&walk->process->pcs, pc);
	if (r == 0 && slot)
		slot->row = before;
	remember_search(walk, pc, r == 0);
	return r;
}

int step_without_cfi(struct walk *walk)
{
	uint64_t pc = native_frame_lookup(&walk->stack->frames[walk->stack->n_frames - 1]);
	int r = 0;

	/* The current supposition about this PC fails here, so it is wrong. */
	if (is_searched_for(walk, pc)) {
		walk->stack->end = STACK_NO_UNWIND_INFO;
		return 0;
	}

	/* The caller is no code: an inner frame is wrong. */
	if (walk->is_return_address && !is_code(walk->process, walk->pc - 1)) {
		walk->stack->end = STACK_NO_UNWIND_INFO;
		return 0;
	}
	/*
	 * If no code is mapped there, the map may be out of date, or the program called a bad address. Then the return
	 * address is the first word of the stack.
	 */
	if (may_search(walk, pc)) {
		r = search_anew(walk, pc);
		if (r < 0)
			return r;
	}
	return r == 1 ? 0 : step_by_frame_pointer(walk);
}
