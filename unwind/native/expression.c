/* SPDX-License-Identifier: MIT */
/* expression.c - a small reader and evaluator of the DWARF operations that occur in CFI.
 *
 * The operations come from an untrusted file: the stack of
 * values and the number of steps are bounded, unknown operations are refused.
 * Source: DWARF 5, sections 2.5.1 and 7.7.1.
 */
#include <dwarf.h>
#include <errno.h>

#include "base/cursor.h"
#include "base/util.h"
#include "unwind/native/row.h"

enum { MAX_VALUES = 32 };

struct machine_state {
	uint64_t values[MAX_VALUES];
	unsigned n;
};

static int push(struct machine_state *state, uint64_t value)
{
	if (state->n == MAX_VALUES)
		return -EBADMSG;
	state->values[state->n++] = value;
	return 0;
}

static int push_register(struct machine_state *state, const struct cfi_context *context, uint64_t reg, uint64_t offset)
{
	uint64_t value;
	int r;

	if (reg >= MACHINE_N_REGS)
		return -EBADMSG;
	r = context->get_register(context->data, (unsigned)reg, &value);
	if (r < 0)
		return r;
	return push(state, value + offset);
}

/* Operators with two operands. */
static int binary(unsigned atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_plus:
		*ret = a + b;
		return 0;
	case DW_OP_minus:
		*ret = a - b;
		return 0;
	case DW_OP_mul:
		*ret = a * b;
		return 0;
	case DW_OP_and:
		*ret = a & b;
		return 0;
	case DW_OP_or:
		*ret = a | b;
		return 0;
	case DW_OP_xor:
		*ret = a ^ b;
		return 0;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return 0;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return 0;
	case DW_OP_shra:
		*ret = (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
		return 0;
	case DW_OP_eq:
		*ret = a == b;
		return 0;
	case DW_OP_ne:
		*ret = a != b;
		return 0;
	case DW_OP_lt:
		*ret = (int64_t)a < (int64_t)b;
		return 0;
	case DW_OP_le:
		*ret = (int64_t)a <= (int64_t)b;
		return 0;
	case DW_OP_gt:
		*ret = (int64_t)a > (int64_t)b;
		return 0;
	case DW_OP_ge:
		*ret = (int64_t)a >= (int64_t)b;
		return 0;
	}
	return -EBADMSG;
}

/* Operators on the top of the stack. */
static int unary(struct machine_state *state, const struct cfi_context *context, const Dwarf_Op *op)
{
	uint64_t *top = &state->values[state->n - 1];

	switch (op->atom) {
	case DW_OP_deref:
		return context->load(context->data, *top, top);
	case DW_OP_plus_uconst:
		*top += op->number;
		return 0;
	case DW_OP_neg:
		*top = -*top;
		return 0;
	case DW_OP_not:
		*top = ~*top;
		return 0;
	case DW_OP_dup:
		return push(state, *top);
	case DW_OP_drop:
		state->n--;
		return 0;
	}
	if (state->n < 2)
		return -EBADMSG;
	if (op->atom == DW_OP_swap) {
		uint64_t below = top[-1];

		top[-1] = top[0];
		top[0] = below;
		return 0;
	}
	if (op->atom == DW_OP_over)
		return push(state, top[-1]);
	state->n--;
	return binary(op->atom, top[-1], top[0], &top[-1]);
}

static int step(struct machine_state *state, const struct cfi_context *context, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(state, context, op->atom - DW_OP_breg0, op->number);
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(state, op->atom - DW_OP_lit0);
	switch (op->atom) {
	case DW_OP_bregx:
		return push_register(state, context, op->number, op->number2);
	case DW_OP_regx:
		return push_register(state, context, op->number, 0);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(state, op->number); /* libdw has sign-extended it */
	case DW_OP_call_frame_cfa:
		return push(state, context->cfa);
	case DW_OP_nop:
	case DW_OP_stack_value:
		return 0;
	}
	if (state->n == 0)
		return -EBADMSG;
	return unary(state, context, op);
}

int expression_evaluate(const struct cfi_expression *expression, const struct cfi_context *context, uint64_t *ret)
{
	struct machine_state state = { .n = 0 };

	for (size_t i = 0; i < expression->n_ops; i++) {
		int r = step(&state, context, &expression->ops[i]);

		if (r < 0)
			return r;
	}
	if (state.n == 0)
		return -EBADMSG;
	*ret = state.values[state.n - 1];
	return 0;
}

/* ---- Decoding ---- */

/* Returns 0, or -EBADMSG for an operation that step() does not support either. */
static int decode_one(struct cursor *cursor, Dwarf_Op *op)
{
	op->atom = (uint8_t)cursor_fixed(cursor, 1);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		op->number = (uint64_t)cursor_signed_leb128(cursor);
		return 0;
	}
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return 0;
	switch (op->atom) {
	case DW_OP_bregx:
		op->number = cursor_leb128(cursor);
		op->number2 = (uint64_t)cursor_signed_leb128(cursor);
		return 0;
	case DW_OP_const1u:
		op->number = cursor_fixed(cursor, 1);
		return 0;
	case DW_OP_const1s:
		op->number = (uint64_t)cursor_signed(cursor, 1);
		return 0;
	case DW_OP_const2u:
		op->number = cursor_fixed(cursor, 2);
		return 0;
	case DW_OP_const2s:
		op->number = (uint64_t)cursor_signed(cursor, 2);
		return 0;
	case DW_OP_const4u:
		op->number = cursor_fixed(cursor, 4);
		return 0;
	case DW_OP_const4s:
		op->number = (uint64_t)cursor_signed(cursor, 4);
		return 0;
	case DW_OP_const8u:
	case DW_OP_const8s:
		op->number = cursor_fixed(cursor, 8);
		return 0;
	case DW_OP_regx:
	case DW_OP_constu:
	case DW_OP_plus_uconst:
		op->number = cursor_leb128(cursor);
		return 0;
	case DW_OP_consts:
		op->number = (uint64_t)cursor_signed_leb128(cursor);
		return 0;
	case DW_OP_call_frame_cfa:
	case DW_OP_nop:
	case DW_OP_stack_value:
	case DW_OP_deref:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_swap:
	case DW_OP_over:
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_and:
	case DW_OP_or:
	case DW_OP_xor:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_eq:
	case DW_OP_ne:
	case DW_OP_lt:
	case DW_OP_le:
	case DW_OP_gt:
	case DW_OP_ge:
		return 0;
	}
	return -EBADMSG;
}

int expression_decode(const uint8_t *bytes, size_t n_bytes, Dwarf_Op *ops, size_t max)
{
	struct cursor cursor = { .at = bytes, .end = bytes + n_bytes };
	size_t n = 0;

	while (cursor.at < cursor.end) {
		if (n == max)
			return -EBADMSG;
		ops[n] = (Dwarf_Op){ .offset = (uint64_t)(cursor.at - bytes) };
		if (decode_one(&cursor, &ops[n]) < 0 || cursor.failed)
			return -EBADMSG;
		n++;
	}
	return (int)n;
}
