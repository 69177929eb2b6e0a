/* SPDX-License-Identifier: MIT */
/* machine_aarch64.c - registers of AArch64, its calls and its signal frames.
 *
 * perf numbers registers X0..X29 LR SP PC (arch/arm64/include/uapi/asm/perf_regs.h),
 * which is how DWARF numbers them.
 */
#include "base/machine.h"

#include <string.h>

#include "base/util.h"

enum { REG_X19 = 19, REG_X28 = 28 };

const uint64_t machine_perf_regs_mask = (UINT64_C(1) << MACHINE_N_REGS) - 1;

/* x19 .. x29. d8 .. d15 are callee-saved, too, but no address depends on them. */
const unsigned machine_callee_saved[] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 };
const unsigned machine_n_callee_saved = MACHINE_N_CALLEE_SAVED;

_Static_assert(N_ELEMENTS(machine_callee_saved) == MACHINE_N_CALLEE_SAVED, "counted");

void machine_regs_from_perf(const void *dump, struct regs *ret)
{
	memcpy(ret->value, dump, sizeof ret->value);
}

/* X0..X30 SP PC, in DWARF order, and PSTATE. */
void machine_regs_from_status(const uint64_t *status, struct regs *ret)
{
	memcpy(ret->value, status, sizeof ret->value);
}

/*
 * BL imm26; BLR Xn; BLRAA, BLRAB, BLRAAZ, BLRABZ. Instructions are little-endian words, whatever the byte order of
 * data.
 * Source: Arm Architecture Reference Manual, C4.1 "A64 instruction set encoding".
 */
bool machine_is_after_call(const uint8_t *before)
{
	uint32_t code = before[0] | (uint32_t)before[1] << 8 | (uint32_t)before[2] << 16 | (uint32_t)before[3] << 24;

	return (code & 0xfc000000) == 0x94000000 || /* BL */
	       (code & 0xfffffc1f) == 0xd63f0000 || /* BLR */
	       (code & 0xfffff81f) == 0xd63f081f || /* BLRAAZ, BLRABZ */
	       (code & 0xfffff800) == 0xd73f0800;   /* BLRAA, BLRAB */
}

/* RET, RETAA, RETAB, and B out of the function. Source: Arm ARM, C6.2. */
bool machine_is_leaving(const uint8_t *bytes, size_t n_bytes, uint64_t address, uint64_t start, uint64_t end)
{
	uint32_t code;
	uint64_t target;

	if (n_bytes < sizeof code)
		return false;
	memcpy(&code, bytes, sizeof code);
	if ((code & 0xfffffc1f) == 0xd65f0000 || (code & 0xfffffbff) == 0xd65f0bff)
		return true;
	if ((code & 0xfc000000) != 0x14000000)
		return false;
	target = address + (uint64_t)((int64_t)(int32_t)(code << 6) >> 4);
	return target < start || target >= end;
}

/*
 * SVC #0, with the number in X8 and the arguments in X0 to X5. When the call ends, the result replaces X0. Source: Arm
 * Architecture Reference Manual, SVC.
 */
long machine_system_call(const struct regs *regs, const uint8_t *before, uint64_t ret_arguments[6])
{
	static const uint8_t supervisor_call[] = { 0x01, 0x00, 0x00, 0xd4 };

	if (memcmp(before, supervisor_call, sizeof supervisor_call) != 0)
		return -1;
	for (unsigned i = 0; i < 6; i++)
		ret_arguments[i] = regs->value[i];
	return (long)regs->value[8];
}

/*
 * mov x8, #139 (rt_sigreturn); svc #0. Since Linux 5.8 the vdso intentionally has no CFI for it, and unwinders must
 * recognise the instructions.
 * Source: arch/arm64/kernel/vdso/sigreturn.S.
 */
bool machine_is_sigreturn(const uint8_t *code)
{
	static const uint8_t trampoline[MACHINE_SIGRETURN_BYTES] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

	return memcmp(code, trampoline, sizeof trampoline) == 0;
}

/*
 * struct rt_sigframe: siginfo (128 bytes), then ucontext, whose uc_mcontext is at 176: the fault address, then x0 ..
 * x30, sp, pc.
 * Source: arch/arm64/kernel/signal.c, include/uapi/asm/sigcontext.h, Linux 6.12.
 */
int machine_signal_slot(unsigned reg)
{
	return reg < MACHINE_N_REGS ? 128 + 176 + 8 + 8 * (int)reg : -1;
}
