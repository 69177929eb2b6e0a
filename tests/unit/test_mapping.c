/* SPDX-License-Identifier: MIT */
/* test_mapping.c - a file that is truncated while it is mapped ends no process. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>

#include "base/mapping.h"
#include "base/util.h"

enum { N_PAGES = 16 };

static int make_file(size_t n_bytes)
{
	char path[] = "/tmp/test_mapping.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	for (size_t i = 0; i < n_bytes; i++)
		assert_int_equal(write(fd, "x", 1), 1);
	return fd;
}

static size_t page(void)
{
	return (size_t)getpagesize();
}

static void what_was_cut_off_reads_as_zeros(void **state)
{
	CLEANUP(closep) int fd = make_file(N_PAGES * page() - 100);
	CLEANUP(file_mapping_freep) struct file_mapping *mapping = NULL;
	const volatile uint8_t *bytes;
	size_t n_bytes;

	(void)state;
	assert_int_equal(file_mapping_new(fd, &mapping), 0);
	bytes = file_mapping_bytes(mapping, &n_bytes);
	assert_int_equal(n_bytes, N_PAGES * page() - 100);
	assert_int_equal(bytes[n_bytes - 1], 'x');
	assert_int_equal(ftruncate(fd, (off_t)(4 * page())), 0);
	assert_false(file_mapping_is_cut(mapping));
	assert_int_equal(bytes[10 * page() + 5], 0);
	assert_true(file_mapping_is_cut(mapping));
	assert_int_equal(bytes[n_bytes - 1], 0);
	assert_int_equal(bytes[4 * page()], 0);
	assert_int_equal(bytes[4 * page() - 1], 'x');
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(bytes[0], 0);
}

/* Otherwise each access behind the end would add a kernel mapping, and their number is limited. */
static void it_falls_into_few_parts(void **state)
{
	enum { MANY_PAGES = 100000 };
	CLEANUP(closep) int fd = make_file(1);
	CLEANUP(file_mapping_freep) struct file_mapping *mapping = NULL;
	const volatile uint8_t *bytes;
	size_t n_bytes;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)(MANY_PAGES * page())), 0);
	assert_int_equal(file_mapping_new(fd, &mapping), 0);
	bytes = file_mapping_bytes(mapping, &n_bytes);
	assert_int_equal(ftruncate(fd, (off_t)page()), 0);
	for (size_t i = MANY_PAGES - 1; i > 2; i -= 2)
		assert_int_equal(bytes[i * page()], 0);
	assert_int_equal(bytes[0], 'x');
}

static void *map_and_free(void *data)
{
	CLEANUP(closep) int fd = make_file(3 * page());

	for (unsigned i = 0; i < 2000; i++) {
		CLEANUP(file_mapping_freep) struct file_mapping *mapping = NULL;
		size_t n_bytes;

		assert_int_equal(file_mapping_new(fd, &mapping), 0);
		assert_int_equal(*(const volatile char *)file_mapping_bytes(mapping, &n_bytes), 'x');
	}
	return data;
}

static void others_map_meanwhile(void **state)
{
	CLEANUP(closep) int fd = make_file(N_PAGES * page());
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, map_and_free, NULL), 0);
	for (unsigned i = 0; i < 500; i++) {
		CLEANUP(file_mapping_freep) struct file_mapping *mapping = NULL;
		const volatile uint8_t *bytes;
		size_t n_bytes;

		assert_int_equal(ftruncate(fd, (off_t)(N_PAGES * page())), 0);
		assert_int_equal(file_mapping_new(fd, &mapping), 0);
		bytes = file_mapping_bytes(mapping, &n_bytes);
		assert_int_equal(ftruncate(fd, 1), 0);
		assert_int_equal(bytes[(i % (N_PAGES - 1) + 1) * page()], 0);
		assert_true(file_mapping_is_cut(mapping));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void what_a_library_maps_is_adopted(void **state)
{
	CLEANUP(closep) int fd = make_file(2 * page());
	struct file_mapping *mapping;
	volatile uint8_t *bytes = mmap(NULL, 2 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	(void)state;
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(file_mapping_adopt((char *)bytes + 1, page(), &mapping), -EINVAL);
	assert_int_equal(file_mapping_adopt((void *)bytes, 2 * page(), &mapping), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(bytes[page()], 0);
	bytes[page()] = 1; /* libdw writes relocations */
	assert_true(file_mapping_is_cut(mapping));
	file_mapping_free(mapping);
	munmap((void *)bytes, 2 * page());
}

static void a_guard_protects_what_nobody_has_told_of(void **state)
{
	CLEANUP(closep) int fd = make_file(2 * page());
	CLEANUP(file_mapping_freep) struct file_mapping *mapping = NULL;
	const volatile uint8_t *bytes = mmap(NULL, 2 * page(), PROT_READ, MAP_PRIVATE, fd, 0);
	struct file_guard guard, inner;

	(void)state;
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(file_mapping_new(fd, &mapping), 0);
	file_guard_enter(&guard);
	assert_int_equal(bytes[0], 'x');
	assert_int_equal(ftruncate(fd, 0), 0);
	file_guard_enter(&inner);
	assert_false(file_guard_leave(&inner));
	assert_int_equal(bytes[page()], 0);
	assert_true(file_guard_leave(&guard));
	file_guard_enter(&guard);
	assert_false(file_guard_leave(&guard));
	munmap((void *)bytes, 2 * page());
}

static void a_guard_reports_what_another_thread_met(void **state)
{
	struct file_guard guard, inner;

	(void)state;
	file_guard_enter(&guard);
	file_guard_enter(&inner);
	file_guard_cut();
	assert_true(file_guard_leave(&inner));
	assert_true(file_guard_leave(&guard));
	file_guard_enter(&guard);
	assert_false(file_guard_leave(&guard));
}

/* ---- Other faults still end the process ---- */

static int ending_of(void (*child)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGBUS, SIG_DFL); /* cmocka has set its own */
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* A shared mapping: zeros here would hide the loss from both processes. */
static void look_at_a_foreign_mapping(void)
{
	int fd = make_file(2 * page());
	const volatile uint8_t *bytes = mmap(NULL, 2 * page(), PROT_READ, MAP_SHARED, fd, 0);
	struct file_mapping *mapping;

	if (bytes == MAP_FAILED || file_mapping_new(fd, &mapping) < 0 || ftruncate(fd, 0) < 0)
		_exit(1);
	(void)bytes[page()];
}

static void be_told(void)
{
	int fd = make_file(page());
	struct file_mapping *mapping;

	if (file_mapping_new(fd, &mapping) < 0)
		_exit(1);
	raise(SIGBUS);
}

static void exit_with_7(int number)
{
	(void)number;
	_exit(7);
}

/* In a new process, since cmocka sets its own handler for each test. */
static void a_handler_of_before_is_called(void **state)
{
	char program[] = "/proc/self/exe";

	(void)state;
	if (fork() == 0) {
		execl(program, program, "--handler", NULL);
		_exit(1);
	}
	for (int status; wait(&status) > 0;)
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void what_is_not_ours_ends_the_process(void **state)
{
	int status = ending_of(look_at_a_foreign_mapping);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = ending_of(be_told);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_cut_off_reads_as_zeros),
		cmocka_unit_test(it_falls_into_few_parts),
		cmocka_unit_test(others_map_meanwhile),
		cmocka_unit_test(what_a_library_maps_is_adopted),
		cmocka_unit_test(a_guard_protects_what_nobody_has_told_of),
		cmocka_unit_test(a_guard_reports_what_another_thread_met),
		cmocka_unit_test(what_is_not_ours_ends_the_process),
		cmocka_unit_test(a_handler_of_before_is_called),
	};

	if (argc == 2 && strcmp(argv[1], "--handler") == 0) {
		signal(SIGBUS, exit_with_7);
		look_at_a_foreign_mapping();
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
