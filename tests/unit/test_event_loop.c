/* SPDX-License-Identifier: MIT */
/* test_event_loop.c - descriptors, timers and signals reach their functions, until the loop ends. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/target/target.h"

enum { MS = 1000000 };

struct fixture {
	struct event_loop loop;
	int pipes[2][2];
	unsigned sources[2], n_served[2];
	unsigned timer, n_expired, n_signals;
};

static void served(struct fixture *fixture, unsigned i)
{
	char byte;

	assert_int_equal(read(fixture->pipes[i][0], &byte, 1), 1);
	fixture->n_served[i]++;
}

static void serve_first(void *data)
{
	served(data, 0);
}

static void serve_second(void *data)
{
	served(data, 1);
}

static void end_after_three(void *data)
{
	struct fixture *fixture = data;

	if (++fixture->n_expired == 3)
		event_loop_end(&fixture->loop);
}

static void end(void *data)
{
	struct fixture *fixture = data;

	event_loop_end(&fixture->loop);
}

/* Whichever is served first ends the other one. */
static void end_second(void *data)
{
	struct fixture *fixture = data;

	served(fixture, 0);
	event_loop_unwatch(&fixture->loop, fixture->sources[1]);
}

static void end_first(void *data)
{
	struct fixture *fixture = data;

	served(fixture, 1);
	event_loop_unwatch(&fixture->loop, fixture->sources[0]);
}

static void end_after_two(void *data, const struct signalfd_siginfo *info)
{
	struct fixture *fixture = data;

	assert_true(info->ssi_signo == SIGUSR1 || info->ssi_signo == SIGUSR2);
	if (++fixture->n_signals == 2)
		event_loop_end(&fixture->loop);
}

static void watch_pipes(struct fixture *fixture, event_serve *first, event_serve *second)
{
	event_serve *functions[] = { first, second };

	for (unsigned i = 0; i < 2; i++) {
		int r = event_loop_watch(&fixture->loop, fixture->pipes[i][0], false, functions[i]);

		assert_in_range(r, 0, EVENT_SOURCES - 1);
		fixture->sources[i] = (unsigned)r;
	}
}

static void watch_timer(struct fixture *fixture, uint64_t first_ns, uint64_t every_ns, event_serve *serve)
{
	int r = event_loop_watch_timer(&fixture->loop, first_ns, every_ns, serve);

	assert_in_range(r, 0, EVENT_SOURCES - 1);
	fixture->timer = (unsigned)r;
}

static int setup(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	assert_int_equal(event_loop_init(&fixture.loop, &fixture), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pipe2(fixture.pipes[i], O_CLOEXEC), 0);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	event_loop_done(&fixture->loop);
	for (int i = 0; i < 4; i++)
		assert_int_equal(close(fixture->pipes[i / 2][i % 2]), 0); /* the loop has not closed it */
	return 0;
}

static void test_each_has_its_function(void **state)
{
	struct fixture *fixture = *state;

	watch_pipes(fixture, serve_first, serve_second);
	watch_timer(fixture, MS, MS, end_after_three);
	assert_int_equal(write(fixture->pipes[0][1], "ab", 2), 2);
	assert_int_equal(write(fixture->pipes[1][1], "c", 1), 1);
	assert_int_equal(event_loop_run(&fixture->loop), 0);
	assert_int_equal(fixture->n_served[0], 2);
	assert_int_equal(fixture->n_served[1], 1);
	assert_int_equal(fixture->n_expired, 3);
}

/* It has an event in the same round, and its function is not called. */
static void test_one_that_is_ended_meanwhile(void **state)
{
	struct fixture *fixture = *state;

	watch_pipes(fixture, end_second, end_first);
	watch_timer(fixture, 20 * MS, 0, end);
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(fixture->pipes[i][1], "a", 1), 1);
	assert_int_equal(event_loop_run(&fixture->loop), 0);
	assert_int_equal(fixture->n_served[0] + fixture->n_served[1], 1);
}

static void test_a_timer_is_set_later(void **state)
{
	struct fixture *fixture = *state;

	watch_timer(fixture, 0, 0, end); /* not armed */
	watch_timer(fixture, 5 * MS, 5 * MS, end_after_three);
	assert_int_equal(event_loop_run(&fixture->loop), 0);
	assert_int_equal(fixture->n_expired, 3);

	fixture->loop.is_over = false;
	assert_int_equal(event_loop_set_timer(&fixture->loop, fixture->timer, 0, 0), 0);
	assert_int_equal(event_loop_set_timer(&fixture->loop, 0, MS, 0), 0);
	assert_int_equal(event_loop_run(&fixture->loop), 0);
	assert_int_equal(fixture->n_expired, 3);
}

static void test_signals(void **state)
{
	struct fixture *fixture = *state;
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &signals, &before), 0);
	assert_in_range(event_loop_watch_signals(&fixture->loop, &signals, end_after_two), 0, EVENT_SOURCES - 1);
	raise(SIGUSR2);
	raise(SIGUSR1);
	assert_int_equal(event_loop_run(&fixture->loop), 0);
	assert_int_equal(fixture->n_signals, 2);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static void test_too_many(void **state)
{
	struct fixture *fixture = *state;
	int fd = -1, r = 0;

	for (int i = 0; i <= EVENT_SOURCES; i++) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(close(fd), 0);
		r = event_loop_watch_timer(&fixture->loop, 0, 0, end);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* the loop has closed the one that it did not take */
	assert_int_equal(event_loop_watch(&fixture->loop, -EPERM, true, end), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_has_its_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_is_ended_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_timer_is_set_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
	};

	return cmocka_run_group_tests_name("event_loop", tests, NULL, NULL);
}
