/* SPDX-License-Identifier: MIT */
/* trampoline.c - out of a signal handler without CFI.
 *
 * A handler returns to a few instructions that make the system call
 * rt_sigreturn. glibc describes its own for AMD64 by CFI; musl does not, and the
 * vdso of AArch64 must not, since CFI has one column for the return address and
 * there both the interrupted PC and the interrupted LR matter. So that code is
 * recognised by its instructions (machine.h), and the registers are where the kernel
 * has put them.
 */
#include <string.h>

#include "base/util.h"
#include "unwind/native/memory.h"
#include "unwind/native/walk.h"

/* Read code from the file; read anonymous memory from the process. */
static bool read_code(struct walk *walk, uint64_t address, uint8_t *code, size_t n_bytes)
{
	struct address_space *space = walk->process->space;
	const struct mapping *mapping = address_space_find(space, address);
	struct remote *remote = walk->stack->remote;
	struct module *module;
	struct elf_file *elf;
	const void *bytes;
	uint64_t own;

	if (!mapping || !mapping->executable)
		return false;
	if (!mapping->module)
		return remote && remote_read(remote, RADDR(address), code, n_bytes) == 0;
	if (address_space_resolve(space, address, &module, &own) < 0 || module_elf(module, &elf) < 0 ||
	    elf_file_data(elf, own, n_bytes, &bytes) < 0)
		return false;
	memcpy(code, bytes, n_bytes);
	return true;
}

static bool is_sigreturn(struct walk *walk, uint64_t address)
{
	uint8_t code[MACHINE_SIGRETURN_BYTES];

	return read_code(walk, address, code, sizeof code) && machine_is_sigreturn(code);
}

bool is_trampoline(struct walk *walk, const struct cfi_row *row)
{
	/* CFI can only describe it on machines whose calls keep nothing in a register. */
	bool may_be = row->cfa_kind == CFA_NONE || (row->is_signal && MACHINE_REG_RETURN != MACHINE_REG_PC);

	if (!may_be)
		return false;
	/* A handler returns to its start; the thread itself may be before, at or in the system call. */
	return is_sigreturn(walk, walk->pc) ||
	       (!walk->is_return_address && (is_sigreturn(walk, walk->pc - MACHINE_SIGRETURN_CALL_AT) ||
					     is_sigreturn(walk, walk->pc - MACHINE_SIGRETURN_BYTES)));
}

static int load_slot(struct walk *walk, unsigned reg, uint64_t *ret)
{
	return memory_load(walk->stack, walk->sp + (uint64_t)machine_signal_slot(reg), ret);
}

int step_by_trampoline(struct walk *walk)
{
	struct native_stack *stack = walk->stack;
	struct native_frame *frame = &stack->frames[stack->n_frames - 1];
	uint64_t pc, sp, fp;

	frame->is_signal = true;
	frame->is_trampoline = true;
	frame->is_return_address = false; /* the kernel pushed this frame; its PC is no return address */
	frame->row = ROW_NONE;
	if (load_slot(walk, MACHINE_REG_PC, &pc) < 0 || load_slot(walk, MACHINE_REG_SP, &sp) < 0 ||
	    load_slot(walk, MACHINE_REG_FP, &fp) < 0) {
		stack->end = stack->rest_refused ? STACK_TRUNCATED : STACK_BAD_MEMORY;
		return 0;
	}
	frame->cfa = sp;
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->fp_is_lost = false;
	walk->is_return_address = false;
	return 1;
}
