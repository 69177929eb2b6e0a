/* SPDX-License-Identifier: MIT */
/* Test the evaluator of DWARF operations: every operation, its bounds, and refused operations. */
#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "unwind/native/row.h"

enum { MAX_OPS_HERE = 8 };

#define CFA UINT64_C(0x7ffc00001000)
#define MEMORY UINT64_C(0x5000) /* the only word there is, and what it holds */
#define WORD UINT64_C(0x1122334455667788)

static int get_register(void *data, unsigned reg, uint64_t *ret)
{
	(void)data;
	if (reg == 10)
		return -ENODATA; /* one that cannot be recovered */
	*ret = 0x1000 * (uint64_t)reg;
	return 0;
}

static int load(void *data, uint64_t address, uint64_t *ret)
{
	(void)data;
	if (address != MEMORY)
		return -EFAULT;
	*ret = WORD;
	return 0;
}

static int evaluate(const Dwarf_Op *ops, size_t n_ops, uint64_t *ret)
{
	struct cfi_expression expression = { .ops = (Dwarf_Op *)ops, .n_ops = n_ops };
	struct cfi_context context = { .get_register = get_register, .load = load, .cfa = CFA };

	return expression_evaluate(&expression, &context, ret);
}

#define OP(a)                                                                                                          \
	{                                                                                                              \
		.atom = DW_OP_##a                                                                                      \
	}
#define OP1(a, n)                                                                                                      \
	{                                                                                                              \
		.atom = DW_OP_##a, .number = (Dwarf_Word)(n)                                                           \
	}
#define OP2(a, n, m)                                                                                                   \
	{                                                                                                              \
		.atom = DW_OP_##a, .number = (Dwarf_Word)(n), .number2 = (Dwarf_Word)(m)                               \
	}
#define NUMBER(n) OP1(consts, n)

static const struct {
	const char *name;
	Dwarf_Op ops[MAX_OPS_HERE]; /* up to an atom of 0 */
	int error;
	uint64_t value;
} cases[] = {
	/* Constants; libdw has extended the sign already. */
	{ "lit0", { OP(lit0) }, 0, 0 },
	{ "lit31", { OP(lit31) }, 0, 31 },
	{ "const1u", { OP1(const1u, 255) }, 0, 255 },
	{ "const1s", { OP1(const1s, -1) }, 0, UINT64_MAX },
	{ "const2u", { OP1(const2u, 65535) }, 0, 65535 },
	{ "const2s", { OP1(const2s, -2) }, 0, UINT64_MAX - 1 },
	{ "const4u", { OP1(const4u, UINT32_MAX) }, 0, UINT32_MAX },
	{ "const4s", { OP1(const4s, -4) }, 0, UINT64_MAX - 3 },
	{ "const8u", { OP1(const8u, UINT64_MAX) }, 0, UINT64_MAX },
	{ "const8s", { OP1(const8s, INT64_MIN) }, 0, UINT64_C(1) << 63 },
	{ "constu", { OP1(constu, 1000000) }, 0, 1000000 },
	{ "consts", { OP1(consts, -1000000) }, 0, (uint64_t)-1000000 },

	/* Registers and memory. */
	{ "breg0", { OP1(breg0, 5) }, 0, 5 },
	{ "breg7, negative offset", { OP1(breg7, -8) }, 0, 0x7000 - 8 },
	{ "breg16, the PC", { OP1(breg16, 1) }, 0, 0x10001 },
	{ "breg17 is none of ours", { OP1(breg17, 0) }, -EBADMSG, 0 },
	{ "breg31 is none of ours", { OP1(breg31, 0) }, -EBADMSG, 0 },
	{ "bregx", { OP2(bregx, 3, 16) }, 0, 0x3010 },
	{ "bregx of a vector register", { OP2(bregx, 17, 0) }, -EBADMSG, 0 },
	{ "bregx, absurd", { OP2(bregx, UINT64_MAX, 0) }, -EBADMSG, 0 },
	{ "regx", { OP1(regx, 12) }, 0, 0xc000 },
	{ "a register that is lost", { OP1(breg10, 0) }, -ENODATA, 0 },
	{ "deref", { NUMBER(MEMORY), OP(deref) }, 0, WORD },
	{ "deref of nothing mapped", { NUMBER(MEMORY + 8), OP(deref) }, -EFAULT, 0 },
	{ "call_frame_cfa", { OP(call_frame_cfa) }, 0, CFA },

	/* The stack of values. */
	{ "dup", { NUMBER(7), OP(dup), OP(plus) }, 0, 14 },
	{ "drop", { NUMBER(7), NUMBER(8), OP(drop) }, 0, 7 },
	{ "over", { NUMBER(7), NUMBER(8), OP(over), OP(minus) }, 0, 1 },
	{ "swap", { NUMBER(7), NUMBER(9), OP(swap), OP(minus) }, 0, 2 },
	{ "nop", { NUMBER(7), OP(nop) }, 0, 7 },
	{ "stack_value", { NUMBER(7), OP(stack_value) }, 0, 7 },

	/* Arithmetic. */
	{ "plus_uconst", { NUMBER(7), OP1(plus_uconst, 100) }, 0, 107 },
	{ "neg", { NUMBER(7), OP(neg) }, 0, (uint64_t)-7 },
	{ "not", { NUMBER(0), OP(not ) }, 0, UINT64_MAX },
	{ "plus", { NUMBER(-1), NUMBER(3), OP(plus) }, 0, 2 },
	{ "minus", { NUMBER(3), NUMBER(5), OP(minus) }, 0, (uint64_t)-2 },
	{ "mul", { NUMBER(-3), NUMBER(5), OP(mul) }, 0, (uint64_t)-15 },
	{ "and", { NUMBER(12), NUMBER(10), OP(and) }, 0, 8 },
	{ "or", { NUMBER(12), NUMBER(10), OP(or) }, 0, 14 },
	{ "xor", { NUMBER(12), NUMBER(10), OP(xor) }, 0, 6 },
	{ "shl", { NUMBER(3), NUMBER(4), OP(shl) }, 0, 48 },
	{ "shl by 64", { NUMBER(3), NUMBER(64), OP(shl) }, 0, 0 },
	{ "shr", { NUMBER(-1), NUMBER(60), OP(shr) }, 0, 15 },
	{ "shr by 64", { NUMBER(-1), NUMBER(64), OP(shr) }, 0, 0 },
	{ "shra", { NUMBER(-16), NUMBER(2), OP(shra) }, 0, (uint64_t)-4 },
	{ "shra by 64 and more", { NUMBER(-16), NUMBER(200), OP(shra) }, 0, UINT64_MAX },
	{ "eq", { NUMBER(4), NUMBER(4), OP(eq) }, 0, 1 },
	{ "ne", { NUMBER(4), NUMBER(4), OP(ne) }, 0, 0 },
	{ "lt is signed", { NUMBER(-1), NUMBER(1), OP(lt) }, 0, 1 },
	{ "le", { NUMBER(1), NUMBER(1), OP(le) }, 0, 1 },
	{ "gt is signed", { NUMBER(-1), NUMBER(1), OP(gt) }, 0, 0 },
	{ "ge", { NUMBER(1), NUMBER(1), OP(ge) }, 0, 1 },

	/* As compilers write them. */
	{ "a frame whose CFA lies in memory", { OP1(breg6, -0x1000), OP(deref), OP1(plus_uconst, 8) }, 0, WORD + 8 },

	/* Refused. */
	{ "deref on an empty stack", { OP(deref) }, -EBADMSG, 0 },
	{ "plus with one value", { NUMBER(1), OP(plus) }, -EBADMSG, 0 },
	{ "swap with one value", { NUMBER(1), OP(swap) }, -EBADMSG, 0 },
	{ "over with one value", { NUMBER(1), OP(over) }, -EBADMSG, 0 },
	{ "drop on an empty stack", { OP(drop) }, -EBADMSG, 0 },
	{ "nothing left", { NUMBER(1), OP(drop) }, -EBADMSG, 0 },
	{ "an address", { NUMBER(1), OP1(addr, 0x400000) }, -EBADMSG, 0 },
	{ "a branch", { NUMBER(1), NUMBER(1), OP1(bra, 0) }, -EBADMSG, 0 },
	{ "a jump back", { NUMBER(1), NUMBER(1), OP1(skip, -1) }, -EBADMSG, 0 },
	{ "a call", { NUMBER(1), NUMBER(1), OP1(call4, 0) }, -EBADMSG, 0 },
	{ "division", { NUMBER(1), NUMBER(0), OP(div) }, -EBADMSG, 0 },
	{ "a vendor's", { NUMBER(1), NUMBER(1), OP(GNU_entry_value) }, -EBADMSG, 0 },
};

static void each_operation(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint64_t value = 0xdead;
		size_t n = 0;
		int r;

		while (n < MAX_OPS_HERE && cases[i].ops[n].atom != 0)
			n++;
		r = evaluate(cases[i].ops, n, &value);
		if (r != cases[i].error)
			fail_msg("%s: returned %d, not %d", cases[i].name, r, cases[i].error);
		if (value != (r == 0 ? cases[i].value : 0xdead))
			fail_msg("%s: gave %#" PRIx64, cases[i].name, value);
	}
}

/* What linkers write for .plt: rsp + 8 + (((rip & 15) >= 11) << 3). */
static void procedure_linkage(void **state)
{
	const Dwarf_Op ops[] = { OP1(breg7, 8), OP1(breg16, 0), OP(lit15), OP(and), OP(lit11),
				 OP(ge),        OP(lit3),       OP(shl),   OP(plus) };
	uint64_t value;

	(void)state;
	assert_int_equal(evaluate(ops, N_ELEMENTS(ops), &value), 0);
	assert_int_equal(value, 0x7008); /* the PC ends in 0: not behind the push */
}

static void empty(void **state)
{
	uint64_t value = 1;

	(void)state;
	assert_int_equal(evaluate(NULL, 0, &value), -EBADMSG);
	assert_int_equal(value, 1);
}

/* As many values as fit, and one more. */
static void depth(void **state)
{
	Dwarf_Op ops[33];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(ops); i++)
		ops[i] = (Dwarf_Op)OP1(constu, i);
	assert_int_equal(evaluate(ops, 32, &value), 0);
	assert_int_equal(value, 31);
	assert_int_equal(evaluate(ops, 33, &value), -EBADMSG);
	ops[32] = (Dwarf_Op)OP(dup);
	assert_int_equal(evaluate(ops, 33, &value), -EBADMSG);
	ops[32] = (Dwarf_Op)OP(over);
	assert_int_equal(evaluate(ops, 33, &value), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation),
		cmocka_unit_test(procedure_linkage),
		cmocka_unit_test(empty),
		cmocka_unit_test(depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
