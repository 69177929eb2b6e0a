/* SPDX-License-Identifier: MIT */
/* call_x86_64.c - see call.h.
 *
 * Sources: arch/x86/kernel/signal_64.c and fpu/signal.c of Linux 6.12 (the frame that rt_sigreturn(2) reads and
 * checks), arch/x86/include/uapi/asm/sigcontext.h; System V ABI, AMD64 supplement, 3.2.2 (red zone, alignment).
 */
#include "src/inject/call.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/util.h"

enum {
	RED_ZONE = 128,
	FRAME_ALIGNMENT = 16,
	VECTOR_ALIGNMENT = 64,
	LEGACY_BYTES = 512,
	HEADER_BYTES = 64, /* of the XSAVE area */
	SOFTWARE_AT = 464,
	FEATURES_AT = 464, /* position of the features in ptrace(2)'s data; signal frames have more there */
	MAGIC_1 = 0x46505853,
	MAGIC_2 = 0x46505845,
	FLAG_TRAP = 0x100,
	FLAG_DIRECTION = 0x400,
	CONTEXT_FLAGS = 1 | 2 | 4, /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
	NO_STACK_MODE = 4, /* an invalid mode for sigaltstack(2), so rt_sigreturn(2) keeps the alternate stack */
	ERESTART_FIRST = 512,
	ERESTART_LAST = 514,
	ERESTART_BLOCK = 516,
	SYSTEM_CALL_BYTES = 2,
	MAX_STEPS = 400,
	LIBC_FIRST_SIGNAL = 32,
	LIBC_N_SIGNALS = 2, /* cancellation and setxid: never block them */
};
#define TILE_FEATURES (UINT64_C(3) << 17) /* AMX, only for processes that requested it */

/* The kernel's fx_sw_bytes. */
struct software {
	uint32_t magic, extended_bytes;
	uint64_t features;
	uint32_t n_bytes;
	uint32_t padding[7];
};
_Static_assert(sizeof(struct software) == LEGACY_BYTES - SOFTWARE_AT, "struct _fpx_sw_bytes");

/* The part of the kernel's struct rt_sigframe that rt_sigreturn(2) reads. The vector registers follow, aligned. */
struct signal_frame {
	uint64_t restorer;
	uint64_t flags, link;
	uint64_t stack_at;
	uint32_t stack_mode, stack_padding;
	uint64_t stack_bytes;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, cr2, vectors;
	uint64_t reserved[8];
	uint64_t mask;
};
_Static_assert(offsetof(struct signal_frame, r8) == 8 + offsetof(ucontext_t, uc_mcontext), "struct ucontext");
_Static_assert(offsetof(struct signal_frame, mask) == 8 + offsetof(ucontext_t, uc_sigmask), "struct ucontext");

const char *call_refusal(void)
{
	return NULL;
}

int call_find(const uint8_t *code, size_t n_bytes, uint64_t address, struct call *call)
{
	static const uint8_t system_call[] = { 0x0f, 0x05, 0xc3 };
	static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t *first = memmem(code, n_bytes, system_call, sizeof system_call);
	const uint8_t *second = memmem(code, n_bytes, restorer, sizeof restorer);

	if (!first || !second)
		return -ENOENT;
	call->system_call = address + (uint64_t)(first - code);
	call->restorer = address + (uint64_t)(second - code);
	return 0;
}

static const struct user_regs_struct *registers_of(const struct call *call)
{
	_Static_assert(sizeof(struct user_regs_struct) == sizeof call->status, "MACHINE_STATUS_WORDS");
	return (const struct user_regs_struct *)call->status;
}

static int read_registers(pid_t tid, void *to, size_t n_bytes)
{
	struct iovec part = { to, n_bytes };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &part) < 0)
		return -errno;
	return part.iov_len == n_bytes ? 0 : -EOPNOTSUPP;
}

int call_look(struct call *call)
{
	const struct user_regs_struct *registers = registers_of(call);
	int r = read_registers(call->tid, call->status, sizeof call->status);

	if (r < 0)
		return r;
	machine_regs_from_status(call->status, &call->regs);
	call->frame = 0;
	call->in = (struct place_call){ .number = (long)registers->orig_rax,
					.arguments = { registers->rdi, registers->rsi, registers->rdx, registers->r10,
						       registers->r8, registers->r9 } };
	return 0;
}

/* ---- Signal frame ---- */

/* Size of the XSAVE area without features that the thread does not use and may not restore. */
static size_t vector_bytes(uint64_t features)
{
	size_t n_bytes = LEGACY_BYTES + HEADER_BYTES;

	for (unsigned i = 2; i < 63; i++) {
		unsigned size, offset, c, d;

		if (features >> i & 1 && __get_cpuid_count(0xd, i, &size, &offset, &c, &d) && offset + size > n_bytes)
			n_bytes = offset + size;
	}
	return n_bytes;
}

static int read_vectors(struct call *call)
{
	struct iovec part = { call->vectors, sizeof call->vectors - 64 };
	struct software software = { .magic = MAGIC_1 };
	const uint32_t magic = MAGIC_2;
	uint64_t used;

	if (ptrace(PTRACE_GETREGSET, call->tid, (void *)NT_X86_XSTATE, &part) < 0)
		return errno == ESRCH ? -ESRCH : -EOPNOTSUPP;
	memcpy(&software.features, call->vectors + FEATURES_AT, sizeof software.features);
	memcpy(&used, call->vectors + LEGACY_BYTES, sizeof used);
	if (!(used & TILE_FEATURES))
		software.features &= ~TILE_FEATURES;
	software.n_bytes = (uint32_t)vector_bytes(software.features);
	if (software.features == 0 || software.n_bytes > part.iov_len)
		return -EOPNOTSUPP;
	software.extended_bytes = software.n_bytes + (uint32_t)sizeof magic;
	memcpy(call->vectors + SOFTWARE_AT, &software, sizeof software);
	memcpy(call->vectors + software.n_bytes, &magic, sizeof magic);
	call->n_vectors = software.extended_bytes;
	return 0;
}

/*
 * A critical section of rseq(2) must be left through its abort handler, which the kernel no longer triggers after our
 * call.
 */
static bool is_in_sequence(const struct call *call)
{
	struct __ptrace_rseq_configuration where;
	struct {
		uint64_t versions, start, n_bytes, abort;
	} section;
	uint64_t address;
	struct iovec to = { &address, sizeof address }, from;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, call->tid, (void *)sizeof where, &where) != (long)sizeof where ||
	    !where.rseq_abi_pointer)
		return false;
	from = (struct iovec){ (void *)(uintptr_t)(where.rseq_abi_pointer + 8), sizeof address };
	if (process_vm_readv(call->pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof address || address == 0)
		return false;
	to = (struct iovec){ &section, sizeof section };
	from = (struct iovec){ (void *)(uintptr_t)address, sizeof section };
	if (process_vm_readv(call->pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof section)
		return true;
	return registers_of(call)->rip - section.start < section.n_bytes;
}

/*
 * Registers to resume with. An interrupted system call is restarted like the kernel's handle_signal() does without a
 * handler.
 */
static int fill_registers(const struct call *call, struct signal_frame *frame)
{
	const struct user_regs_struct *now = registers_of(call);
	int64_t error = -(int64_t)now->rax;

	*frame = (struct signal_frame){
		.restorer = call->restorer,
		.flags = CONTEXT_FLAGS,
		.stack_mode = NO_STACK_MODE,
		.r8 = now->r8,
		.r9 = now->r9,
		.r10 = now->r10,
		.r11 = now->r11,
		.r12 = now->r12,
		.r13 = now->r13,
		.r14 = now->r14,
		.r15 = now->r15,
		.di = now->rdi,
		.si = now->rsi,
		.bp = now->rbp,
		.bx = now->rbx,
		.dx = now->rdx,
		.ax = now->rax,
		.cx = now->rcx,
		.sp = now->rsp,
		.ip = now->rip,
		.eflags = now->eflags,
		.cs = (uint16_t)now->cs,
		.gs = (uint16_t)now->gs,
		.fs = (uint16_t)now->fs,
		.ss = (uint16_t)now->ss,
	};
	if ((int64_t)now->orig_rax < 0)
		return 0;
	if (error == ERESTART_BLOCK)
		return -EAGAIN;
	if (error >= ERESTART_FIRST && error <= ERESTART_LAST) {
		frame->ax = now->orig_rax;
		frame->ip -= SYSTEM_CALL_BYTES;
	}
	return 0;
}

static int write_frame(struct call *call, struct signal_frame *frame)
{
	uint64_t top = registers_of(call)->rsp - RED_ZONE;
	uint64_t vectors = (top - call->n_vectors) & ~(uint64_t)(VECTOR_ALIGNMENT - 1);
	/* The alignment at a function's entry: the return address is 8 bytes below a multiple of 16. */
	uint64_t at = ((vectors - sizeof *frame) & ~(uint64_t)(FRAME_ALIGNMENT - 1)) - 8;
	int r;

	frame->vectors = vectors;
	r = inject_target_write(call->pid, vectors, call->vectors, call->n_vectors);
	if (r >= 0)
		r = inject_target_write(call->pid, at, frame, sizeof *frame);
	if (r >= 0)
		call->frame = at;
	return r;
}

/* The called function needs stack space: check that the pages below exist, or that the main stack can grow. */
static int check_room(const struct call *call)
{
	static const uint8_t nothing[64];

	return inject_target_write(call->pid, call->frame - 12 * 1024, nothing, sizeof nothing);
}

int call_begin(struct call *call)
{
	struct signal_frame frame;
	uint64_t mask;
	int r;

	if (registers_of(call)->cs != 0x33)
		return -EOPNOTSUPP; /* 32-bit code */
	r = fill_registers(call, &frame);
	if (r < 0)
		return r;
	if (is_in_sequence(call))
		return -EAGAIN;
	if (ptrace(PTRACE_GETSIGMASK, call->tid, (void *)sizeof mask, &mask) < 0)
		return -errno;
	frame.mask = mask;
	r = read_vectors(call);
	if (r >= 0)
		r = write_frame(call, &frame);
	return r < 0 ? r : check_room(call);
}

/* ---- Calls ---- */

static int set_registers(struct call *call, struct user_regs_struct *registers)
{
	struct iovec part = { registers, sizeof *registers };
	uint64_t mask = ~(((UINT64_C(1) << LIBC_N_SIGNALS) - 1) << (LIBC_FIRST_SIGNAL - 1));

	registers->rsp = call->frame;
	registers->orig_rax = UINT64_MAX; /* no system call is in progress now */
	registers->eflags &= ~(uint64_t)(FLAG_TRAP | FLAG_DIRECTION);
	if (ptrace(PTRACE_SETREGSET, call->tid, (void *)NT_PRSTATUS, &part) < 0)
		return -errno;
	/* After the registers: if this process dies in between, the thread itself restores its mask. */
	return ptrace(PTRACE_SETSIGMASK, call->tid, (void *)sizeof mask, &mask) < 0 ? -errno : 0;
}

int call_system(struct call *call, long number, const uint64_t arguments[6], int64_t *ret)
{
	struct user_regs_struct registers = *registers_of(call), after;
	int r;

	registers.rip = call->system_call;
	registers.rax = (uint64_t)number;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	r = set_registers(call, &registers);
	for (int i = 0; i < 2 && r >= 0; i++)
		r = trace_step(call->pid, call->tid); /* entry and exit of the call */
	if (r >= 0)
		r = read_registers(call->tid, &after, sizeof after);
	if (r < 0)
		return r;
	if (after.rip != call->system_call + SYSTEM_CALL_BYTES)
		return -ECANCELED;
	*ret = (int64_t)after.rax;
	return 0;
}

static bool is_restoring(const struct call *call, const struct user_regs_struct *now)
{
	return now->orig_rax == SYS_rt_sigreturn && now->rip - call->restorer <= 9 && now->rsp == call->frame + 8;
}

int call_function(struct call *call, uint64_t function, uint64_t argument)
{
	struct user_regs_struct registers = *registers_of(call);
	int r;

	registers.rip = function;
	registers.rdi = argument;
	registers.rax = 0;
	r = set_registers(call, &registers);
	for (int i = 0; i < MAX_STEPS && r >= 0; i++) {
		r = trace_step(call->pid, call->tid);
		if (r >= 0)
			r = read_registers(call->tid, &registers, sizeof registers);
		if (r >= 0 && is_restoring(call, &registers))
			return 0;
	}
	return r < 0 ? r : -ECANCELED;
}

#endif
