/* SPDX-License-Identifier: MIT */
/* machine.h - everything that depends on the processor.
 *
 * Registers have the machine's DWARF numbers. Each machine is one pair of
 * files, machine_<name>.h with constants and inline functions, and
 * machine_<name>.c with tables. Other code depends on the processor only if
 * its header says so. The default is the machine that the compiler targets;
 * -DPROBING_MACHINE_X86_64 or -DPROBING_MACHINE_AARCH64 selects another, so
 * that tests can unwind its stacks anywhere. See docs/extending.md.
 *
 * A machine_<name>.h defines:
 *   MACHINE_ELF              e_machine of its ELF files
 *   MACHINE_N_REGS           registers in struct regs
 *   MACHINE_REG_FP, _SP, _PC DWARF numbers of the frame pointer, stack pointer
 *                            and program counter
 *   MACHINE_REG_RETURN       the return-address column of its CFI: the PC itself
 *                            if a call pushes the return address; another register
 *                            if a call leaves it there
 *   MACHINE_N_CALLEE_SAVED   length of machine_callee_saved[]
 *   MACHINE_CODE_ALIGNMENT   every instruction's address is a multiple of it
 *   MACHINE_CALL_BYTES       bytes before a PC that machine_is_after_call() reads
 *   MACHINE_CALL_NUMBER_BYTES  bytes before a PC that machine_system_call() reads
 *   MACHINE_SIGRETURN_BYTES  length of the code that machine_is_sigreturn() recognises
 *   MACHINE_SIGRETURN_CALL_AT  offset of its system call instruction
 *   MACHINE_RECORD_ENDS_AT_CFA  1: the pair at the frame pointer (caller's frame
 *                            pointer, return address) is the last one below the
 *                            CFA; 0: it may be anywhere in the frame
 *   MACHINE_STATUS_WORDS     registers in NT_PRSTATUS, a word each
 *   machine_return_address() see below
 */
#ifndef PROBING_BASE_MACHINE_H
#define PROBING_BASE_MACHINE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(PROBING_MACHINE_X86_64) && !defined(PROBING_MACHINE_AARCH64)
#if defined(__x86_64__)
#define PROBING_MACHINE_X86_64
#elif defined(__aarch64__)
#define PROBING_MACHINE_AARCH64
#endif
#endif

#if defined(PROBING_MACHINE_X86_64)
#include "base/machine_x86_64.h"
#elif defined(PROBING_MACHINE_AARCH64)
#include "base/machine_aarch64.h"
#else
#error "this processor has no machine_<name>.h; see docs/extending.md"
#endif

/* Every address of a program is below it. */
#define MACHINE_USER_END (UINT64_C(1) << 56)

struct regs {
	uint64_t value[MACHINE_N_REGS];
};

/* Mask for perf_event_attr.sample_regs_user: all registers of struct regs. */
extern const uint64_t machine_perf_regs_mask;

/* Registers that a called function must keep (without SP), as DWARF numbers. */
extern const unsigned machine_callee_saved[];
extern const unsigned machine_n_callee_saved; /* MACHINE_N_CALLEE_SAVED */

/*
 * machine_regs_from_perf - put perf's register dump into DWARF order.
 * @dump: one word per bit of machine_perf_regs_mask, lowest bit first; at any address.
 * Source: arch/.../include/uapi/asm/perf_regs.h, Linux 6.12.
 */
void machine_regs_from_perf(const void *dump, struct regs *ret);

/*
 * machine_regs_from_status - put the registers of NT_PRSTATUS into DWARF order.
 * @status: in the order of PTRACE_GETREGSET and of core files;
 *          MACHINE_STATUS_WORDS words.
 * Source: arch/x86/include/uapi/asm/ptrace.h (struct user_regs_struct) and
 * arch/arm64/include/uapi/asm/ptrace.h (struct user_pt_regs), Linux 6.12.
 */
void machine_regs_from_status(const uint64_t *status, struct regs *ret);

/*
 * machine_return_address - the address behind a stored return address.
 * Removes a signature from its unused bits; the identity on machines that do not
 * sign addresses. Defined inline in machine_<name>.h:
 *	static inline uint64_t machine_return_address(uint64_t stored);
 */

/*
 * machine_is_leaving - does the instruction at an address end its function's call?
 * A return, or a jump out of the function: all saved registers are restored by then.
 * @code: n_bytes at @address, of a function at [start, end).
 */
bool machine_is_leaving(const uint8_t *code, size_t n_bytes, uint64_t address, uint64_t start, uint64_t end);

/*
 * machine_is_after_call - can code that follows these bytes be returned to?
 * @before: the MACHINE_CALL_BYTES bytes before a supposed return address.
 */
bool machine_is_after_call(const uint8_t *before);

/*
 * machine_system_call - the system call that a thread is in, by its registers in the kernel.
 * @before: the MACHINE_CALL_NUMBER_BYTES bytes before its PC.
 * @ret_arguments: its arguments, as they were passed.
 * Returns its number; -1: in none, or unknown.
 * Source: syscall(2), "Architecture calling conventions".
 */
long machine_system_call(const struct regs *regs, const uint8_t *before, uint64_t ret_arguments[6]);

/*
 * machine_is_sigreturn - is this the code that a signal handler returns to?
 * @code: MACHINE_SIGRETURN_BYTES bytes. Not needed if libc or the kernel describes
 * that code by CFI.
 */
bool machine_is_sigreturn(const uint8_t *code);

/*
 * machine_signal_slot - the place at which the kernel saves an interrupted register.
 * Returns its distance in bytes from the stack pointer in the code that
 * machine_is_sigreturn() recognises; -1: the kernel does not save it.
 * @reg: DWARF number; the kernel saves all of struct regs.
 */
int machine_signal_slot(unsigned reg);

#endif
