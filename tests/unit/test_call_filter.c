/* SPDX-License-Identifier: MIT */
/* Test which calls a filter allows, refuses and kills for, each in a child process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/call_filter.h"
#include "base/privilege.h"
#include "base/util.h"

enum { NO_FILTERS = 77 };

/* Calls of the test itself, in addition to calls_basic. */
static const struct call_rule own[] = {
	ALLOW_IF(openat, CALL_EQUALS, 2, O_RDONLY),
	ALLOW_IF(dup3, CALL_WITH_BITS, 2, O_CLOEXEC),
};

static int install(enum call_verdict otherwise, bool all_threads)
{
	const struct call_table tables[] = { calls_fatal, { own, N_ELEMENTS(own) }, calls_basic };
	int r = privilege_lock();

	if (r >= 0)
		r = call_filter_install(tables, N_ELEMENTS(tables), otherwise, all_threads);
	return r;
}

/* The status of a child, as waitpid(2) gives it, which has installed the filter. */
static int run_filtered(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(install(CALL_NOT_THERE, false) < 0 ? NO_FILTERS : run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS) {
		print_message("skipped: a kernel or a container without filters of system calls\n");
		skip();
	}
	return status;
}

static void assert_fine(int (*run)(void))
{
	int status = run_filtered(run);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void assert_killed(int (*run)(void))
{
	int status = run_filtered(run);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static bool is_refused(long result)
{
	return result < 0 && errno == ENOSYS;
}

static int make_what_has_no_rule(void)
{
	return is_refused(syscall(SYS_socket, 1, 1, 0)) && is_refused(syscall(SYS_mkdirat, AT_FDCWD, "/tmp", 0)) ? 0
														 : 1;
}

static void test_refuses_what_has_no_rule(void **state)
{
	(void)state;
	assert_fine(make_what_has_no_rule);
}

static int start_program(void)
{
	char *const argv[] = { "true", NULL };

	execv("/bin/true", argv);
	return 1;
}

static int trace(void)
{
	return (int)syscall(SYS_ptrace, 0, 0, 0, 0);
}

static int become_root(void)
{
	return (int)syscall(SYS_setresuid, 0, 0, 0);
}

static int use_foreign_numbers(void)
{
	return (int)syscall(-1);
}

static void test_kills_for_what_is_never_needed(void **state)
{
	(void)state;
	assert_killed(start_program);
	assert_killed(trace);
	assert_killed(become_root);
	assert_killed(use_foreign_numbers);
}

static int by_arguments(void)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY);

	if (fd < 0 || !is_refused(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR)))
		return 1;
	return syscall(SYS_dup3, fd, 9, O_CLOEXEC) == 9 && is_refused(syscall(SYS_dup3, fd, 9, 0)) ? 0 : 2;
}

static void test_judges_by_arguments(void **state)
{
	(void)state;
	assert_fine(by_arguments);
}

static int make_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || mprotect(page, 4096, PROT_READ) < 0)
		return 1;
	if (!is_refused(mprotect(page, 4096, PROT_READ | PROT_EXEC)))
		return 2;
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 0 : 3;
}

static void test_lets_nobody_make_code(void **state)
{
	(void)state;
	assert_fine(make_code);
}

static pthread_barrier_t barrier;

static void *try_in_thread(void *data)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* the filter has been installed by another one */
	*(bool *)data = is_refused(syscall(SYS_socket, 1, 1, 0));
	return NULL;
}

static int filter_threads(void)
{
	bool refused = false;
	pthread_t thread;
	int r;

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, try_in_thread, &refused) != 0)
		return 1;
	pthread_barrier_wait(&barrier);
	r = install(CALL_NOT_THERE, true);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return r < 0 ? NO_FILTERS : refused ? 0 : 2;
}

static void test_holds_for_all_threads(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(filter_threads());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_FILTERS) {
		print_message("skipped: a kernel or a container without filters of system calls\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_takes_no_more_than_fits(void **state)
{
	struct call_rule many[2000];
	const struct call_table table = { many, N_ELEMENTS(many) };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(many); i++)
		many[i] = (struct call_rule)ALLOW(read);
	assert_int_equal(call_filter_install(&table, 1, CALL_ALLOWED, false), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_has_no_rule), cmocka_unit_test(test_kills_for_what_is_never_needed),
		cmocka_unit_test(test_judges_by_arguments),      cmocka_unit_test(test_lets_nobody_make_code),
		cmocka_unit_test(test_holds_for_all_threads),    cmocka_unit_test(test_takes_no_more_than_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
