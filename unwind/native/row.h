/* SPDX-License-Identifier: MIT */
/* row.h - one compiled row of call frame information. Private to this folder.
 *
 * A row describes how to find the caller's registers from the callee's at one PC.
 * The common forms fit into 32 bytes (40 on aarch64), shared by all PCs with equal
 * rules (fewer than 800 distinct ones in a module); rules with a DWARF expression
 * keep its operations separately.
 */
#ifndef PROBING_ROW_H
#define PROBING_ROW_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/machine.h"

enum cfa_kind {
	CFA_NONE,       /* no CFI at this PC */
	CFA_REGISTER,   /* reg + offset */
	CFA_DEREF,      /* *(reg + offset) */
	CFA_EXPRESSION, /* slow->cfa */
};

/* Where a register of the caller is: an offset from the CFA, or one of these. */
enum {
	SAVED_SAME = INT16_MIN, /* not touched: as in the callee */
	SAVED_UNDEFINED,        /* lost */
	SAVED_EXPRESSION,       /* slow->registers */
	SAVED_FIRST_OFFSET,
};

/* The return address and the callee-saved registers, rounded up to even: a row has no padding. */
enum { ROW_N_SAVED = (1 + MACHINE_N_CALLEE_SAVED + 1) & ~1 };

enum { ROW_MAX_OPS = 64 }; /* of an expression; compilers do not generate longer ones */

struct cfi_row {
	uint8_t cfa_kind;
	uint8_t cfa_register;
	bool is_signal;
	bool is_outermost; /* the return address is undefined: nothing called this */
	int32_t cfa_offset;
	int16_t saved[ROW_N_SAVED]; /* [0] the return address, then machine_callee_saved */
	uint32_t slow;              /* index of the expressions; 0: none */
	bool is_guess;              /* found by search, to be checked at each use; see search.c */
	bool is_plain;              /* offsets from SP or FP alone, nothing special: the short way */
	uint8_t unused[2];
};

_Static_assert(sizeof(struct cfi_row) == 16 + 2 * ROW_N_SAVED, "rows are compared byte by byte");

/* A location expression (is_value: the value itself), operations owned. */
struct cfi_expression {
	Dwarf_Op *ops;
	size_t n_ops;
	bool is_value;
};

struct cfi_slow {
	struct cfi_expression cfa;
	struct cfi_expression saved[ROW_N_SAVED];
};

/* Inputs of an expression. */
struct cfi_context {
	int (*get_register)(void *data, unsigned reg, uint64_t *ret);
	int (*load)(void *data, uint64_t address, uint64_t *ret);
	void *data;
	uint64_t cfa; /* for DW_OP_call_frame_cfa */
};

/* Index into saved[] of a DWARF register, -1: not kept. */
int row_saved_index(unsigned reg);

/*
 * row_compile - translate libdw's frame into a row.
 * @slow: filled (owned by the caller, ended with cfi_slow_done) when needed.
 * Returns 1 when slow was filled, 0 when not, -ENOMEM, -EBADMSG.
 */
int row_compile(Dwarf_Frame *frame, struct cfi_row *row, struct cfi_slow *slow);
void cfi_slow_done(struct cfi_slow *slow);

/*
 * row_set_cfa, row_set_saved - set a rule from operations.
 * @index: of saved[]; for a register the operations begin with DW_OP_call_frame_cfa.
 * Return 1 if slow keeps the operations, 0 if the row contains the rule, -ENOMEM, -EBADMSG.
 */
int row_set_cfa(struct cfi_row *row, struct cfi_slow *slow, const Dwarf_Op *ops, size_t n_ops);
int row_set_saved(struct cfi_row *row, struct cfi_slow *slow, unsigned index, const Dwarf_Op *ops, size_t n_ops);

/* Fill is_outermost and is_plain from the rest of a row. */
void row_classify(struct cfi_row *row);

/*
 * expression_decode - operations out of the bytes of a DWARF expression.
 * @ops: room for max. Returns how many; -EBADMSG too many, cut off, or unknown.
 * Source: DWARF 5, 7.7.1 "Operation Expressions".
 */
int expression_decode(const uint8_t *bytes, size_t n_bytes, Dwarf_Op *ops, size_t max);

/* Evaluate; for a location the result is the address. -EBADMSG, -ENODATA, -EFAULT. */
int expression_evaluate(const struct cfi_expression *expression, const struct cfi_context *context, uint64_t *ret);

#endif
