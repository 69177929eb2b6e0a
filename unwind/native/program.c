/* SPDX-License-Identifier: MIT */
/* program.c - call frame instructions, executed up to one address.
 *
 * A program is a list of instructions that change rules (where the CFA is,
 * where each register was saved) and advance through the code. The row at an
 * address is the rules at the point where the program would advance beyond it.
 *
 * All but one in a thousand functions need only offsets from a register and
 * from the CFA, which a row contains; running such a program takes a
 * fraction of a microsecond and allocates nothing. PLT stubs, signal trampolines
 * and realigned stacks have expressions, which are decoded and kept separately.
 * Forms that no known compiler writes are left to libdw, the oracle in tests.
 *
 * Invariants: a program whose bytes end too early has failed. Rules of registers
 * that a row does not contain are parsed and dropped.
 */
#include "unwind/native/program.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/util.h"

/* Missing from libdw.h of elfutils 0.188. */
enum {
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_PRIMARY = 0xc0, /* instructions with an operand in their low six bits */
	CFA_OPERAND = 0x3f,
};

enum { MAX_REMEMBERED = 8 };

struct block { /* expression; n_bytes 0: none */
	const uint8_t *bytes;
	uint64_t n_bytes;
	bool is_value;
};

struct rules {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool has_cfa;
	int16_t saved[ROW_N_SAVED]; /* SAVED_EXPRESSION: see expression[] */
	struct block cfa, expression[ROW_N_SAVED];
};

struct execution {
	struct cursor bytes; /* program bytes */
	const struct elf_cfi *cfi;
	uint64_t address;                  /* requested address */
	uint64_t location;                 /* address up to which the rules apply */
	const struct program_taker *taker; /* NULL: compute only the row at the address */
	struct rules rules, initial, remembered[MAX_REMEMBERED];
	unsigned n_remembered;
};

/* Multiply numbers from a file; an overflow makes the program invalid. */
static int64_t scaled(struct execution *run, int64_t number, int64_t factor)
{
	int64_t product;

	if (__builtin_mul_overflow(number, factor, &product))
		run->bytes.failed = true;
	return run->bytes.failed ? 0 : product;
}

static int saved_index(const struct execution *run, uint64_t reg)
{
	if (reg == run->cfi->return_register)
		return 0;
	return reg < MACHINE_N_REGS ? row_saved_index((unsigned)reg) : -1;
}

static int set_saved(struct execution *run, uint64_t reg, int16_t rule)
{
	int index = saved_index(run, reg);

	if (index >= 0)
		run->rules.saved[index] = rule;
	return 0;
}

static int set_offset(struct execution *run, uint64_t reg, int64_t factored)
{
	int64_t offset = scaled(run, factored, run->cfi->data_factor);

	if (saved_index(run, reg) < 0)
		return 0;
	if (offset < SAVED_FIRST_OFFSET || offset > INT16_MAX)
		return -EOPNOTSUPP;
	return set_saved(run, reg, (int16_t)offset);
}

static int restore(struct execution *run, uint64_t reg)
{
	int index = saved_index(run, reg);

	if (index >= 0) {
		run->rules.saved[index] = run->initial.saved[index];
		run->rules.expression[index] = run->initial.expression[index];
	}
	return 0;
}

static int set_cfa(struct execution *run, uint64_t reg, int64_t offset)
{
	run->rules.cfa_register = reg;
	run->rules.cfa_offset = offset;
	run->rules.has_cfa = true;
	run->rules.cfa.n_bytes = 0;
	return 0;
}

static struct block take_block(struct execution *run, bool is_value)
{
	struct block block = { .n_bytes = cursor_leb128(&run->bytes), .bytes = run->bytes.at, .is_value = is_value };

	if (block.n_bytes > cursor_left(&run->bytes)) {
		run->bytes.failed = true;
		return (struct block){ 0 };
	}
	block.bytes = run->bytes.at;
	run->bytes.at += block.n_bytes;
	return block;
}

static int set_cfa_expression(struct execution *run)
{
	run->rules.cfa = take_block(run, false);
	run->rules.has_cfa = true;
	return 0;
}

static int set_expression(struct execution *run, bool is_value)
{
	uint64_t reg = cursor_leb128(&run->bytes);
	struct block block = take_block(run, is_value);
	int index = saved_index(run, reg);

	if (index < 0)
		return 0;
	run->rules.saved[index] = SAVED_EXPRESSION;
	run->rules.expression[index] = block;
	return 0;
}

/* Compilers use "undefined" for the outermost frame and for FP only; see row.c. */
static int set_undefined(struct execution *run, uint64_t reg)
{
	if (reg == run->cfi->return_register || reg == MACHINE_REG_FP)
		return set_saved(run, reg, SAVED_UNDEFINED);
	return set_saved(run, reg, SAVED_SAME);
}

static int remember(struct execution *run)
{
	if (run->n_remembered == MAX_REMEMBERED)
		return -EOPNOTSUPP;
	run->remembered[run->n_remembered++] = run->rules;
	return 0;
}

static int recall(struct execution *run)
{
	if (run->n_remembered == 0)
		return -EBADMSG;
	run->rules = run->remembered[--run->n_remembered];
	return 0;
}

static int to_row(const struct execution *run, struct cfi_row *row, struct cfi_slow *slow);

/* Report the current rules up to `end`. */
static int hand_out(const struct execution *run, uint64_t end)
{
	struct cfi_slow slow;
	struct cfi_row row;
	int kept;

	end = MIN(end, run->cfi->end);
	if (run->location >= end)
		return 0;
	kept = to_row(run, &row, &slow);
	if (kept < 0)
		return kept == -ENOMEM ? kept : 0;
	return run->taker->take(run->taker->data, run->location, end, &row, &slow, kept > 0);
}

/* Not 0: the address is reached and the rules are its row, or the taker stopped. */
static int advance(struct execution *run, uint64_t delta)
{
	uint64_t next;
	int r = 0;

	if (__builtin_mul_overflow(delta, run->cfi->code_factor, &delta) ||
	    __builtin_add_overflow(run->location, delta, &next))
		return -EBADMSG;
	if (run->taker)
		r = hand_out(run, next);
	run->location = next;
	return r != 0 ? r : next > run->address;
}

static int execute_extended(struct execution *run, uint8_t opcode)
{
	uint64_t reg;

	switch (opcode) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_advance_loc1:
		return advance(run, cursor_fixed(&run->bytes, 1));
	case DW_CFA_advance_loc2:
		return advance(run, cursor_fixed(&run->bytes, 2));
	case DW_CFA_advance_loc4:
		return advance(run, cursor_fixed(&run->bytes, 4));
	case DW_CFA_offset_extended:
		reg = cursor_leb128(&run->bytes);
		return set_offset(run, reg, (int64_t)cursor_leb128(&run->bytes));
	case DW_CFA_offset_extended_sf:
		reg = cursor_leb128(&run->bytes);
		return set_offset(run, reg, cursor_signed_leb128(&run->bytes));
	case DW_CFA_restore_extended:
		return restore(run, cursor_leb128(&run->bytes));
	case DW_CFA_undefined:
		return set_undefined(run, cursor_leb128(&run->bytes));
	case DW_CFA_same_value:
		return set_saved(run, cursor_leb128(&run->bytes), SAVED_SAME);
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_def_cfa:
		reg = cursor_leb128(&run->bytes);
		return set_cfa(run, reg, (int64_t)cursor_leb128(&run->bytes));
	case DW_CFA_def_cfa_sf:
		reg = cursor_leb128(&run->bytes);
		return set_cfa(run, reg, scaled(run, cursor_signed_leb128(&run->bytes), run->cfi->data_factor));
	case DW_CFA_def_cfa_register:
		return set_cfa(run, cursor_leb128(&run->bytes), run->rules.cfa_offset);
	case DW_CFA_def_cfa_offset:
		return set_cfa(run, run->rules.cfa_register, (int64_t)cursor_leb128(&run->bytes));
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa(run, run->rules.cfa_register,
			       scaled(run, cursor_signed_leb128(&run->bytes), run->cfi->data_factor));
	case DW_CFA_def_cfa_expression:
		return set_cfa_expression(run);
	case DW_CFA_expression:
		return set_expression(run, false);
	case DW_CFA_val_expression:
		return set_expression(run, true);
	case DW_CFA_GNU_args_size:
		cursor_leb128(&run->bytes);
		return 0;
	case CFA_AARCH64_NEGATE_RA_STATE:
		/* Ignore signatures: they are stripped from return addresses. */
		return MACHINE_SIGNS_RETURN_ADDRESSES ? 0 : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

static int execute_one(struct execution *run)
{
	uint8_t opcode = (uint8_t)cursor_fixed(&run->bytes, 1);
	uint8_t operand = opcode & CFA_OPERAND;

	switch (opcode & CFA_PRIMARY) {
	case DW_CFA_advance_loc:
		return advance(run, operand);
	case DW_CFA_offset:
		return set_offset(run, operand, (int64_t)cursor_leb128(&run->bytes));
	case DW_CFA_restore:
		return restore(run, operand);
	default:
		return execute_extended(run, opcode);
	}
}

/* Returns 0 at the end of the program, or the result that ended it; 1: see advance(). */
static int execute(struct execution *run, const uint8_t *program, size_t n_bytes)
{
	int r = 0;

	run->bytes = (struct cursor){ .at = program, .end = program + n_bytes };
	while (r == 0 && run->bytes.at < run->bytes.end) {
		r = execute_one(run);
		if (run->bytes.failed)
			return -EBADMSG;
	}
	return r;
}

/* Convert a block to operations; a register's block starts with the CFA on the value stack. */
static int decode(const struct block *block, bool push_cfa, Dwarf_Op *ops, size_t *ret)
{
	size_t n = 0;
	int r;

	if (push_cfa)
		ops[n++] = (Dwarf_Op){ .atom = DW_OP_call_frame_cfa };
	r = expression_decode(block->bytes, block->n_bytes, ops + n, ROW_MAX_OPS - 2);
	if (r <= 0)
		return -EOPNOTSUPP;
	n += (size_t)r;
	if (block->is_value)
		ops[n++] = (Dwarf_Op){ .atom = DW_OP_stack_value };
	*ret = n;
	return 0;
}

static int cfa_to_row(const struct rules *rules, struct cfi_row *row, struct cfi_slow *slow)
{
	Dwarf_Op ops[ROW_MAX_OPS];
	size_t n_ops;
	int r;

	if (!rules->has_cfa)
		return -EOPNOTSUPP;
	if (rules->cfa.n_bytes > 0) {
		r = decode(&rules->cfa, false, ops, &n_ops);
		return r < 0 ? r : row_set_cfa(row, slow, ops, n_ops);
	}
	if (rules->cfa_register >= MACHINE_N_REGS || rules->cfa_offset < INT32_MIN || rules->cfa_offset > INT32_MAX)
		return -EOPNOTSUPP;
	row->cfa_kind = CFA_REGISTER;
	row->cfa_register = (uint8_t)rules->cfa_register;
	row->cfa_offset = (int32_t)rules->cfa_offset;
	return 0;
}

static int saved_to_row(const struct rules *rules, unsigned index, struct cfi_row *row, struct cfi_slow *slow)
{
	Dwarf_Op ops[ROW_MAX_OPS];
	size_t n_ops;
	int r;

	if (rules->saved[index] != SAVED_EXPRESSION) {
		row->saved[index] = rules->saved[index];
		return 0;
	}
	r = decode(&rules->expression[index], true, ops, &n_ops);
	return r < 0 ? r : row_set_saved(row, slow, index, ops, n_ops);
}

static int to_row(const struct execution *run, struct cfi_row *row, struct cfi_slow *slow)
{
	int r, kept;

	memset(row, 0, sizeof *row);
	memset(slow, 0, sizeof *slow);
	row->is_signal = run->cfi->is_signal;
	r = kept = cfa_to_row(&run->rules, row, slow);
	for (unsigned i = 0; i <= machine_n_callee_saved && r >= 0; i++) {
		r = saved_to_row(&run->rules, i, row, slow);
		kept |= r;
	}
	if (r < 0) {
		cfi_slow_done(slow);
		return r;
	}
	row_classify(row);
	return kept;
}

/* Execute the initial instructions of the CIE. */
static int begin(struct execution *run)
{
	const struct elf_cfi *cfi = run->cfi;
	int r;

	if (cfi->return_register != MACHINE_REG_RETURN)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		run->rules.saved[i] = SAVED_SAME;
	r = execute(run, cfi->initial, cfi->n_initial);
	if (r < 0)
		return r;
	if (run->location != cfi->start)
		return -EBADMSG; /* shared initial instructions cannot advance the location */
	run->initial = run->rules;
	return 0;
}

int program_row(const struct elf_cfi *cfi, uint64_t address, struct cfi_row *ret, struct cfi_slow *slow)
{
	struct execution run = { .cfi = cfi, .address = address, .location = cfi->start };
	int r;

	r = begin(&run);
	if (r >= 0)
		r = execute(&run, cfi->program, cfi->n_program);
	return r < 0 ? r : to_row(&run, ret, slow);
}

int program_rows(const struct elf_cfi *cfi, const struct program_taker *taker)
{
	struct execution run = { .cfi = cfi, .address = UINT64_MAX, .location = cfi->start };
	int r;

	r = begin(&run);
	if (r < 0)
		return r;
	run.taker = taker;
	r = execute(&run, cfi->program, cfi->n_program);
	return r == 0 ? hand_out(&run, cfi->end) : r;
}
