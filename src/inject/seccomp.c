/* SPDX-License-Identifier: MIT */
/* seccomp.c - see seccomp.h.
 *
 * Without the privilege to read filters, their number decides: a process with as many filters as probing itself is
 * in the same container, most likely, where filters answer with an error. One with more has filters of its own, and
 * a sandbox ends its process for a call that it does not expect. Such a process is left alone. A recorder that has
 * restricted itself reads none any more: a child with as many as a process that it has read before has inherited them.
 */
#include "src/inject/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/proc.h"
#include "base/util.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

#if defined(__x86_64__)
#define THIS_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#else
#define THIS_MACHINE 0
#endif

enum {
	MAX_FILTERS = 64,
	MAX_STATUS_BYTES = 1 << 16,
	DIVIDES_BY_ZERO = 1,
};

/* ---- One filter ---- */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static int load(struct machine *machine, const struct sock_filter *one, const struct seccomp_data *data)
{
	switch (one->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (one->k % 4 != 0 || one->k > sizeof *data - 4)
			return -EBADMSG;
		memcpy(&machine->a, (const char *)data + one->k, 4);
		return 0;
	case BPF_LD | BPF_W | BPF_LEN:
		machine->a = sizeof *data;
		return 0;
	case BPF_LDX | BPF_W | BPF_LEN:
		machine->x = sizeof *data;
		return 0;
	case BPF_LD | BPF_IMM:
		machine->a = one->k;
		return 0;
	case BPF_LDX | BPF_IMM:
		machine->x = one->k;
		return 0;
	}
	if (one->k >= BPF_MEMWORDS)
		return -EBADMSG;
	switch (one->code) {
	case BPF_LD | BPF_MEM:
		machine->a = machine->memory[one->k];
		return 0;
	case BPF_LDX | BPF_MEM:
		machine->x = machine->memory[one->k];
		return 0;
	case BPF_ST:
		machine->memory[one->k] = machine->a;
		return 0;
	case BPF_STX:
		machine->memory[one->k] = machine->x;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* DIVIDES_BY_ZERO: by X, which the kernel answers with 0. Source: net/core/filter.c, bpf_convert_filter(). */
static int calculate(struct machine *machine, const struct sock_filter *one)
{
	uint32_t by = BPF_SRC(one->code) == BPF_X ? machine->x : one->k;

	switch (BPF_OP(one->code)) {
	case BPF_ADD:
		machine->a += by;
		return 0;
	case BPF_SUB:
		machine->a -= by;
		return 0;
	case BPF_MUL:
		machine->a *= by;
		return 0;
	case BPF_DIV:
		if (by == 0)
			return BPF_SRC(one->code) == BPF_K ? -EBADMSG : DIVIDES_BY_ZERO;
		machine->a /= by;
		return 0;
	case BPF_AND:
		machine->a &= by;
		return 0;
	case BPF_OR:
		machine->a |= by;
		return 0;
	case BPF_XOR:
		machine->a ^= by;
		return 0;
	case BPF_LSH:
		machine->a <<= by & 31;
		return 0;
	case BPF_RSH:
		machine->a >>= by & 31;
		return 0;
	case BPF_NEG:
		machine->a = -machine->a;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Number of instructions to skip. */
static int jump(const struct machine *machine, const struct sock_filter *one, size_t *ret)
{
	uint32_t with = BPF_SRC(one->code) == BPF_X ? machine->x : one->k;
	bool is_true;

	switch (BPF_OP(one->code)) {
	case BPF_JA:
		*ret = one->k;
		return 0;
	case BPF_JEQ:
		is_true = machine->a == with;
		break;
	case BPF_JGT:
		is_true = machine->a > with;
		break;
	case BPF_JGE:
		is_true = machine->a >= with;
		break;
	case BPF_JSET:
		is_true = machine->a & with;
		break;
	default:
		return -EBADMSG;
	}
	*ret = is_true ? one->jt : one->jf;
	return 0;
}

/* Jumps go forward only, so it ends. */
int seccomp_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data, uint32_t *ret)
{
	struct machine machine = { 0 };

	for (size_t at = 0; at < n; at++) {
		const struct sock_filter *one = &code[at];
		size_t skipped = 0;
		int r = 0;

		switch (BPF_CLASS(one->code)) {
		case BPF_RET:
			*ret = BPF_RVAL(one->code) == BPF_A ? machine.a : one->k;
			return 0;
		case BPF_ALU:
			r = calculate(&machine, one);
			break;
		case BPF_JMP:
			r = jump(&machine, one, &skipped);
			break;
		case BPF_MISC:
			if (BPF_MISCOP(one->code) == BPF_TAX)
				machine.x = machine.a;
			else
				machine.a = machine.x;
			break;
		default:
			r = load(&machine, one, data);
		}
		if (r == DIVIDES_BY_ZERO)
			*ret = SECCOMP_RET_KILL_THREAD;
		if (r != 0)
			return MIN(r, 0);
		if (skipped >= n - at)
			return -EBADMSG;
		at += skipped;
	}
	return -EBADMSG;
}

uint32_t seccomp_stricter(uint32_t a, uint32_t b)
{
	return (int32_t)(a & SECCOMP_RET_ACTION_FULL) <= (int32_t)(b & SECCOMP_RET_ACTION_FULL) ? a : b;
}

bool seccomp_ends(uint32_t answer)
{
	switch (answer & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ERRNO:
	case SECCOMP_RET_USER_NOTIF:
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_ALLOW:
		return false;
	default: /* the kernel takes an unknown action for SECCOMP_RET_KILL_PROCESS */
		return true;
	}
}

/* ---- The calls ---- */

#define NOT_AN_ADDRESS 0x10000u /* filters see pointers, but cannot follow them */
#define CURRENT_FOLDER ((uint64_t)(uint32_t)AT_FDCWD)
#define OTHER_THREADS_CLOCK ((uint64_t)(uint32_t)(~1u << 3 | 6)) /* CPU clock of thread 1: sampler.c, cpu_clock() */
#define WAIT_CLONE ((uint64_t)0x80000000)                        /* __WCLONE */
enum {
	THREAD_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS |
		       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
};

#define FILE_FLAGS (O_RDONLY | O_CLOEXEC)
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
enum { SIGNAL_SET_BYTES = 8, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, MFD_NOEXEC = 8 };

/* By part of the agent (seccomp.h), in the order in which they are made. A call of several parts has a bit for each. */
static const struct agent_call {
	const char *name;
	unsigned needs;
	int number;
	uint64_t arguments[6];
} calls[] = {
#define CALL(needs, name, ...)                                                                                         \
	{                                                                                                              \
#name, needs, SYS_##name,                                                                              \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}
#define START SECCOMP_START
#define TALK (SECCOMP_START | SECCOMP_TALK)
	/* The stub, and libc while it loads a library and starts a thread. */
	CALL(TALK, mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0),
	CALL(TALK, mmap, 0, 1 << 18, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, UINT64_MAX, 0),
	CALL(START, mmap, 0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, 3, 0),
	CALL(TALK, munmap, NOT_AN_ADDRESS, 4096),
	CALL(START, mprotect, NOT_AN_ADDRESS, 4096, PROT_READ),
	CALL(TALK, mprotect, NOT_AN_ADDRESS, 4096, PROT_READ | PROT_WRITE),
	CALL(TALK, madvise, NOT_AN_ADDRESS, 4096, MADV_DONTNEED),
	CALL(TALK, openat, CURRENT_FOLDER, NOT_AN_ADDRESS, FILE_FLAGS, 0),
	CALL(START, openat, CURRENT_FOLDER, NOT_AN_ADDRESS, O_RDWR, 0),
	CALL(START, memfd_create, NOT_AN_ADDRESS, MFD_CLOEXEC),
	CALL(TALK, close, 3),
	CALL(TALK, read, 3, NOT_AN_ADDRESS, 832),
	CALL(START, pread64, 3, NOT_AN_ADDRESS, 832, 64),
	CALL(START, fstat, 3, NOT_AN_ADDRESS),
	CALL(START, newfstatat, 3, NOT_AN_ADDRESS, NOT_AN_ADDRESS, AT_EMPTY_PATH),
#ifdef SYS_clone3
	CALL(TALK, clone3, NOT_AN_ADDRESS, 88),
#endif
	CALL(TALK, clone, THREAD_FLAGS, NOT_AN_ADDRESS, NOT_AN_ADDRESS, NOT_AN_ADDRESS, NOT_AN_ADDRESS, 0),
	CALL(TALK, set_robust_list, NOT_AN_ADDRESS, 24),
#ifdef SYS_rseq
	CALL(TALK, rseq, NOT_AN_ADDRESS, 32, 0, 0x53053053),
#endif
	CALL(TALK, rt_sigprocmask, 2, NOT_AN_ADDRESS, NOT_AN_ADDRESS, SIGNAL_SET_BYTES),
	CALL(START, rt_sigreturn, 0),
	CALL(TALK, futex, NOT_AN_ADDRESS, 129, 1),
	CALL(TALK, futex, NOT_AN_ADDRESS, 393, 0, 0, 0, UINT32_MAX),
	CALL(TALK, clock_nanosleep, 1, 0, NOT_AN_ADDRESS, 0),
	CALL(START, gettid, 0),
	CALL(START, getpid, 0),
	CALL(START, getuid, 0),
	CALL(TALK, geteuid, 0),
	CALL(START, prctl, PR_SET_NAME, NOT_AN_ADDRESS, 0, 0, 0),
	CALL(TALK, sched_yield, 0),
#ifdef SYS_close_range
	CALL(START, close_range, 0, UINT32_MAX, 2),
#endif
	CALL(START, socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
	CALL(START, bind, 3, NOT_AN_ADDRESS, 16),
	CALL(START, listen, 3, 64),
	CALL(TALK, accept4, 3, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK),
	CALL(TALK, getsockopt, 3, SOL_SOCKET, SO_PEERCRED, NOT_AN_ADDRESS, NOT_AN_ADDRESS),
#ifdef SYS_poll
	CALL(TALK, poll, NOT_AN_ADDRESS, 9, UINT32_MAX),
#else
	CALL(TALK, ppoll, NOT_AN_ADDRESS, 9, 0, 0, 0),
#endif
	CALL(TALK, recvfrom, 3, NOT_AN_ADDRESS, 4096, MSG_DONTWAIT, 0, 0),
	CALL(TALK, sendto, 3, NOT_AN_ADDRESS, 4096, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0),
	CALL(TALK, sendmsg, 3, NOT_AN_ADDRESS, MSG_DONTWAIT | MSG_NOSIGNAL),
	CALL(TALK, exit, 0),
#undef START
#undef TALK
#define SAMPLER SECCOMP_SAMPLER
	CALL(SAMPLER, openat, CURRENT_FOLDER, NOT_AN_ADDRESS, FOLDER_FLAGS, 0),
	CALL(SAMPLER, getdents64, 3, NOT_AN_ADDRESS, 32768),
	CALL(SAMPLER, newfstatat, CURRENT_FOLDER, NOT_AN_ADDRESS, NOT_AN_ADDRESS, 0),
	CALL(SAMPLER, sched_getaffinity, 0, 128, NOT_AN_ADDRESS),
	CALL(SAMPLER, rt_sigaction, 64, NOT_AN_ADDRESS, NOT_AN_ADDRESS, SIGNAL_SET_BYTES),
	CALL(SAMPLER, memfd_create, NOT_AN_ADDRESS, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC),
	CALL(SAMPLER, ftruncate, 3, 1 << 22),
	CALL(SAMPLER, fcntl, 3, F_ADD_SEALS, SEALS),
	CALL(SAMPLER, mmap, 0, 1 << 22, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, 3, 0),
	CALL(SAMPLER, madvise, NOT_AN_ADDRESS, 1 << 22, MADV_DONTFORK),
	CALL(SAMPLER, clock_gettime, OTHER_THREADS_CLOCK, NOT_AN_ADDRESS),
	CALL(SAMPLER, timer_create, OTHER_THREADS_CLOCK, NOT_AN_ADDRESS, NOT_AN_ADDRESS),
	CALL(SAMPLER, timer_settime, 0, 0, NOT_AN_ADDRESS, 0),
	CALL(SAMPLER, timer_gettime, 0, NOT_AN_ADDRESS),
	CALL(SAMPLER, timer_delete, 0),
	CALL(SAMPLER, munmap, NOT_AN_ADDRESS, 1 << 22),
#undef SAMPLER
	CALL(SECCOMP_SAMPLED, gettid, 0),
	CALL(SECCOMP_SAMPLED, clock_gettime, CLOCK_MONOTONIC, NOT_AN_ADDRESS),
	CALL(SECCOMP_SAMPLED, clock_gettime, CLOCK_THREAD_CPUTIME_ID, NOT_AN_ADDRESS),
	CALL(SECCOMP_SAMPLED, rt_sigprocmask, UINT32_MAX, NOT_AN_ADDRESS, 0, SIGNAL_SET_BYTES),
	CALL(SECCOMP_SAMPLED, getcpu, NOT_AN_ADDRESS, 0, 0),
	CALL(SECCOMP_SAMPLED | SECCOMP_CRASHING, rt_sigreturn, 0),
#define CRASH SECCOMP_CRASH
	CALL(CRASH, newfstatat, CURRENT_FOLDER, NOT_AN_ADDRESS, NOT_AN_ADDRESS, 0),
#ifdef SYS_access
	CALL(CRASH, access, NOT_AN_ADDRESS, X_OK),
#endif
#ifdef SYS_faccessat2
	CALL(CRASH, faccessat2, CURRENT_FOLDER, NOT_AN_ADDRESS, W_OK | X_OK, AT_EACCESS),
#endif
	CALL(CRASH, memfd_create, NOT_AN_ADDRESS, MFD_CLOEXEC),
	CALL(CRASH, ftruncate, 3, 8192),
	CALL(CRASH, pipe2, NOT_AN_ADDRESS, O_CLOEXEC),
	CALL(CRASH, mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0),
	CALL(CRASH, clone, CLONE_VM | CLONE_VFORK, NOT_AN_ADDRESS, 0, 0, 0, 0),
	CALL(CRASH, setsid, 0),
	CALL(CRASH, fcntl, 3, F_SETFD, 0),
	CALL(CRASH, rt_sigprocmask, SIG_SETMASK, NOT_AN_ADDRESS, 0, SIGNAL_SET_BYTES),
	CALL(CRASH, execve, NOT_AN_ADDRESS, NOT_AN_ADDRESS, NOT_AN_ADDRESS),
	CALL(CRASH, exit_group, 0),
	CALL(CRASH, wait4, NOT_AN_ADDRESS, NOT_AN_ADDRESS, WAIT_CLONE, 0),
	CALL(CRASH | SECCOMP_CRASHING, futex, NOT_AN_ADDRESS, 0, 0, NOT_AN_ADDRESS),
	CALL(CRASH | SECCOMP_CRASHING, rt_sigaction, 11, NOT_AN_ADDRESS, NOT_AN_ADDRESS, SIGNAL_SET_BYTES),
#undef CRASH
	CALL(SECCOMP_CRASHING, getpid, 0),
	CALL(SECCOMP_CRASHING, gettid, 0),
	CALL(SECCOMP_CRASHING, prctl, PR_SET_PTRACER, 1, 0, 0, 0),
	CALL(SECCOMP_CRASHING, futex, NOT_AN_ADDRESS, 1, 1),
	CALL(SECCOMP_CRASHING, kill, 1, 0),
	CALL(SECCOMP_CRASHING, write, STDERR_FILENO, NOT_AN_ADDRESS, 60),
	CALL(SECCOMP_CRASHING, rt_sigprocmask, SIG_BLOCK, NOT_AN_ADDRESS, NOT_AN_ADDRESS, SIGNAL_SET_BYTES),
	CALL(SECCOMP_CRASHING, rt_tgsigqueueinfo, 1, 1, 6, NOT_AN_ADDRESS),
#define ROWS SECCOMP_ROWS
	CALL(ROWS, getpid, 0),
	CALL(ROWS, geteuid, 0),
	CALL(ROWS, openat, CURRENT_FOLDER, NOT_AN_ADDRESS, FOLDER_FLAGS, 0),
	CALL(ROWS, openat, 3, NOT_AN_ADDRESS, FOLDER_FLAGS | O_NOFOLLOW, 0),
	CALL(ROWS, openat, 3, NOT_AN_ADDRESS, FILE_FLAGS | O_CREAT | O_NOFOLLOW, 0600),
	CALL(ROWS, openat, 3, NOT_AN_ADDRESS, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600),
	CALL(ROWS, read, 3, NOT_AN_ADDRESS, 1024),
	CALL(ROWS, close, 3),
	CALL(ROWS, mkdirat, 3, NOT_AN_ADDRESS, 0700),
	CALL(ROWS, fstat, 3, NOT_AN_ADDRESS),
	CALL(ROWS, newfstatat, 3, NOT_AN_ADDRESS, NOT_AN_ADDRESS, AT_SYMLINK_NOFOLLOW),
	CALL(ROWS, fcntl, 3, F_GETFL),
	CALL(ROWS, getdents64, 3, NOT_AN_ADDRESS, 32768),
	CALL(ROWS, unlinkat, 3, NOT_AN_ADDRESS, 0),
	CALL(ROWS, unlinkat, 3, NOT_AN_ADDRESS, AT_REMOVEDIR),
	CALL(ROWS, fallocate, 3, 0, 0, 1 << 20),
	CALL(ROWS, mmap, 0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0),
	CALL(ROWS, linkat, 3, NOT_AN_ADDRESS, 3, NOT_AN_ADDRESS, 0),
	CALL(ROWS, munmap, NOT_AN_ADDRESS, 1 << 20),
	CALL(ROWS, rt_sigprocmask, SIG_SETMASK, NOT_AN_ADDRESS, NOT_AN_ADDRESS, SIGNAL_SET_BYTES),
	CALL(ROWS, gettid, 0),
#undef ROWS
#undef CALL
};

/* ---- Filters of a thread ---- */

/* SECCOMP_MODE_*; the number of filters, which strict mode has none of. Disabled: the thread has ended. -ENOMEM. */
static int read_mode(pid_t pid, pid_t tid, int *ret_filters)
{
	CLEANUP(freep) char *status = NULL;
	const char *mode, *number;
	char path[64];
	int r;

	*ret_filters = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
	r = read_file(path, MAX_STATUS_BYTES, &status, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : SECCOMP_MODE_DISABLED;
	mode = proc_status_value(status, "Seccomp");
	r = mode ? (int)strtol(mode, NULL, 10) : SECCOMP_MODE_DISABLED;
	number = proc_status_value(status, "Seccomp_filters");
	if (r == SECCOMP_MODE_FILTER)
		*ret_filters = number ? (int)strtol(number, NULL, 10) : 1;
	return r;
}

int seccomp_count(pid_t pid, pid_t tid)
{
	int n_filters, mode = read_mode(pid, tid, &n_filters);

	return mode == SECCOMP_MODE_STRICT ? 1 : mode < 0 ? mode : n_filters;
}

/*
 * The kernel writes as many instructions as the filter has. Another thread may install a longer one at any moment, for this
 * thread, too: there is room for the longest. @ret: owned by the caller. Errors: -ENOENT no such filter; what ptrace(2) reports.
 */
static int read_filter(pid_t tid, unsigned i, struct sock_filter **ret, size_t *ret_n)
{
	CLEANUP(freep) struct sock_filter *code = calloc(BPF_MAXINSNS, sizeof *code);
	long n;

	if (!code)
		return -ENOMEM;
	n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)i, code);
	if (n < 0)
		return -errno;
	*ret = TAKE(code);
	*ret_n = (size_t)n;
	return 0;
}

/* Adds what one filter answers to answers, one for each call. */
static int ask_filter(pid_t tid, unsigned i, uint32_t answers[N_ELEMENTS(calls)])
{
	CLEANUP(freep) struct sock_filter *code = NULL;
	size_t n = 0;
	int r = read_filter(tid, i, &code, &n);

	for (size_t j = 0; r >= 0 && j < N_ELEMENTS(calls); j++) {
		struct seccomp_data data = { .nr = calls[j].number, .arch = THIS_MACHINE };
		uint32_t answer;

		memcpy(data.args, calls[j].arguments, sizeof data.args);
		r = seccomp_run(code, n, &data, &answer);
		if (r >= 0)
			answers[j] = seccomp_stricter(answers[j], answer);
	}
	return r;
}

static int ask_all(pid_t tid, uint32_t answers[N_ELEMENTS(calls)])
{
	int r = 0;

	for (size_t j = 0; j < N_ELEMENTS(calls); j++)
		answers[j] = SECCOMP_RET_ALLOW;
	for (unsigned i = 0; i < MAX_FILTERS && r >= 0; i++)
		r = ask_filter(tid, i, answers);
	return r == -ENOENT ? 0 : r >= 0 ? -E2BIG : r;
}

/* What makes the call, and the end of a sentence: what has not been done. */
static const struct {
	unsigned need;
	const char *part, *undone;
} parts[] = {
	{ SECCOMP_START, "the agent needs", ": nothing was loaded" },
	{ SECCOMP_TALK, "the agent needs", ": nothing was sent to it" },
	{ SECCOMP_SAMPLER | SECCOMP_SAMPLED, "sampling needs", "" }, /* its caller says what it does not do */
	{ SECCOMP_CRASH | SECCOMP_CRASHING, "a crash report needs", ": nothing was changed" },
	{ SECCOMP_ROWS, "writing rows needs", ": nothing was changed" },
};

static int judge(pid_t pid, unsigned needs, const uint32_t answers[N_ELEMENTS(calls)], char *why, size_t why_bytes)
{
	for (size_t j = 0; j < N_ELEMENTS(calls); j++) {
		size_t i = 0;

		if (!(calls[j].needs & needs) || !seccomp_ends(answers[j]))
			continue;
		while (!(parts[i].need & calls[j].needs & needs))
			i++;
		snprintf(why, why_bytes, "process %d has a seccomp filter that ends it if it calls %s, which %s%s",
			 (int)pid, calls[j].name, parts[i].part, parts[i].undone);
		return -EPERM;
	}
	return 0;
}

static int n_harmless; /* filters of a thread that were read and found harmless, the fewest; 0: none were */

void seccomp_note_harmless(int n_filters)
{
	int before = __atomic_load_n(&n_harmless, __ATOMIC_RELAXED);

	if (n_filters > 0 && (before == 0 || n_filters < before))
		__atomic_store_n(&n_harmless, n_filters, __ATOMIC_RELAXED);
}

/* @error: of reading: -ESRCH the thread could not be stopped. */
static int judge_unread(pid_t pid, pid_t tid, int error, int n_filters, char *why, size_t why_bytes)
{
	int own = seccomp_count(getpid(), getpid());

	if (own < 0)
		return own;
	own -= MIN(own, (int)call_filter_count()); /* a recorder's own is no container's */
	if (n_filters <= own || n_filters <= __atomic_load_n(&n_harmless, __ATOMIC_RELAXED))
		return 0;
	if (error == -ESRCH && geteuid() == 0 && own == 0)
		snprintf(
			why, why_bytes,
			"the seccomp filter of thread %d of process %d cannot be read, and may end it for a call of the "
			"agent: a debugger traces the thread, or it is stopped, or in a call that cannot be interrupted: try "
			"again, or, if the filter returns errors, `probing inject --trust-filter %d`",
			(int)tid, (int)pid, (int)pid);
	else
		snprintf(
			why, why_bytes,
			"process %d has a seccomp filter of its own, which only root may read, and which may end it for a call of "
			"the agent: run probing as root, or, if the filter returns errors, `probing inject --trust-filter %d`",
			(int)pid, (int)pid);
	return -EPERM;
}

int seccomp_check(pid_t pid, pid_t tid, unsigned needs, bool is_trusted, char *why, size_t why_bytes)
{
	uint32_t answers[N_ELEMENTS(calls)];
	int n_filters, r = read_mode(pid, tid, &n_filters);

	if (r == SECCOMP_MODE_STRICT) {
		snprintf(
			why, why_bytes,
			"process %d is in seccomp's strict mode, which ends it for any call of the agent: nothing was loaded",
			(int)pid);
		return -EPERM;
	}
	if (r < 0 || n_filters == 0)
		return MIN(r, 0);
	/* The kernel refuses it to a process with a filter, and a recorder's own ends it for ptrace(2). */
	r = seccomp_count(getpid(), getpid()) > 0 ? -EACCES : ask_all(tid, answers);
	if (r >= 0)
		return judge(pid, needs, answers, why, why_bytes);
	if (r == -ENOMEM || (r == -ESRCH && seccomp_count(pid, tid) == 0))
		return r;
	return is_trusted ? 0 : judge_unread(pid, tid, r, n_filters, why, why_bytes);
}
