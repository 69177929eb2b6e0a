/* SPDX-License-Identifier: MIT */
/* unwind.c - from captured registers and stack bytes to native frames.
 *
 * Invariants of a walk:
 * - a frame's part of the stack is [sp, cfa), and the next frame's begins at
 *   its cfa; the CFA grows from frame to frame, except across a signal
 *   trampoline, which may change stacks, and in a leaf (or the outermost frame)
 *   that keeps no return address on the stack. So every walk ends.
 * - only PC, SP and the frame pointer are carried along and kept in each frame;
 *   other callee-saved registers are recovered on request, from the places where
 *   rows of inner frames saved them (native_register), and an effort limit
 *   bounds that for any CFI.
 * - most frames are plain: an offset from SP or FP, captured words. They take the
 *   short way, walk_plain(), which never differs from step_by_row().
 * - the leaf and interrupted frames are looked up by their PC, callers
 *   by the byte before their return address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/native/memory.h"
#include "unwind/native/walk.h"

int native_unwinder_new(struct module_table *modules, struct native_unwinder **ret)
{
	CLEANUP(native_unwinder_freep) struct native_unwinder *unwinder = NULL;
	int r;

	unwinder = calloc(1, sizeof *unwinder);
	if (!unwinder)
		return -ENOMEM;
	unwinder->modules = modules;
	r = row_pool_init(&unwinder->pool);
	if (r < 0)
		return r;
	*ret = TAKE(unwinder);
	return 0;
}

void native_unwinder_free(struct native_unwinder *unwinder)
{
	if (!unwinder)
		return;
	for (size_t i = 0; i < module_table_size(unwinder->modules); i++)
		cfi_module_done(module_table_get(unwinder->modules, i));
	row_pool_done(&unwinder->pool);
	free(unwinder);
}

void native_unwinder_set_source(struct native_unwinder *unwinder, const struct native_row_source *source)
{
	unwinder->source = source;
}

void native_unwinder_freep(struct native_unwinder **unwinder)
{
	native_unwinder_free(*unwinder);
}

int native_process_new(struct native_unwinder *unwinder, struct address_space *space, struct native_process **ret)
{
	struct native_process *process;

	process = calloc(1, sizeof *process);
	if (!process)
		return -ENOMEM;
	process->unwinder = unwinder;
	process->space = space;
	process->generation = address_space_generation(space);
	*ret = process;
	return 0;
}

void native_process_free(struct native_process *process)
{
	if (!process)
		return;
	pc_table_done(&process->pcs);
	pc_table_done(&process->returns);
	pc_table_done(&process->failures);
	free(process);
}

void native_process_freep(struct native_process **process)
{
	native_process_free(*process);
}

void native_stack_done(struct native_stack *stack)
{
	free(stack->frames);
	memory_done(stack);
	memset(stack, 0, sizeof *stack);
}

/* Find the row of a PC that is new in this process. */
static int find_new_row(struct native_process *process, uint64_t pc, uint32_t *ret)
{
	struct mapping *mapping = address_space_find(process->space, pc);
	struct module *module = NULL;
	uint64_t address;
	uint32_t row = ROW_NONE;
	int r;

	if (!mapping || !mapping->executable) {
		*ret = ROW_NONE; /* do not store: the mapping may become known soon */
		return 0;
	}
	r = address_space_resolve(process->space, pc, &module, &address);
	if (r >= 0 && module && !cfi_row_find(module, address, &row))
		r = process->unwinder->source ? stack_rows_ask(process, mapping, pc, address, &row)
					      : cfi_row_at(&process->unwinder->pool, NULL, module, address, &row);
	if (r == -ENOMEM)
		return r;
	*ret = row;
	if (pc == 0)
		return 0; /* 0 marks a free slot in the table */
	r = pc_table_add(&process->pcs, pc, row, pc_table_plain(&process->unwinder->pool.rows[row]));
	return r < 0 ? r : 0;
}

static inline int find_row(struct native_process *process, uint64_t pc, uint32_t *ret)
{
	const struct pc_slot *slot = pc_table_find(&process->pcs, pc);

	if (slot) {
		*ret = slot->row;
		return 0;
	}
	return find_new_row(process, pc, ret);
}

int walk_find_row(struct native_process *process, uint64_t pc, uint32_t *ret)
{
	return find_row(process, pc, ret);
}

/* Registers and memory of one frame, for expressions. */
struct frame_view {
	struct native_stack *stack;
	size_t frame;
	struct effort *effort;
};

static int recover(struct native_stack *stack, size_t frame, unsigned reg, struct effort *effort, uint64_t *ret);

static int view_register(void *data, unsigned reg, uint64_t *ret)
{
	struct frame_view *view = data;

	return recover(view->stack, view->frame, reg, view->effort, ret);
}

static int view_load(void *data, uint64_t address, uint64_t *ret)
{
	struct frame_view *view = data;

	if (view->frame == 0 && address < view->stack->frames[0].sp)
		view->effort->read_below_sp = true;
	return memory_load(view->stack, address, ret);
}

static int evaluate(struct native_stack *stack, size_t frame, const struct cfi_expression *expression,
		    struct effort *effort, uint64_t *ret)
{
	struct frame_view view = { stack, frame, effort };
	struct cfi_context context = { view_register, view_load, &view, stack->frames[frame].cfa };
	int r;

	if (effort->depth == EFFORT_MAX_DEPTH)
		return -ENODATA;
	effort->depth++;
	r = expression_evaluate(expression, &context, ret);
	effort->depth--;
	return r;
}

/* Find the caller's value of a register of @frame. 1: it is unchanged. */
static int saved_register(struct native_stack *stack, size_t frame, int index, struct effort *effort, uint64_t *ret)
{
	const struct row_pool *pool = &stack->unwinder->pool;
	const struct cfi_row *row = &pool->rows[stack->frames[frame].row];
	const struct cfi_expression *expression;
	uint64_t value;
	int r;

	if (row->saved[index] >= SAVED_FIRST_OFFSET)
		return memory_load(stack, stack->frames[frame].cfa + (uint64_t)(int64_t)row->saved[index], ret);
	if (row->saved[index] == SAVED_SAME)
		return 1;
	if (row->saved[index] == SAVED_UNDEFINED)
		return -ENODATA;
	expression = &pool->slow[row->slow].saved[index];
	r = evaluate(stack, frame, expression, effort, &value);
	if (r < 0)
		return r;
	if (!expression->is_value)
		return memory_load(stack, value, ret);
	*ret = value;
	return 0;
}

static int recover(struct native_stack *stack, size_t frame, unsigned reg, struct effort *effort, uint64_t *ret)
{
	int index;

	if (frame >= stack->n_frames || reg >= MACHINE_N_REGS)
		return -ENODATA;
	if (reg == MACHINE_REG_SP || reg == MACHINE_REG_PC) {
		*ret = reg == MACHINE_REG_SP ? stack->frames[frame].sp : stack->frames[frame].pc;
		return 0;
	}
	if (reg == MACHINE_REG_FP) {
		if (stack->frames[frame].fp_is_lost)
			return -ENODATA;
		*ret = stack->frames[frame].fp;
		return 0;
	}
	index = row_saved_index(reg);
	while (frame-- > 0) {
		int r;

		if (stack->frames[frame].is_trampoline)
			return memory_load(stack, stack->frames[frame].sp + (uint64_t)machine_signal_slot(reg), ret);
		if (index < 0 || stack->frames[frame].row == ROW_NONE || effort->n_frames == 0)
			return -ENODATA;
		effort->n_frames--;
		r = saved_register(stack, frame, index, effort, ret);
		if (r != 1)
			return r;
	}
	*ret = stack->sample->regs.value[reg];
	return 0;
}

int native_register(struct native_stack *stack, size_t frame, unsigned reg, uint64_t *ret)
{
	struct effort effort = { .n_frames = EFFORT_MAX_FRAMES };

	return recover(stack, frame, reg, &effort, ret);
}

static int compute_cfa(struct walk *walk, const struct cfi_row *row, uint64_t *ret)
{
	struct native_stack *stack = walk->stack;
	size_t frame = stack->n_frames - 1;
	uint64_t base;
	int r;

	if (row->cfa_kind == CFA_EXPRESSION)
		return evaluate(stack, frame, &stack->unwinder->pool.slow[row->slow].cfa, &walk->effort, ret);
	r = recover(stack, frame, row->cfa_register, &walk->effort, &base);
	if (r < 0)
		return r;
	base += (uint64_t)(int64_t)row->cfa_offset;
	if (row->cfa_kind == CFA_DEREF) {
		walk->effort.read_below_sp |= base < stack->frames[0].sp;
		return memory_load(stack, base, ret);
	}
	*ret = base;
	return 0;
}

/* The stack end for memory that could not be read. */
static enum stack_end end_of_failure(const struct native_stack *stack)
{
	return stack->rest_refused ? STACK_TRUNCATED : STACK_BAD_MEMORY;
}

static enum stack_end end_of_start(const struct native_stack *stack)
{
	return stack->rest.n_bytes > 0 ? STACK_COMPLETED : STACK_COMPLETE;
}

int link_register(struct walk *walk, uint64_t *ret)
{
	struct native_stack *stack = walk->stack;
	size_t frame = stack->n_frames - 1;

	if (MACHINE_REG_RETURN == MACHINE_REG_PC || (frame > 0 && !stack->frames[frame - 1].is_signal))
		return -ENODATA;
	return recover(stack, frame, MACHINE_REG_RETURN, &walk->effort, ret);
}

int load_caller(struct walk *walk)
{
	struct native_stack *stack = walk->stack;
	size_t frame = stack->n_frames - 1;
	uint64_t pc, fp;
	int r;

	r = saved_register(stack, frame, 0, &walk->effort, &pc);
	if (r == 1)
		r = link_register(walk, &pc);
	if (r < 0)
		return r;
	r = saved_register(stack, frame, walk->fp_index, &walk->effort, &fp);
	if (r < 0 && r != -ENODATA)
		return r;
	walk->pc = machine_return_address(pc);
	if (r == 0)
		walk->fp = fp;
	/* A lost frame pointer only matters if an outer frame needs it. */
	walk->fp_is_lost = r == -ENODATA || (r == 1 && walk->fp_is_lost);
	return 0;
}

/* A function that keeps no return address on the stack may have an empty frame. */
static bool stack_grows(const struct walk *walk, const struct cfi_row *row, uint64_t cfa)
{
	bool may_be_empty = row->saved[0] == SAVED_SAME || row->saved[0] == SAVED_UNDEFINED;

	return cfa > walk->sp || row->is_signal || (cfa == walk->sp && may_be_empty);
}

/* Nothing called this function: its rules say so, or its return address is lost. */
static bool is_outermost(struct walk *walk, const struct cfi_row *row)
{
	uint64_t pc;

	return row->is_outermost || (row->saved[0] == SAVED_SAME && link_register(walk, &pc) == -ENODATA);
}

/* Whether the leaf's CFA depends on a word that was read after the sample and may have changed. */
static bool is_read_late(const struct walk *walk)
{
	return walk->effort.read_below_sp && walk->stack->n_frames == 1 && !walk->stack->sample->is_held;
}

/* Step by CFI. Returns 1 to continue, 0 if stack->end was set. */
static int step_by_row(struct walk *walk, const struct cfi_row *row)
{
	struct native_stack *stack = walk->stack;
	struct native_frame *frame = &stack->frames[stack->n_frames - 1];
	enum stack_end failure;
	uint64_t cfa;
	int r;

	frame->is_signal = row->is_signal;
	if (row->is_signal)
		frame->is_return_address = false; /* the kernel pushed this frame; its PC is no return address */
	frame->without_cfi = row->is_guess;
	walk->effort.read_below_sp = false;
	r = compute_cfa(walk, row, &cfa);
	if (r == -ENOMEM)
		return r;
	failure = end_of_failure(stack);
	if (is_read_late(walk)) {
		int found = search_in_place(walk, r < 0 ? 0 : cfa);

		if (found != 0)
			return found < 0 ? found : 0;
		frame = &stack->frames[stack->n_frames - 1];
		frame->cfa = 0;
	}
	if (r < 0 || !stack_grows(walk, row, cfa)) {
		stack->end = r < 0 ? failure : STACK_BAD_MEMORY;
		return 0;
	}
	frame->cfa = cfa;
	if (is_outermost(walk, row)) {
		stack->end = end_of_start(stack);
		walk->is_at_start = true;
		return 0;
	}
	r = load_caller(walk);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		stack->end = end_of_failure(stack);
		return 0;
	}
	walk->sp = cfa;
	walk->is_return_address = !row->is_signal;
	return 1;
}

/*
 * Unwind plain frames: known PCs, offsets from SP or FP, captured words. Stops before the first other frame, without
 * side effects. Keeps all changing state in registers.
 * Predicts each caller's slot from last time and only compares. So the processor speculates along the outer frames,
 * while the loads of the return addresses that confirm the prediction are still pending.
 */
static inline __attribute__((always_inline)) void walk_plain_by(enum prefetch_way way, struct walk *walk)
{
	struct native_stack *stack = walk->stack;
	const struct pc_table *pcs = &walk->process->pcs;
	const struct sample *sample = stack->sample;
	const uint64_t base = sample->regs.value[MACHINE_REG_SP];
	const uint8_t *bytes = sample->stack;
	uint64_t n_bytes = sample->stack_bytes;
	struct native_frame *frame = stack->frames ? stack->frames + stack->n_frames : NULL;
	const struct native_frame *end = stack->frames ? stack->frames +
								 MIN(stack->frames_allocated, (size_t)NATIVE_MAX_FRAMES)
						       : NULL;
	uint64_t pc = walk->pc, sp = walk->sp, fp = walk->fp;
	bool is_return_address = walk->is_return_address;
	struct pc_slot *callee = walk->callee < pcs->n_slots ? &pcs->slots[walk->callee] : NULL;
	size_t expected = callee ? callee->caller : 0; /* predicted slot of the next frame */
	struct prefetch *prefetch = &walk->process->unwinder->prefetch;
	struct prefetch_guess prefetch_guess = { .lead = 0 };

	if (walk->fp_is_lost || n_bytes < sizeof pc || !frame || pcs->n_slots == 0)
		return;
	while (frame < end && pc != 0) {
		struct pc_slot *slot = &pcs->slots[expected];
		uint64_t cfa, at, saved_fp = fp, next;
		int16_t fp_rule;

		if (slot->pc != pc - is_return_address) {
			slot = pc_table_find(pcs, pc - is_return_address);
			if (!slot)
				break;
			if (callee)
				callee->caller = (uint32_t)(slot - pcs->slots);
			prefetch_guess.lead = 0; /* the prediction failed */
		}
		if (slot->plain == 0)
			break;
		callee = slot;
		expected = slot->caller;
		cfa = plain_cfa_offset(slot->plain);
		/* A branch: with a conditional move, SP would always wait for a load of FP. */
		if (__builtin_expect_with_probability(slot->plain & PLAIN_BASE_IS_FP, 0, 1)) {
			__asm__("" : "+r"(cfa));
			cfa += fp;
			slot->bytes = (uint32_t)(cfa - sp);
		} else {
			cfa += sp;
		}
		at = cfa - sizeof pc - base;
		if (at > n_bytes - sizeof pc || cfa <= sp)
			break;
		fp_rule = (int16_t)(slot->plain & PLAIN_SAVED_FP);
		if (fp_rule != SAVED_SAME) {
			uint64_t fp_at = cfa + (uint64_t)(int64_t)fp_rule - base;

			if (fp_at > n_bytes - sizeof pc)
				break;
			memcpy(&saved_fp, bytes + fp_at, sizeof saved_fp);
		}
		memcpy(&next, bytes + at, sizeof next);
		if (way == PREFETCH_BY_GUESS)
			prefetch_guess_advance(&prefetch_guess, pcs, sample, &pcs->slots[expected], cfa - base);
		else
			prefetch_ask(prefetch, PREFETCH_BYTES_A_FRAME);
		*frame++ = (struct native_frame){
			.pc = pc,
			.sp = sp,
			.cfa = cfa,
			.fp = fp,
			.row = slot->row,
			.is_return_address = is_return_address,
		};
		pc = machine_return_address(next);
		sp = cfa;
		fp = saved_fp;
		is_return_address = true;
	}
	stack->n_frames = (size_t)(frame - stack->frames);
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->is_return_address = is_return_address;
	walk->callee = callee ? (size_t)(callee - pcs->slots) : SIZE_MAX;
}

static void walk_plain(struct walk *walk)
{
	if (walk->process->unwinder->prefetch.way == PREFETCH_BY_GUESS)
		walk_plain_by(PREFETCH_BY_GUESS, walk);
	else
		walk_plain_by(PREFETCH_IN_ORDER, walk);
}

/* The last frame was not plain: update its slot as walk_plain() does. */
static void note_frame(struct walk *walk, size_t number)
{
	const struct native_frame *frame = &walk->stack->frames[number];
	const struct pc_table *pcs = &walk->process->pcs;
	struct pc_slot *slot = pc_table_find(pcs, native_frame_lookup(frame));
	size_t callee = walk->callee;

	walk->callee = SIZE_MAX;
	if (!slot || walk->stack->n_frames != number + 1 || frame->cfa <= frame->sp)
		return;
	walk->callee = (size_t)(slot - pcs->slots);
	slot->bytes = (uint32_t)(frame->cfa - frame->sp);
	if (callee < pcs->n_slots)
		pcs->slots[callee].caller = (uint32_t)walk->callee;
}

static inline int push_frame(struct walk *walk)
{
	struct native_stack *stack = walk->stack;
	struct native_frame *frame;
	int r;

	if (stack->n_frames == stack->frames_allocated) {
		r = grow(&stack->frames, stack->n_frames, &stack->frames_allocated, sizeof *stack->frames);
		if (r < 0)
			return r;
	}
	frame = &stack->frames[stack->n_frames++];
	*frame = (struct native_frame){
		.pc = walk->pc,
		.sp = walk->sp,
		.fp = walk->fp,
		.fp_is_lost = walk->fp_is_lost,
		.is_return_address = walk->is_return_address,
	};
	return find_row(walk->process, native_frame_lookup(frame), &frame->row);
}

int walk_on(struct walk *walk)
{
	struct native_stack *stack = walk->stack;
	const struct row_pool *pool = &walk->process->unwinder->pool;
	int r = 1;

	while (r == 1) {
		const struct cfi_row *row;
		size_t number;

		walk_plain(walk);
		if (walk->pc == 0 && stack->n_frames > 0) {
			stack->end = walk->is_unproven ? STACK_NO_UNWIND_INFO : end_of_start(stack);
			return 0;
		}
		if (stack->n_frames >= NATIVE_MAX_FRAMES) {
			stack->end = STACK_FRAME_LIMIT;
			return 0;
		}
		r = push_frame(walk);
		if (r < 0)
			return r;
		number = stack->n_frames - 1;
		row = &pool->rows[stack->frames[number].row];
		if (is_trampoline(walk, row))
			r = step_by_trampoline(walk);
		else if (row->cfa_kind == CFA_NONE || (row->is_guess && !guess_holds(walk, row)))
			r = step_without_cfi(walk);
		else
			r = step_by_row(walk, row);
		if (r == 1)
			note_frame(walk, number);
	}
	return r;
}

void native_expect(struct native_process *process, const struct sample *sample)
{
	prefetch_expect(&process->unwinder->prefetch, &process->pcs, sample);
}

int native_unwind(struct native_process *process, const struct sample *sample, struct remote *remote,
		  struct native_stack *stack)
{
	struct walk walk = {
		.process = process,
		.stack = stack,
		.pc = sample->regs.value[MACHINE_REG_PC],
		.sp = sample->regs.value[MACHINE_REG_SP],
		.fp = sample->regs.value[MACHINE_REG_FP],
		.searches_left = WALK_MAX_SEARCHES,
		.effort = { .n_frames = EFFORT_MAX_FRAMES },
		.callee = SIZE_MAX,
		.fp_index = row_saved_index(MACHINE_REG_FP),
	};
	int r;

	stack->n_frames = 0;
	stack->sample = sample;
	stack->remote = remote;
	stack->unwinder = process->unwinder;
	memory_begin(stack);
	stack->end = STACK_BAD_MEMORY;
	if (!sample->has_user)
		return 0;
	if (process->generation != address_space_generation(process->space)) {
		pc_table_clear(&process->pcs);
		pc_table_clear(&process->returns);
		pc_table_clear(&process->failures);
		memset(process->known_callers, 0, sizeof process->known_callers);
		process->generation = address_space_generation(process->space);
	}
	prefetch_begin(&process->unwinder->prefetch, &process->pcs, sample);
	process->stack = stack;
	r = walk_on(&walk);
	process->stack = NULL;
	prefetch_done(&process->unwinder->prefetch, stack);
	return r;
}
