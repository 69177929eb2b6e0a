/* SPDX-License-Identifier: MIT */
/* test_task_ids.c - threads of real processes in PID namespaces, as they and as we see them.
 *
 * The whole program runs in a PID namespace of its own, so that nobody else takes
 * ids there, and one can be given a second time. Its targets run in further ones
 * inside. A thread knows both of its ids: gettid(2) is its own, and our /proc,
 * which it sees too, calls it what we call it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/task_ids.h"
#include "base/util.h"

/* More than are remembered. */
enum { N_MANY_THREADS = 150 };

enum { MAX_ATTEMPTS = 5000 }; /* one a millisecond */

static int namespace_error; /* why this program has no namespace of its own; 0: it has one */

/* ---- The target ---- */

struct seen {
	pid_t pid, tid; /* as we see them */
	pid_t own;      /* as the thread itself does */
};

struct target {
	pid_t child;    /* our child; ends with the target, which is it or a descendant */
	int begin, end; /* a byte written begins a thread, ends one */
	int reports;    /* a struct seen of each that has begun */
	struct seen main;
};

static int end_of_threads;
static int reports_of_threads;

static void report(void)
{
	struct seen seen = { .own = gettid() };
	char link[64];
	ssize_t n = readlink("/proc/thread-self", link, sizeof link - 1);

	if (n < 0)
		_exit(1);
	link[n] = '\0';
	if (sscanf(link, "%d/task/%d", &seen.pid, &seen.tid) != 2 ||
	    write(reports_of_threads, &seen, sizeof seen) != sizeof seen)
		_exit(1);
}

static void *thread_main(void *unused)
{
	char byte;

	(void)unused;
	report();
	if (read(end_of_threads, &byte, 1) != 1)
		_exit(1);
	return NULL;
}

static void target_main(int begin)
{
	char byte;

	report();
	while (read(begin, &byte, 1) == 1) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, thread_main, NULL) != 0 || pthread_detach(thread) != 0)
			_exit(1);
	}
	_exit(0);
}

/* The innermost child continues; the outer ones wait, and end with their parents. */
static void enter_namespaces(unsigned n_levels)
{
	for (unsigned i = 0; i < n_levels; i++) {
		pid_t child;

		if (unshare(CLONE_NEWPID) < 0)
			_exit(1);
		child = fork();
		if (child < 0)
			_exit(1);
		if (child > 0) {
			waitpid(child, NULL, 0);
			_exit(0);
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
}

static struct seen next_report(const struct target *target)
{
	struct seen seen;

	assert_int_equal(read(target->reports, &seen, sizeof seen), sizeof seen);
	return seen;
}

static void start(struct target *target, unsigned n_levels)
{
	int begin[2], end[2], reports[2];

	assert_int_equal(pipe2(begin, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	assert_int_equal(pipe2(reports, O_CLOEXEC), 0);
	target->child = fork();
	assert_true(target->child >= 0);
	if (target->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(begin[1]);
		end_of_threads = end[0];
		reports_of_threads = reports[1];
		enter_namespaces(n_levels);
		target_main(begin[0]);
	}
	close(begin[0]);
	close(end[0]);
	close(reports[1]);
	target->begin = begin[1];
	target->end = end[1];
	target->reports = reports[0];
	target->main = next_report(target);
}

static void finish(struct target *target)
{
	kill(target->main.pid, SIGKILL);
	waitpid(target->child, NULL, 0);
	close(target->begin);
	close(target->end);
	close(target->reports);
}

static struct seen begin_thread(const struct target *target)
{
	assert_int_equal(write(target->begin, "", 1), 1);
	return next_report(target);
}

static bool is_there(const struct seen *thread)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d", (int)thread->pid, (int)thread->tid);
	return access(path, F_OK) == 0;
}

/* Of several threads, it is any. */
static void end_thread(const struct target *target, const struct seen *thread)
{
	assert_int_equal(write(target->end, "", 1), 1);
	while (is_there(thread))
		usleep(1000);
}

static void need_namespace(void)
{
	if (namespace_error != 0) {
		print_message("SKIP: no PID namespace can be made: %s\n", strerror(namespace_error));
		skip();
	}
}

static size_t n_open_files(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static pid_t own_of(struct task_ids *ids, pid_t tid)
{
	pid_t own = -1;

	assert_int_equal(task_ids_own(ids, tid, &own), 0);
	return own;
}

/* ---- The tests ---- */

/* The lookup opens no file, so each sample can use it. */
static void in_our_namespace_ids_are_what_we_see(void **state)
{
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;
	size_t n_before = n_open_files();

	(void)state;
	assert_int_equal(task_ids_new(getpid(), &ids), 0);
	assert_int_equal(own_of(ids, getpid()), getpid());
	assert_int_equal(own_of(ids, 1234567), 1234567);
	assert_int_equal(n_open_files(), n_before);
}

static void a_process_that_is_gone_has_none(void **state)
{
	struct task_ids *ids = NULL;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(task_ids_new(child, &ids), -ESRCH);
	assert_null(ids);
	task_ids_free(NULL);
}

static void check_threads(unsigned n_levels)
{
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;
	struct seen threads[8];
	struct target target;

	start(&target, n_levels);
	assert_int_equal(task_ids_new(target.main.pid, &ids), 0);
	for (size_t i = 0; i < N_ELEMENTS(threads); i++) {
		threads[i] = begin_thread(&target);
		assert_int_equal(threads[i].pid, target.main.pid);
		assert_int_not_equal(threads[i].tid, threads[i].own);
	}
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(own_of(ids, target.main.tid), 1);
		for (size_t i = 0; i < N_ELEMENTS(threads); i++)
			assert_int_equal(own_of(ids, threads[i].tid), threads[i].own);
	}
	finish(&target);
}

static void threads_in_a_namespace(void **state)
{
	(void)state;
	need_namespace();
	check_threads(1);
}

/* Each thread then has three ids, and the innermost is its own. */
static void threads_in_a_namespace_in_a_namespace(void **state)
{
	(void)state;
	need_namespace();
	check_threads(2);
}

static void who_is_no_thread_of_the_process_has_none(void **state)
{
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;
	struct target target;
	struct seen thread;
	pid_t own = 77;

	(void)state;
	need_namespace();
	start(&target, 1);
	assert_int_equal(task_ids_new(target.main.pid, &ids), 0);
	assert_int_equal(task_ids_own(ids, getpid(), &own), -ESRCH);
	thread = begin_thread(&target);
	assert_int_equal(own_of(ids, thread.tid), thread.own);
	end_thread(&target, &thread);
	assert_int_equal(task_ids_own(ids, thread.tid, &own), -ESRCH);
	assert_int_equal(own_of(ids, target.main.tid), 1);
	finish(&target);
	assert_int_equal(task_ids_own(ids, target.main.tid, &own), -ESRCH);
	assert_int_equal(own, 77);
}

/* The next id given out in this namespace is this one, if it is free. */
static int want_next_id(pid_t id)
{
	CLEANUP(closep) int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	char text[16];
	int n;

	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof text, "%d", (int)id - 1);
	return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

/* A thread is gone from /proc before its id is free: on a busy machine for many milliseconds. */
static int begin_thread_as(const struct target *target, pid_t id, struct seen *ret)
{
	for (unsigned i = 0; i < MAX_ATTEMPTS; i++) {
		int r = want_next_id(id);

		if (r < 0)
			return r;
		*ret = begin_thread(target);
		if (ret->tid == id)
			return 0;
		end_thread(target, ret);
		usleep(1000);
	}
	return -EBUSY;
}

static void an_id_that_is_given_again_means_the_new_thread(void **state)
{
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;
	struct target target;
	struct seen first, second = { 0 };
	int r;

	(void)state;
	need_namespace();
	start(&target, 1);
	assert_int_equal(task_ids_new(target.main.pid, &ids), 0);
	first = begin_thread(&target);
	assert_int_equal(own_of(ids, first.tid), first.own);
	end_thread(&target, &first);
	r = begin_thread_as(&target, first.tid, &second);
	if (r == -EACCES || r == -EPERM || r == -ENOENT) {
		finish(&target);
		print_message("SKIP: ns_last_pid cannot be set: %s\n", strerror(-r));
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_not_equal(second.own, first.own);
	assert_int_equal(own_of(ids, second.tid), second.own);
	finish(&target);
}

static void many_threads_take_turns(void **state)
{
	size_t n_before = n_open_files(), n_most;
	struct seen threads[N_MANY_THREADS];
	struct target target;
	struct task_ids *ids;

	(void)state;
	need_namespace();
	start(&target, 1);
	n_most = n_open_files() + N_MANY_THREADS / 2;
	assert_int_equal(task_ids_new(target.main.pid, &ids), 0);
	for (size_t i = 0; i < N_ELEMENTS(threads); i++)
		threads[i] = begin_thread(&target);
	for (unsigned round = 0; round < 2; round++)
		for (size_t i = 0; i < N_ELEMENTS(threads); i++)
			assert_int_equal(own_of(ids, threads[i].tid), threads[i].own);
	assert_true(n_open_files() < n_most);
	task_ids_free(ids);
	finish(&target);
	assert_int_equal(n_open_files(), n_before);
}

static int run_all(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_our_namespace_ids_are_what_we_see),
		cmocka_unit_test(a_process_that_is_gone_has_none),
		cmocka_unit_test(threads_in_a_namespace),
		cmocka_unit_test(threads_in_a_namespace_in_a_namespace),
		cmocka_unit_test(who_is_no_thread_of_the_process_has_none),
		cmocka_unit_test(an_id_that_is_given_again_means_the_new_thread),
		cmocka_unit_test(many_threads_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The namespace has its own /proc. */
static int run_in_namespace(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0) {
		perror("mount /proc");
		return 1;
	}
	return run_all();
}

int main(void)
{
	pid_t child;
	int status;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0) {
		namespace_error = errno;
		return run_all();
	}
	child = fork();
	if (child == 0)
		return run_in_namespace();
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		return 1;
	}
	/* Without the namespace's first process no other can be made, not even a sanitizer's at exit. */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
