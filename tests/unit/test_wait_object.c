/* SPDX-License-Identifier: MIT */
/* The names of the objects of waits: without numbers that each connection or pipe has for itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/wait_object.h"

static void test_shorter(void **state)
{
	static const char *const cases[][2] = {
		{ "/var/log/app.log", "[/var/log/app.log]" },
		{ "/tmp/x [1] to y (deleted)", "[/tmp/x [1] to y]" },
		{ "/", "[/]" },
		{ "pipe:[123]", "[pipe]" },
		{ "socket:[123]", "[socket]" },
		{ "unix socket:[123]", "[unix socket]" },
		{ "unix /run/app to me.sock", "[unix /run/app to me.sock]" },
		{ "anon_inode:[eventpoll]", "" },
		{ "anon_inode:[timerfd]", "[timerfd]" },
		{ "anon_inode:inotify", "[inotify]" },
		{ "tcp 127.0.0.1:8000, listening", "[tcp 127.0.0.1:8000, listening]" },
		{ "tcp6 [::]:8000, listening", "[tcp6 [::]:8000, listening]" },
		{ "tcp 10.0.0.1:51312 to 10.0.0.2:5432", "[tcp to 10.0.0.2:5432]" },
		{ "tcp6 [::1]:51312 to [::1]:5432", "[tcp6 to [::1]:5432]" },
		{ "udp 10.0.0.1:51312 to 10.0.0.2:53", "[udp to 10.0.0.2:53]" },
		{ "udp 0.0.0.0:53", "[udp 0.0.0.0:53]" },
		{ "tcp  to ", "[tcp to ]" },
		{ "", "[]" },
	};
	char to[WAIT_OBJECT_BYTES], longest[DESCRIPTOR_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		wait_object_shorten(cases[i][0], NULL, to);
		assert_string_equal(to, cases[i][1]);
	}
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	wait_object_shorten(longest, NULL, to);
	assert_in_range(strlen(to), 100, sizeof to - 1);
}

struct fixture {
	struct wait_objects objects;
	struct thread_names names;
	struct process process;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	fixture->process.pid = getpid();
	*state = fixture;
	return remote_open_process(getpid(), &fixture->process.remote);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	wait_objects_done(&fixture->objects);
	thread_names_done(&fixture->names);
	remote_freep(&fixture->process.remote);
	free(fixture);
	return 0;
}

static void assert_object(struct fixture *fixture, enum thread_state wait, const struct proc_call *call,
			  const char *wanted)
{
	const struct waiter waiter = { &fixture->process, getpid(), wait, call, NULL, 0 };
	char to[WAIT_OBJECT_BYTES];

	fixture->objects.left_ns = 1000000; /* time for it */
	assert_int_equal(wait_object_read(&fixture->objects, &fixture->names, &waiter, to), 0);
	assert_string_equal(to, wanted);
}

static struct proc_call reading(int descriptor)
{
	return (struct proc_call){ .number = SYS_read, .arguments = { (uint64_t)descriptor } };
}

/* Both ends of a connection of our own: the client names the server, the server names the client's host. */
static void test_connections(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listening = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), server;
	struct fixture *fixture = *state;
	socklen_t n_bytes = sizeof address;
	struct proc_call call;
	char wanted[64];

	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &n_bytes), 0);
	snprintf(wanted, sizeof wanted, "[tcp 127.0.0.1:%u, listening]", ntohs(address.sin_port));
	call = (struct proc_call){ .number = SYS_accept4, .arguments = { (uint64_t)listening } };
	assert_object(fixture, STATE_IO, &call, wanted);
	/* These are newer than what is known of sockets. */
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
	server = accept(listening, NULL, NULL);
	assert_true(server >= 0);
	call = reading(client);
	fixture->objects.sockets[0].next_ns = UINT64_MAX;
	assert_object(fixture, STATE_IO, &call, "[socket]");
	fixture->objects.sockets[0].next_ns = 0;
	snprintf(wanted, sizeof wanted, "[tcp to 127.0.0.1:%u]", ntohs(address.sin_port));
	assert_object(fixture, STATE_IO, &call, wanted);
	call = reading(server);
	snprintf(wanted, sizeof wanted, "[tcp 127.0.0.1:%u from 127.0.0.1]", ntohs(address.sin_port));
	assert_object(fixture, STATE_IO, &call, wanted);
	close(server);
	close(client);
	close(listening);
}

static void test_files(void **state)
{
	char path[] = "/tmp/test_wait_object_XXXXXX", wanted[64];
	struct fixture *fixture = *state;
	int file = mkstemp(path), ends[2];
	struct proc_call call;
	struct {
		int fd;
		short events, returned;
	} polled[2];

	assert_true(file >= 0);
	snprintf(wanted, sizeof wanted, "[%s]", path);
	call = reading(file);
	assert_object(fixture, STATE_IO, &call, wanted);
	call = (struct proc_call){ .number = SYS_flock, .arguments = { (uint64_t)file, LOCK_EX } };
	assert_object(fixture, STATE_LOCK, &call, wanted);
	assert_int_equal(pipe(ends), 0);
	call = reading(ends[0]);
	assert_object(fixture, STATE_IO, &call, "[pipe]");
	polled[0].fd = ends[0];
	polled[1].fd = file;
	call = (struct proc_call){ .number = SYS_ppoll, .arguments = { (uint64_t)(uintptr_t)polled, 2 } };
	assert_object(fixture, STATE_IO, &call, "[pipe, and 1 more]");
	/* None, and closed. */
	call.arguments[1] = 0;
	assert_object(fixture, STATE_IO, &call, "");
	close(ends[0]);
	call = reading(ends[0]);
	assert_object(fixture, STATE_IO, &call, "");
	close(ends[1]);
	close(file);
	unlink(path);
}

/* The fields of a mutex that a thread waits for, as wait_call_mutex_owner() has them. */
static void test_mutex(void **state)
{
	uint32_t mutex[8] = { 2, 1, (uint32_t)getpid(), 1, 0 };
	const struct proc_call call = { .number = SYS_futex, .arguments = { (uint64_t)(uintptr_t)mutex, 0, 2 } };
	struct fixture *fixture = *state;

	assert_object(fixture, STATE_LOCK, &call, "[held by test_wait_objec]"); /* the kernel's 15 bytes of a name */
	mutex[2] = (1 << 22) + 1;                                               /* no thread has that number */
	assert_object(fixture, STATE_LOCK, &call, "");
	mutex[0] = 0;
	assert_object(fixture, STATE_LOCK, &call, "");
}

/* Other waits have none, and neither have those that there is no time for. */
static void test_none(void **state)
{
	struct fixture *fixture = *state;
	const struct proc_call call = reading(0);
	const struct waiter waiter = { &fixture->process, getpid(), STATE_IO, &call, NULL, 0 };
	char to[WAIT_OBJECT_BYTES];

	assert_object(fixture, STATE_SLEEP, &call, "");
	assert_object(fixture, STATE_RUNNABLE, &call, "");
	assert_object(fixture, STATE_GIL, &call, "");
	fixture->objects.filled_ns = monotonic_ns();
	fixture->objects.left_ns = -1000000000;
	assert_int_equal(wait_object_read(&fixture->objects, &fixture->names, &waiter, to), 0);
	assert_string_equal(to, "");
	/* 200 seconds later there is. */
	fixture->objects.filled_ns -= UINT64_C(200000000000);
	assert_int_equal(wait_object_read(&fixture->objects, &fixture->names, &waiter, to), 0);
	assert_string_not_equal(to, "");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shorter), WITH_FIXTURE(test_connections), WITH_FIXTURE(test_files),
		WITH_FIXTURE(test_mutex),       WITH_FIXTURE(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
