/* SPDX-License-Identifier: MIT */
/* machine_x86_64.h - constants of AMD64; included by machine.h only.
 *
 * Source: System V ABI, AMD64 supplement, figure 3.36.
 */
#ifndef PROBING_BASE_MACHINE_X86_64_H
#define PROBING_BASE_MACHINE_X86_64_H

#include <stdint.h>

enum {
	MACHINE_ELF = EM_X86_64,
	MACHINE_N_REGS = 17,
	MACHINE_REG_FP = 6,  /* rbp */
	MACHINE_REG_SP = 7,  /* rsp */
	MACHINE_REG_PC = 16, /* rip */
	MACHINE_REG_RETURN = MACHINE_REG_PC,
	MACHINE_SIGNS_RETURN_ADDRESSES = 0,
	MACHINE_N_CALLEE_SAVED = 6,
	MACHINE_CODE_ALIGNMENT = 1,
	MACHINE_CALL_BYTES = 7,
	MACHINE_CALL_NUMBER_BYTES = 7,
	MACHINE_SIGRETURN_BYTES = 9,
	MACHINE_SIGRETURN_CALL_AT = 7,
	MACHINE_RECORD_ENDS_AT_CFA = 1,
	MACHINE_STATUS_WORDS = 27,
};

static inline uint64_t machine_return_address(uint64_t stored)
{
	return stored;
}

#endif
