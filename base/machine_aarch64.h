/* SPDX-License-Identifier: MIT */
/* machine_aarch64.h - constants of AArch64; included by machine.h only.
 *
 * Source: "DWARF for the Arm 64-bit Architecture", table "DWARF register names"
 * (x0..x30, SP 31, PC 32); "Procedure Call Standard for the Arm 64-bit
 * Architecture" (AAPCS64), 6.1.1 and 6.4.6.
 */
#ifndef PROBING_BASE_MACHINE_AARCH64_H
#define PROBING_BASE_MACHINE_AARCH64_H

#include <stdint.h>

enum {
	MACHINE_ELF = EM_AARCH64,
	MACHINE_N_REGS = 33,
	MACHINE_REG_FP = 29,
	MACHINE_REG_SP = 31,
	MACHINE_REG_PC = 32,
	MACHINE_REG_RETURN = 30, /* LR; the PC has no column of its own */
	MACHINE_SIGNS_RETURN_ADDRESSES = 1,
	MACHINE_N_CALLEE_SAVED = 11,
	MACHINE_CODE_ALIGNMENT = 4,
	MACHINE_CALL_BYTES = 4,
	MACHINE_CALL_NUMBER_BYTES = 4,
	MACHINE_SIGRETURN_BYTES = 8,
	MACHINE_SIGRETURN_CALL_AT = 4,
	MACHINE_RECORD_ENDS_AT_CFA = 0,
	MACHINE_STATUS_WORDS = 34,
};

/*
 * machine_strip_signature - an address without its pointer authentication code.
 * Bit 55 selects the half of the address space; the code occupies
 * all other bits above the size of a virtual address.
 * @n_bits: 48, or 52 with FEAT_LVA.
 * Source: Arm Architecture Reference Manual, pseudocode of Strip().
 */
static inline uint64_t machine_strip_signature(uint64_t address, unsigned n_bits)
{
	uint64_t above = ~UINT64_C(0) << n_bits;

	return address & UINT64_C(1) << 55 ? address | above : address & ~above;
}

/*
 * The processor knows the size of its virtual addresses: XPACLRI works on x30, and
 * is a no-op if addresses are not signed. On other machines the stack comes from a
 * file or a test, and Linux gives addresses beyond 48 bits only to programs that
 * request them.
 */
static inline uint64_t machine_return_address(uint64_t stored)
{
#if defined(__aarch64__)
	register uint64_t x30 __asm__("x30") = stored;

	__asm__("hint #7" : "+r"(x30));
	return x30;
#else
	return machine_strip_signature(stored, 48);
#endif
}

#endif
