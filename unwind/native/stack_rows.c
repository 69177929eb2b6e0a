/* SPDX-License-Identifier: MIT */
/* stack_rows.c - one question for the rows of all functions that a captured stack shows.
 *
 * A question to another process takes as long as some dozen frames. So it also asks for the words further up the stack
 * that may be return addresses into the same mapping. Stale ones among them belong to functions that this thread has
 * called, and probably calls again.
 */
#include "base/util.h"
#include "unwind/native/memory.h"
#include "unwind/native/walk.h"

/* Of the stack, from the frame whose row is missing on: some dozen frames. */
enum { SEARCHED_BYTES = 4096 };

static bool is_among(const uint64_t *addresses, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (addresses[i] == address)
			return true;
	return false;
}

static uint64_t last_frame(const struct native_stack *stack)
{
	return stack->n_frames > 0 ? stack->frames[stack->n_frames - 1].sp : stack->sample->regs.value[MACHINE_REG_SP];
}

/* @addresses: has the first one, and room for NATIVE_ROWS_MAX_ADDRESSES. Returns the number of them all. */
static size_t add_callers(const struct native_process *process, const struct mapping *mapping, uint64_t bias,
			  uint64_t *addresses)
{
	const struct native_stack *stack = process->stack;
	uint64_t from = last_frame(stack), word;
	size_t n = 1;
	uint32_t row;

	for (uint64_t offset = 0; offset < SEARCHED_BYTES && n < NATIVE_ROWS_MAX_ADDRESSES; offset += sizeof word) {
		uint64_t pc;

		if (!memory_captured(stack->sample, from + offset, &word))
			break;
		pc = machine_return_address(word) - 1;
		if (pc < mapping->start || pc >= mapping->end || pc_table_find(&process->pcs, pc) ||
		    is_among(addresses, n, pc - bias) || cfi_row_find(mapping->module, pc - bias, &row))
			continue;
		addresses[n++] = pc - bias;
	}
	return n;
}

int stack_rows_ask(struct native_process *process, const struct mapping *mapping, uint64_t pc, uint64_t address,
		   uint32_t *ret)
{
	uint64_t addresses[NATIVE_ROWS_MAX_ADDRESSES] = { address };
	size_t n = process->stack ? add_callers(process, mapping, pc - address, addresses) : 1;

	return cfi_rows_ask(&process->unwinder->pool, process->unwinder->source, mapping->module, addresses, n, ret);
}
