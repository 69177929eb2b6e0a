/* SPDX-License-Identifier: MIT */
/* Test the wait target of a system call, from made arguments and this process' own memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "base/wait_call.h"

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

static struct wait_call of(long number, uint64_t a, uint64_t b, uint64_t c, struct remote *remote)
{
	const struct proc_call call = { .number = number, .arguments = { a, b, c } };
	struct wait_call wait;

	wait_call_of(&call, getpid(), remote, &wait);
	return wait;
}

static void assert_descriptors(const struct wait_call *wait, const int *wanted, size_t n)
{
	assert_int_equal(wait->kind, WAIT_DESCRIPTORS);
	assert_int_equal(wait->n_descriptors, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(wait->descriptors[i], wanted[i]);
}

static void test_arguments(void **state)
{
	struct wait_call wait = of(SYS_read, 5, 0, 0, NULL);

	(void)state;
	assert_descriptors(&wait, (int[]){ 5 }, 1);
	wait = of(SYS_read, UINT64_MAX, 0, 0, NULL);
	assert_int_equal(wait.n_descriptors, 0);
	wait = of(SYS_read, UINT64_C(0x700000003), 0, 0, NULL); /* an int is the lower half */
	assert_descriptors(&wait, (int[]){ 3 }, 1);
	wait = of(SYS_futex, 0x1000, FUTEX_WAIT_PRIVATE, 2, NULL);
	assert_int_equal(wait.kind, WAIT_FUTEX);
	assert_int_equal(wait.futex, 0x1000);
	assert_int_equal(wait.expected, 2);
	assert_int_equal(of(SYS_wait4, 77, 0, 0, NULL).child, 77);
	assert_int_equal(of(SYS_wait4, UINT64_MAX, 0, 0, NULL).child, 0);
	assert_int_equal(of(SYS_waitid, P_PID, 78, 0, NULL).child, 78);
	assert_int_equal(of(SYS_waitid, P_ALL, 78, 0, NULL).child, 0);
	assert_int_equal(of(SYS_flock, 4, 2, 0, NULL).kind, WAIT_FILE_LOCK);
	assert_int_equal(of(SYS_fcntl, 4, F_SETLKW, 0, NULL).kind, WAIT_FILE_LOCK);
	assert_int_equal(of(SYS_nanosleep, 4, 0, 0, NULL).kind, WAIT_UNKNOWN);
	assert_int_equal(of(-1, 4, 0, 0, NULL).kind, WAIT_UNKNOWN);
}

static void test_sets(void **state)
{
	struct pollfd polled[100];
	struct remote *remote;
	struct wait_call wait;
	fd_set reads, writes;

	(void)state;
	assert_int_equal(remote_open_process(getpid(), &remote), 0);
	for (int i = 0; i < (int)N_ELEMENTS(polled); i++)
		polled[i] = (struct pollfd){ .fd = i == 1 ? -1 : i };
	wait = of(SYS_ppoll, ADDRESS(polled), 4, 0, remote);
	assert_descriptors(&wait, (int[]){ 0, 2, 3 }, 3);
	wait = of(SYS_ppoll, ADDRESS(polled), N_ELEMENTS(polled), 0, remote);
	assert_int_equal(wait.n_descriptors, WAIT_MAX_DESCRIPTORS);
	assert_int_equal(wait.n_more, N_ELEMENTS(polled) - 1 - WAIT_MAX_DESCRIPTORS);
	assert_int_equal(of(SYS_ppoll, 8, 4, 0, remote).kind, WAIT_UNKNOWN);
	assert_int_equal(of(SYS_ppoll, ADDRESS(polled), 4, 0, NULL).kind, WAIT_UNKNOWN);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(3, &reads);
	FD_SET(70, &reads);
	FD_SET(3, &writes);
	FD_SET(5, &writes);
	wait = of(SYS_pselect6, 71, ADDRESS(&reads), ADDRESS(&writes), remote);
	assert_descriptors(&wait, (int[]){ 3, 70, 5 }, 3);
	wait = of(SYS_pselect6, 70, ADDRESS(&reads), 0, remote);
	assert_descriptors(&wait, (int[]){ 3 }, 1);
	remote_free(remote);
}

static void test_epoll(void **state)
{
	int instance = epoll_create1(0), ends[2];
	struct epoll_event event = { .events = EPOLLIN };
	struct wait_call wait;

	(void)state;
	wait = of(SYS_epoll_pwait, (uint64_t)instance, 0, 0, NULL);
	assert_descriptors(&wait, &instance, 1);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(epoll_ctl(instance, EPOLL_CTL_ADD, ends[0], &event), 0);
	wait = of(SYS_epoll_pwait, (uint64_t)instance, 0, 0, NULL);
	assert_descriptors(&wait, ends, 1);
	close(instance);
	close(ends[0]);
	close(ends[1]);
}

static void *lock_it(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

static void test_mutex_owner(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct wait_call call = { .kind = WAIT_FUTEX, .futex = ADDRESS(&mutex), .expected = 2 };
	struct remote *remote;
	pthread_t waiter;
	pid_t owner = 0;

	(void)state;
	assert_int_equal(remote_open_process(getpid(), &remote), 0);
	pthread_mutex_lock(&mutex);
	/* Locked, without waiters. */
	assert_int_equal(wait_call_mutex_owner(&call, remote), 0);
	assert_int_equal(pthread_create(&waiter, NULL, lock_it, &mutex), 0);
	for (int i = 0; i < 1000 && owner == 0; i++) {
		usleep(10000);
		owner = wait_call_mutex_owner(&call, remote);
	}
	assert_int_equal(owner, gettid());
	call.expected = 0;
	assert_int_equal(wait_call_mutex_owner(&call, remote), 0);
	call = (struct wait_call){ .kind = WAIT_FUTEX, .futex = 8, .expected = 2 };
	assert_int_equal(wait_call_mutex_owner(&call, remote), 0);
	pthread_mutex_unlock(&mutex);
	pthread_join(waiter, NULL);
	remote_free(remote);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_mutex_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
