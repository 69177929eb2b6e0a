/* SPDX-License-Identifier: MIT */
/* machine_x86_64.c - registers of AMD64, its calls and its signal frames.
 *
 * perf numbers registers AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS
 * R8..R15 (arch/x86/include/uapi/asm/perf_regs.h); DWARF numbers them RAX RDX
 * RCX RBX RSI RDI RBP RSP R8..R15 RA (System V ABI, figure 3.36).
 */
#include "base/machine.h"

#include <string.h>

#include "base/util.h"

/* AX..IP and R8..R15. */
const uint64_t machine_perf_regs_mask = 0x1ff | 0xff0000;

/* rbx, rbp, r12 .. r15 */
const unsigned machine_callee_saved[] = { 3, 6, 12, 13, 14, 15 };
const unsigned machine_n_callee_saved = MACHINE_N_CALLEE_SAVED;

_Static_assert(N_ELEMENTS(machine_callee_saved) == MACHINE_N_CALLEE_SAVED, "counted");

void machine_regs_from_perf(const void *dump, struct regs *ret)
{
	/* DWARF number of each word. */
	static const uint8_t order[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (unsigned i = 0; i < N_ELEMENTS(order); i++)
		memcpy(&ret->value[order[i]], (const uint8_t *)dump + i * sizeof *ret->value, sizeof *ret->value);
}

void machine_regs_from_status(const uint64_t *status, struct regs *ret)
{
	/*
	 * Position of each DWARF register: R15..R12 RBP RBX R11..R8 RAX RCX RDX RSI RDI, the system call's number, RIP,
	 * CS, EFLAGS, RSP.
	 */
	static const uint8_t places[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };

	_Static_assert(N_ELEMENTS(places) == MACHINE_N_REGS, "each register has its place");
	for (unsigned i = 0; i < N_ELEMENTS(places); i++)
		ret->value[i] = status[places[i]];
}

/*
 * CALL is E8 rel32, or FF /2 with ModRM byte, SIB and displacement; a REX prefix before it does not matter. Source:
 * Intel SDM, volume 2, CALL.
 */
bool machine_is_after_call(const uint8_t *before)
{
	const uint8_t *end = before + MACHINE_CALL_BYTES;

	if (end[-5] == 0xe8)
		return true;
	for (int length = 2; length <= MACHINE_CALL_BYTES; length++) {
		uint8_t modrm = end[-length + 1];
		unsigned mode = modrm >> 6, base = modrm & 7;
		int expected = 2 + (base == 4 && mode != 3);

		if (end[-length] != 0xff || (modrm >> 3 & 7) != 2)
			continue;
		if (mode == 1)
			expected += 1;
		else if (mode == 2 || (mode == 0 && base == 5))
			expected += 4;
		if (expected == length)
			return true;
	}
	return false;
}

/* RET is C3, or C2 imm16, optionally after F2 or F3; JMP is E9 rel32, EB rel8. Source: Intel SDM, volume 2. */
bool machine_is_leaving(const uint8_t *code, size_t n_bytes, uint64_t address, uint64_t start, uint64_t end)
{
	size_t prefix = n_bytes > 1 && (code[0] == 0xf2 || code[0] == 0xf3);
	uint64_t target;
	int32_t far;

	if (n_bytes == 0)
		return false;
	if (code[prefix] == 0xc3 || code[prefix] == 0xc2)
		return true;
	if (code[prefix] == 0xe9 && n_bytes >= prefix + 5) {
		memcpy(&far, code + prefix + 1, sizeof far);
		target = address + prefix + 5 + (uint64_t)(int64_t)far;
	} else if (code[prefix] == 0xeb && n_bytes >= prefix + 2) {
		target = address + prefix + 2 + (uint64_t)(int64_t)(int8_t)code[prefix + 1];
	} else {
		return false;
	}
	return target < start || target >= end;
}

/*
 * perf's registers lack the call's number, because RAX already has the pending result. But libc's wrappers load it
 * right before SYSCALL: MOV imm32 to EAX, or XOR EAX, EAX for read(2). Arguments: RDI RSI RDX R10 R8 R9. Source: Intel
 * SDM, volume 2, MOV, XOR, SYSCALL.
 */
long machine_system_call(const struct regs *regs, const uint8_t *before, uint64_t ret_arguments[6])
{
	static const uint8_t order[] = { 5, 4, 1, 10, 8, 9 };
	uint32_t number = 0;

	if (before[5] != 0x0f || before[6] != 0x05)
		return -1;
	if (before[0] == 0xb8)
		memcpy(&number, before + 1, sizeof number);
	else if (before[3] != 0x31 || before[4] != 0xc0)
		return -1;
	for (unsigned i = 0; i < N_ELEMENTS(order); i++)
		ret_arguments[i] = regs->value[order[i]];
	return (long)number;
}

/* mov $15, %rax (rt_sigreturn); syscall. glibc has CFI for its own, musl does not. */
bool machine_is_sigreturn(const uint8_t *code)
{
	static const uint8_t trampoline[MACHINE_SIGRETURN_BYTES] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return memcmp(code, trampoline, sizeof trampoline) == 0;
}

/*
 * The handler's RET has popped the first word of struct rt_sigframe. SP points to its ucontext, whose uc_mcontext is at
 * 40: R8..R15 RDI RSI RBP RBX RDX RAX RCX RSP RIP.
 * Source: arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h, Linux 6.12.
 */
int machine_signal_slot(unsigned reg)
{
	/* Position of each DWARF register in uc_mcontext. */
	static const uint8_t places[] = { 13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16 };

	return reg < N_ELEMENTS(places) ? 40 + 8 * places[reg] : -1;
}
