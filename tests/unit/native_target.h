/* SPDX-License-Identifier: MIT */
/* native_target.h - threads stopped at an instant, for the tests of unwind/native.
 *
 * A target is a child of the test: another program, or one function of the test
 * itself. ptrace(2) stops its threads, so that registers and stack are of one
 * instant and stay so while two unwinders look at them. It dies with the test.
 */
#ifndef PROBING_TESTS_NATIVE_TARGET_H
#define PROBING_TESTS_NATIVE_TARGET_H

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "unwind/native/native.h"
#ifdef THROUGH_SERVER /* ELF files are read by another process */
#include "src/pipeline/cfi_client.h"
#endif

enum { MAX_STACK_BYTES = 16 << 20, MAX_TARGET_THREADS = 64 };

/* ---- Targets ---- */

/* Shared with a target that is a function of the test. */
struct target_page {
	int ready;   /* counted up by the target */
	int command; /* counted up by the test */
	uint64_t values[8];
};

struct target {
	pid_t pid;
	struct target_page *page; /* NULL: another program */
};

static inline int peek(const int *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static inline void poke(int *to, int value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static inline void sleep_us(unsigned us)
{
	struct timespec time = { .tv_nsec = us * 1000L };

	nanosleep(&time, NULL);
}

/* The target gets to a point; fails the test after twenty seconds. */
static inline void target_wait(const struct target *target, int ready)
{
	for (int i = 0; i < 20000; i++) {
		if (peek(&target->page->ready) >= ready)
			return;
		sleep_us(1000);
	}
	fail_msg("the target did not get to %d", ready);
}

/* The function runs in a child; it counts page->ready up to 1 when it is where it shall be. */
static inline struct target target_fork(void (*run)(struct target_page *page))
{
	struct target target;

	target.page = mmap(NULL, sizeof *target.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(target.page, MAP_FAILED);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(target.page);
		_exit(0);
	}
	target_wait(&target, 1);
	return target;
}

/* Another program; returns after its first line of output, which fixtures write when set up. */
static inline struct target target_exec(const char *const *argv)
{
	struct target target = { .page = NULL };
	int output[2];
	char byte;

	assert_int_equal(pipe(output), 0);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(output[1], STDOUT_FILENO);
		close(output[0]);
		close(output[1]);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(output[1]);
	do
		if (read(output[0], &byte, 1) != 1)
			fail_msg("%s ended before it was ready", argv[0]);
	while (byte != '\n');
	close(output[0]);
	return target;
}

static inline void target_end(struct target *target)
{
	pid_t ended;

	kill(target->pid, SIGKILL);
	do /* traced threads have to be waited for one by one, the first one last */
		ended = waitpid(-1, NULL, __WALL);
	while (ended != target->pid && (ended > 0 || errno == EINTR));
	if (target->page)
		munmap(target->page, sizeof *target->page);
}

/* ---- Stopping threads ---- */

static inline size_t target_threads(pid_t pid, pid_t *tids)
{
	char path[64];
	struct dirent *entry;
	size_t n = 0;
	DIR *folder;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	folder = opendir(path);
	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL && n < MAX_TARGET_THREADS)
		if (entry->d_name[0] != '.')
			tids[n++] = atoi(entry->d_name);
	closedir(folder);
	return n;
}

static inline void thread_seize(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		fail_msg("PTRACE_SEIZE: %s", strerror(errno));
}

/* Wait until a traced thread stands; returns the signal that waits for delivery, or 0. */
static inline int thread_wait(pid_t tid)
{
	int status;

	while (waitpid(tid, &status, __WALL) != tid)
		assert_int_equal(errno, EINTR);
	if (!WIFSTOPPED(status))
		fail_msg("thread %d has ended", (int)tid);
	return status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

/* Returns the signal to hand to thread_go(). */
static inline int thread_stop(pid_t tid)
{
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	return thread_wait(tid);
}

static inline void thread_go(pid_t tid, int signal)
{
	assert_int_equal(ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal), 0);
}

/* One instruction on. Signals that arrive are delivered. */
static inline void thread_step(pid_t tid)
{
	int signal = 0;

	do {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)signal), 0);
		signal = thread_wait(tid);
	} while (signal != 0);
}

static inline void thread_registers(pid_t tid, struct regs *ret)
{
	struct user_regs_struct u;
	struct iovec where = { &u, sizeof u };

	assert_int_equal(ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &where), 0);
#ifdef __x86_64__
	*ret = (struct regs){ .value = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10,
					 u.r11, u.r12, u.r13, u.r14, u.r15, u.rip } };
#else /* aarch64: regs[31], sp, pc, as DWARF has them */
	memcpy(ret->value, &u, sizeof ret->value);
#endif
}

/* ---- A process as the unwinder sees it ---- */

struct view {
	pid_t pid;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack stack;
	uint8_t *bytes; /* room for one stack */
#ifdef THROUGH_SERVER
	struct cfi_client *cfi;
#endif
};

/* With THROUGH_SERVER, another process reads files for the unwinder. */
static inline void view_read_elsewhere(struct view *view)
{
#ifdef THROUGH_SERVER
	assert_int_equal(cfi_client_start(CFI_CLIENT_PATIENCE_MS, &view->cfi), 0);
	module_table_set_reader(view->modules, cfi_client_reader(view->cfi));
	native_unwinder_set_source(view->unwinder, cfi_client_rows(view->cfi));
#else
	(void)view;
#endif
}

static inline void view_stop_reading(struct view *view)
{
#ifdef THROUGH_SERVER
	struct pipeline_cfi_troubles troubles;

	cfi_client_troubles(view->cfi, &troubles);
	assert_int_equal(troubles.n_deaths, 0);
	assert_true(troubles.n_asked > 0);
	cfi_client_free(view->cfi);
#else
	(void)view;
#endif
}

static inline void view_open(struct view *view, pid_t pid)
{
	memset(view, 0, sizeof *view);
	view->pid = pid;
	assert_int_equal(module_table_new(&view->modules), 0);
	assert_int_equal(native_unwinder_new(view->modules, &view->unwinder), 0);
	view_read_elsewhere(view);
	assert_int_equal(address_space_new(pid, view->modules, &view->space), 0);
	assert_int_equal(address_space_load(view->space), 0);
	assert_int_equal(remote_open_process(pid, &view->remote), 0);
	assert_int_equal(native_process_new(view->unwinder, view->space, &view->process), 0);
	view->bytes = malloc(MAX_STACK_BYTES);
	assert_non_null(view->bytes);
}

static inline void view_close(struct view *view)
{
	native_stack_done(&view->stack);
	native_process_free(view->process);
	native_unwinder_free(view->unwinder);
	remote_free(view->remote);
	address_space_free(view->space);
	module_table_free(view->modules);
	view_stop_reading(view);
	free(view->bytes);
}

/*
 * A sample of a stopped thread.
 * @stack_bytes: captured at most; 0: nothing.
 */
static inline struct sample view_sample(struct view *view, pid_t tid, size_t stack_bytes)
{
	struct sample sample = { .pid = view->pid, .tid = tid, .has_user = true, .stack = view->bytes };
	ssize_t n;

	thread_registers(tid, &sample.regs);
	n = remote_read_some(view->remote, RADDR(sample.regs.value[MACHINE_REG_SP]), view->bytes,
			     MIN(stack_bytes, (size_t)MAX_STACK_BYTES));
	sample.stack_bytes = n > 0 ? (size_t)n & ~(size_t)7 : 0;
	return sample;
}

/* From the stack pointer to the top of the mapping. */
static inline struct sample view_sample_all(struct view *view, pid_t tid)
{
	const struct mapping *mapping;
	struct regs regs;
	uint64_t sp;

	thread_registers(tid, &regs);
	sp = regs.value[MACHINE_REG_SP];
	mapping = address_space_find(view->space, sp);
	return view_sample(view, tid, mapping ? mapping->end - sp : 64 << 10);
}

static inline void view_unwind(struct view *view, const struct sample *sample, struct remote *remote)
{
	assert_int_equal(native_unwind(view->process, sample, remote, &view->stack), 0);
}

static inline void assert_end(const struct native_stack *stack, enum stack_end end)
{
	if (stack->end != end)
		fail_msg("the stack ended as %s after %zu frames, not as %s", stack_end_name(stack->end),
			 stack->n_frames, stack_end_name(end));
}

#endif
