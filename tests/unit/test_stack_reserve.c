/* SPDX-License-Identifier: MIT */
/* test_stack_reserve.c - a main thread's stack when no memory is left. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/stack_reserve.h"

enum { USED_BYTES = 200 * 1024 };

static __attribute__((noinline)) void use_stack(void)
{
	char room[USED_BYTES];

	memset(room, 1, sizeof room);
	__asm__ volatile("" : : "r"(room) : "memory");
}

/* Nothing more is mapped, from now on. */
static int limit_memory(void)
{
	struct rlimit limit;
	unsigned long n_pages;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (!statm || fscanf(statm, "%lu", &n_pages) != 1)
		return -1;
	fclose(statm);
	limit.rlim_cur = limit.rlim_max = n_pages * (rlim_t)sysconf(_SC_PAGESIZE);
	return setrlimit(RLIMIT_AS, &limit);
}

/* The wait status of a process that uses its stack once its memory is limited. */
static int status_of(void (*before)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		if (before)
			before();
		if (limit_memory() < 0)
			_exit(2);
		use_stack();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_reserved(void **state)
{
	(void)state;
	assert_int_equal(status_of(stack_reserve), 0);
}

/* What the reserve is for; fails where something else makes it needless. */
static void test_not_reserved(void **state)
{
	int status = status_of(NULL);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_not_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
