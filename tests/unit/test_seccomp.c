/* SPDX-License-Identifier: MIT */
/* Test the reading of seccomp filters: each answer as the kernel gives it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/audit.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/inject/seccomp.h"

enum { MAX_CODE = 64, N_PROGRAMS = 300, STEPS = 24, WORDS = 4, REFUSED = 200 };

static uint32_t answer_of(const struct sock_filter *code, size_t n, const struct seccomp_data *data)
{
	uint32_t answer = 0;

	assert_int_equal(seccomp_run(code, n, data, &answer), 0);
	return answer;
}

/* ---- Written by hand ---- */

static const struct sock_filter by_number[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void the_number_and_an_argument_decide(void **state)
{
	struct seccomp_data data = { .nr = SYS_socket, .args = { 1 } };

	(void)state;
	assert_int_equal(answer_of(by_number, N_ELEMENTS(by_number), &data), SECCOMP_RET_KILL_PROCESS);
	data.args[0] = 2;
	assert_int_equal(answer_of(by_number, N_ELEMENTS(by_number), &data), SECCOMP_RET_ALLOW);
	data.nr = SYS_getpid;
	data.args[0] = 1;
	assert_int_equal(answer_of(by_number, N_ELEMENTS(by_number), &data), SECCOMP_RET_ALLOW);
}

static void what_the_kernel_would_not_take_is_an_error(void **state)
{
	static const struct sock_filter wrong[][2] = {
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data)), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UINT32_MAX - 3), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_MEM, BPF_MEMWORDS), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_ST, UINT32_MAX), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_IMM, 1), BPF_STMT(BPF_LD | BPF_IMM, 1) },
	};
	const struct seccomp_data data = { 0 };
	uint32_t answer = 7;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++)
		assert_int_equal(seccomp_run(wrong[i], 2, &data, &answer), -EBADMSG);
	assert_int_equal(seccomp_run(by_number, 0, &data, &answer), -EBADMSG);
	assert_int_equal(answer, 7);
}

static void the_stricter_answer_holds(void **state)
{
	static const uint32_t from_strict[] = { SECCOMP_RET_KILL_PROCESS,  SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
						SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_TRACE,       SECCOMP_RET_LOG,
						SECCOMP_RET_ALLOW };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(from_strict); i++) {
		assert_int_equal(seccomp_ends(from_strict[i]), i < 3);
		for (size_t j = i; j < N_ELEMENTS(from_strict); j++) {
			assert_int_equal(seccomp_stricter(from_strict[i], from_strict[j]), from_strict[i]);
			assert_int_equal(seccomp_stricter(from_strict[j], from_strict[i]), from_strict[i]);
		}
	}
	assert_true(seccomp_ends(0x12340000)); /* no action that is known */
}

/* ---- Beside the kernel ---- */

/* One harmless step: a calculation, a load, or a jump over the next step. */
static struct sock_filter random_step(void)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_W | BPF_ABS,
		BPF_LD | BPF_W | BPF_LEN,
		BPF_LDX | BPF_W | BPF_LEN,
		BPF_LD | BPF_IMM,
		BPF_LDX | BPF_IMM,
		BPF_LD | BPF_MEM,
		BPF_LDX | BPF_MEM,
		BPF_ST,
		BPF_STX,
		BPF_MISC | BPF_TAX,
		BPF_MISC | BPF_TXA,
		BPF_ALU | BPF_NEG,
		BPF_ALU | BPF_ADD | BPF_K,
		BPF_ALU | BPF_ADD | BPF_X,
		BPF_ALU | BPF_SUB | BPF_K,
		BPF_ALU | BPF_SUB | BPF_X,
		BPF_ALU | BPF_MUL | BPF_K,
		BPF_ALU | BPF_MUL | BPF_X,
		BPF_ALU | BPF_DIV | BPF_K,
		BPF_ALU | BPF_DIV | BPF_X,
		BPF_ALU | BPF_AND | BPF_K,
		BPF_ALU | BPF_AND | BPF_X,
		BPF_ALU | BPF_OR | BPF_K,
		BPF_ALU | BPF_OR | BPF_X,
		BPF_ALU | BPF_XOR | BPF_K,
		BPF_ALU | BPF_XOR | BPF_X,
		BPF_ALU | BPF_LSH | BPF_K,
		BPF_ALU | BPF_LSH | BPF_X,
		BPF_ALU | BPF_RSH | BPF_K,
		BPF_ALU | BPF_RSH | BPF_X,
		BPF_JMP | BPF_JA,
		BPF_JMP | BPF_JEQ | BPF_K,
		BPF_JMP | BPF_JGT | BPF_K,
		BPF_JMP | BPF_JGT | BPF_X,
		BPF_JMP | BPF_JGE | BPF_K,
		BPF_JMP | BPF_JGE | BPF_X,
		BPF_JMP | BPF_JSET | BPF_K,
		BPF_JMP | BPF_JSET | BPF_X,
		BPF_JMP | BPF_JEQ | BPF_X,
	};
	struct sock_filter step = { .code = codes[(size_t)random() % N_ELEMENTS(codes)], .k = (uint32_t)random() };

	if (step.code == (BPF_LD | BPF_W | BPF_ABS))
		step.k = step.k % (sizeof(struct seccomp_data) / 4 - 4) * 4;
	if (step.code == (BPF_LD | BPF_W | BPF_ABS) && step.k >= 8 && step.k < 16)
		step.k = 16; /* not the instruction pointer, which is not known here */
	if (step.code == (BPF_LD | BPF_MEM) || step.code == (BPF_LDX | BPF_MEM) || step.code == BPF_ST ||
	    step.code == BPF_STX)
		step.k %= WORDS;
	if (BPF_CLASS(step.code) == BPF_ALU && (BPF_OP(step.code) == BPF_LSH || BPF_OP(step.code) == BPF_RSH))
		step.k %= 32;
	if (BPF_CLASS(step.code) == BPF_ALU && BPF_OP(step.code) == BPF_DIV)
		step.k |= 1;
	if (BPF_CLASS(step.code) == BPF_JMP) {
		step.jt = random() % 2;
		step.jf = random() % 2;
		step.k = BPF_OP(step.code) == BPF_JA ? step.k % 2 : step.k;
	}
	return step;
}

/* Answers getpgid(2) with an error number that it calculates of the arguments, and allows all else. */
static size_t random_program(struct sock_filter code[MAX_CODE])
{
	const struct sock_filter first[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_filter last[] = {
		BPF_STMT(BPF_LDX | BPF_IMM, 0), /* what a jump over the last step lands behind */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7ff),
		BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	size_t n = N_ELEMENTS(first);

	memcpy(code, first, sizeof first);
	for (uint32_t i = 0; i < WORDS; i++)
		code[n++] = (struct sock_filter)BPF_STMT(BPF_ST, i);
	for (int i = 0; i < STEPS; i++)
		code[n++] = random_step();
	memcpy(code + n, last, sizeof last);
	return n + N_ELEMENTS(last);
}

/* Status of a child that has made the call: 0: answered with that error; a signal: it was ended. */
static int kernel_answers(struct sock_filter *code, size_t n, const struct seccomp_data *data, uint32_t expected)
{
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };
	pid_t child = fork();
	int status;

	if (child == 0) {
		long r;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(REFUSED);
		r = syscall(SYS_getpgid, data->args[0], data->args[1], data->args[2], data->args[3], data->args[4],
			    data->args[5]);
		_exit(r != (expected & SECCOMP_RET_DATA ? -1 : 0) ||
		      (r < 0 && errno != (int)(expected & SECCOMP_RET_DATA)));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void answers_are_the_kernels(void **state)
{
	struct seccomp_data data = { .nr = SYS_getpgid, .arch = AUDIT_ARCH_X86_64 };
	struct sock_filter code[MAX_CODE];
	int n_errors = 0;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	srandom(1);
	for (int i = 0; i < N_PROGRAMS; i++) {
		size_t n = random_program(code);
		uint32_t expected;
		int status;

		for (size_t j = 0; j < N_ELEMENTS(data.args); j++)
			data.args[j] = (uint64_t)random() << 32 | (uint64_t)random();
		expected = answer_of(code, n, &data);
		status = kernel_answers(code, n, &data, expected);
		if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
			skip(); /* no filters here */
		if (seccomp_ends(expected)) {
			assert_true(WIFSIGNALED(status));
		} else {
			assert_int_equal(status, 0);
			n_errors++;
		}
	}
	assert_true(n_errors > N_PROGRAMS / 2);
}

static void filters_of_a_process_are_counted(void **state)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { .len = 1, .filter = allow };
	int before = seccomp_count(getpid(), getpid()), status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(REFUSED);
		_exit(seccomp_count(getpid(), getpid()) != before + 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		skip();
	assert_int_equal(status, 0);
	assert_int_equal(seccomp_count(child, child), 0); /* it has ended */
}

/* ---- Changed meanwhile ---- */

static bool lacks_room, is_called;

/* In place of libc's: the only filter has one instruction if its length is asked for, and is the longest when it is read. */
long ptrace(enum __ptrace_request request, ...)
{
	struct sock_filter *code;
	va_list arguments;
	unsigned long i;

	is_called = true;
	(void)request;
	va_start(arguments, request);
	(void)va_arg(arguments, pid_t);
	i = (unsigned long)va_arg(arguments, void *);
	code = va_arg(arguments, void *);
	va_end(arguments);
	lacks_room |= code && malloc_usable_size(code) < BPF_MAXINSNS * sizeof *code;
	errno = ENOENT;
	if (i > 0 || lacks_room)
		return -1;
	if (!code)
		return 1;
	for (size_t j = 0; j < BPF_MAXINSNS - 1; j++)
		code[j] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
	code[BPF_MAXINSNS - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return BPF_MAXINSNS;
}

/* Another thread of the process may install one at any moment. */
static void a_filter_that_grows_while_it_is_read_has_room(void **state)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { .len = 1, .filter = allow };
	char why[256] = "", ready = 0;
	int ends[2], r;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(REFUSED);
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	r = read(ends[0], &ready, 1) == 1 ? seccomp_check(child, child, SECCOMP_START, false, why, sizeof why) : 0;
	close(ends[0]);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	if (ready == 0)
		skip(); /* no filters here */
	assert_false(lacks_room);
	assert_int_equal(r, -EPERM);
	assert_non_null(strstr(why, "has a seccomp filter that ends it if it calls mmap"));
}

/* The kernel would refuse it, and the filter of a recorder ends it for ptrace(2). */
static void a_process_with_a_filter_reads_none(void **state)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { .len = 1, .filter = allow };
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		char why[512];

		is_called = false;
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(REFUSED);
		_exit(seccomp_check(getpid(), getpid(), SECCOMP_START, false, why, sizeof why) != 0 || is_called);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_and_an_argument_decide),
		cmocka_unit_test(what_the_kernel_would_not_take_is_an_error),
		cmocka_unit_test(the_stricter_answer_holds),
		cmocka_unit_test(answers_are_the_kernels),
		cmocka_unit_test(filters_of_a_process_are_counted),
		cmocka_unit_test(a_filter_that_grows_while_it_is_read_has_room),
		cmocka_unit_test(a_process_with_a_filter_reads_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
