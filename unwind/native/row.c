/* SPDX-License-Identifier: MIT */
/* row.c - from libdw's description of a frame to a compiled row.
 *
 * libdw gives a register's rule as a location expression. The forms that
 * compilers really emit are recognised and become offsets:
 *   CFA:       breg<N> offset            -> CFA_REGISTER
 *              breg<N> offset; deref     -> CFA_DEREF (realigned stacks)
 *   register:  call_frame_cfa; plus_uconst offset -> offset from the CFA
 *              call_frame_cfa            -> offset 0
 *              nothing, own array        -> undefined (return address and FP only, see below)
 *              nothing, NULL             -> same value
 * A register saved in another one comes as regx, and is that one's value.
 * Everything else (PLT stubs, signal trampolines, AVX2 code of libcrypto) is
 * kept as an expression and evaluated when the row is used.
 * Source: libdw.h of elfutils 0.188, dwarf_frame_cfa and dwarf_frame_register.
 */
#include "unwind/native/row.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

int row_saved_index(unsigned reg)
{
	if (reg == MACHINE_REG_RETURN)
		return 0;
	for (unsigned i = 0; i < machine_n_callee_saved; i++)
		if (machine_callee_saved[i] == reg)
			return (int)i + 1;
	return -1;
}

static int expression_copy(const Dwarf_Op *ops, size_t n_ops, struct cfi_expression *ret)
{
	Dwarf_Op *copy;

	if (n_ops > ROW_MAX_OPS)
		return -EBADMSG;
	copy = reallocarray(NULL, n_ops, sizeof *copy);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, ops, n_ops * sizeof *copy);
	ret->ops = copy;
	ret->n_ops = n_ops;
	ret->is_value = ops[n_ops - 1].atom == DW_OP_stack_value || ops[n_ops - 1].atom == DW_OP_regx;
	return 0;
}

static bool is_base_register(const Dwarf_Op *op, unsigned *ret_reg, int64_t *ret_offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*ret_reg = op->atom - DW_OP_breg0;
		*ret_offset = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx) {
		*ret_reg = (unsigned)op->number;
		*ret_offset = (int64_t)op->number2;
	} else {
		return false;
	}
	return *ret_reg < MACHINE_N_REGS && *ret_offset >= INT32_MIN && *ret_offset <= INT32_MAX;
}

int row_set_cfa(struct cfi_row *row, struct cfi_slow *slow, const Dwarf_Op *ops, size_t n_ops)
{
	unsigned reg;
	int64_t offset;
	int r;

	if (n_ops == 0) {
		row->cfa_kind = CFA_NONE;
		return 0;
	}
	if (is_base_register(&ops[0], &reg, &offset) && (n_ops == 1 || (n_ops == 2 && ops[1].atom == DW_OP_deref))) {
		row->cfa_kind = n_ops == 1 ? CFA_REGISTER : CFA_DEREF;
		row->cfa_register = (uint8_t)reg;
		row->cfa_offset = (int32_t)offset;
		return 0;
	}
	r = expression_copy(ops, n_ops, &slow->cfa);
	if (r < 0)
		return r;
	row->cfa_kind = CFA_EXPRESSION;
	return 1;
}

/* Returns 1 if an expression was kept. */
static int compile_cfa(Dwarf_Frame *frame, struct cfi_row *row, struct cfi_slow *slow)
{
	Dwarf_Op *ops;
	size_t n_ops;

	if (dwarf_frame_cfa(frame, &ops, &n_ops) != 0)
		return -EBADMSG;
	return row_set_cfa(row, slow, ops, n_ops);
}

static bool is_cfa_offset(const Dwarf_Op *ops, size_t n_ops, int64_t *ret)
{
	if (n_ops == 0 || n_ops > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (n_ops == 2 && ops[1].atom != DW_OP_plus_uconst)
		return false;
	*ret = n_ops == 2 ? (int64_t)ops[1].number : 0;
	return *ret >= SAVED_FIRST_OFFSET && *ret <= INT16_MAX;
}

/*
 * Without CFI for a register, libdw applies ABI rules. In 0.188 those for AMD64 name register 0 (rax) instead of 3
 * (rbx), so rbx becomes undefined in every function that preserves it. A function that really loses a callee-saved
 * register never returns, so ignore "undefined" except for PC and FP.
 */
static bool may_be_undefined(unsigned reg)
{
	return reg == MACHINE_REG_RETURN || reg == MACHINE_REG_FP;
}

int row_set_saved(struct cfi_row *row, struct cfi_slow *slow, unsigned index, const Dwarf_Op *ops, size_t n_ops)
{
	int64_t offset;
	int r;

	if (is_cfa_offset(ops, n_ops, &offset)) {
		row->saved[index] = (int16_t)offset;
		return 0;
	}
	r = expression_copy(ops, n_ops, &slow->saved[index]);
	if (r < 0)
		return r;
	row->saved[index] = SAVED_EXPRESSION;
	return 1;
}

/* Returns 1 if an expression was kept. */
static int compile_register(Dwarf_Frame *frame, unsigned reg, struct cfi_row *row, struct cfi_slow *slow)
{
	unsigned index = (unsigned)row_saved_index(reg);
	Dwarf_Op memory[3], *ops;
	size_t n_ops;

	if (dwarf_frame_register(frame, (int)reg, memory, &ops, &n_ops) != 0)
		return -EBADMSG;
	if (n_ops > 0)
		return row_set_saved(row, slow, index, ops, n_ops);
	row->saved[index] = ops == memory && may_be_undefined(reg) ? SAVED_UNDEFINED : SAVED_SAME;
	return 0;
}

void cfi_slow_done(struct cfi_slow *slow)
{
	free(slow->cfa.ops);
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		free(slow->saved[i].ops);
	memset(slow, 0, sizeof *slow);
}

static bool row_is_plain(const struct cfi_row *row)
{
	int16_t fp = row->saved[row_saved_index(MACHINE_REG_FP)];

	return row->cfa_kind == CFA_REGISTER &&
	       (row->cfa_register == MACHINE_REG_SP || row->cfa_register == MACHINE_REG_FP) &&
	       row->saved[0] >= SAVED_FIRST_OFFSET && (fp >= SAVED_FIRST_OFFSET || fp == SAVED_SAME) && !row->is_signal;
}

void row_classify(struct cfi_row *row)
{
	/*
	 * If calls push the return address, one that was never saved cannot be followed. On other machines it may still
	 * be in a register.
	 */
	row->is_outermost = row->saved[0] == SAVED_UNDEFINED ||
			    (row->saved[0] == SAVED_SAME && MACHINE_REG_RETURN == MACHINE_REG_PC);
	row->is_plain = row_is_plain(row);
}

int row_compile(Dwarf_Frame *frame, struct cfi_row *row, struct cfi_slow *slow)
{
	bool is_signal = false;
	int r, kept;

	memset(row, 0, sizeof *row);
	memset(slow, 0, sizeof *slow);
	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) < 0)
		return -EBADMSG;
	row->is_signal = is_signal;
	kept = compile_cfa(frame, row, slow);
	if (kept < 0)
		return kept;
	r = compile_register(frame, MACHINE_REG_RETURN, row, slow);
	for (unsigned i = 0; r >= 0 && i < machine_n_callee_saved; i++) {
		kept |= r;
		r = compile_register(frame, machine_callee_saved[i], row, slow);
	}
	if (r < 0) {
		cfi_slow_done(slow);
		return r;
	}
	kept |= r;
	row_classify(row);
	return kept;
}
