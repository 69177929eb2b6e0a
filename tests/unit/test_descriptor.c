/* SPDX-License-Identifier: MIT */
/* Lines of /proc/net and /proc/locks, and this process' own descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/util.h"

static void test_links(void **state)
{
	(void)state;
	assert_int_equal(descriptor_socket_inode("socket:[12345]"), 12345);
	assert_int_equal(descriptor_socket_inode("socket:[12345"), 0);
	assert_int_equal(descriptor_socket_inode("socket:[12345] (deleted)"), 0);
	assert_int_equal(descriptor_socket_inode("/tmp/socket:[1]"), 0);
	assert_int_equal(descriptor_socket_inode("pipe:[7]"), 0);
	assert_int_equal(descriptor_socket_inode(""), 0);
}

static void test_inet_lines(void **state)
{
	static const struct {
		const char *line, *protocol, *text;
		uint64_t inode; /* 0: it is none */
	} cases[] = {
		{ "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0\n",
		  "tcp", "tcp 127.0.0.1:8080, listening", 4711 },
		{ "  12: 0100007F:C350 0200000A:1538 01 00000000:00000000 00:00000000 00000000  1000        0 99 1 0 20 4\n",
		  "tcp", "tcp 127.0.0.1:50000 to 10.0.0.2:5432", 99 },
		{ " 3: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 5 1\n",
		  "tcp6", "tcp6 [::1]:80, listening", 5 },
		{ " 9: 00000000:14E9 00000000:0000 07 00000000:00000000 00:00000000 00000000   0        0 6 2 0\n",
		  "udp", "udp 0.0.0.0:5353", 6 },
		/* a closed socket has no owner */
		{ "   0: 0100007F:1F90 0100007F:0001 06 00000000:00000000 03:00000000 00000000     0        0 0 1 0 100 0\n",
		  "tcp", NULL, 0 },
		{ "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
		  "tcp", NULL, 0 },
		{ "   0: 0100007F:1F90", "tcp", NULL, 0 },
		{ "   0: 0100:1F90 00000000:0000 0A 0:0 00:0 0 0 0 4711", "tcp", NULL, 0 },
		{ "", "tcp", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		char text[DESCRIPTOR_TEXT_BYTES];
		uint64_t inode = 0;

		assert_int_equal(descriptor_parse_inet(cases[i].line, cases[i].protocol, &inode, text),
				 cases[i].text != NULL);
		if (!cases[i].text)
			continue;
		assert_string_equal(text, cases[i].text);
		assert_int_equal(inode, cases[i].inode);
	}
}

static void test_unix_lines(void **state)
{
	char text[DESCRIPTOR_TEXT_BYTES];
	uint64_t inode;

	(void)state;
	assert_true(descriptor_parse_unix("0000000000000000: 00000002 00000000 00010000 0001 01 20123 /run/a b.sock\n",
					  &inode, text));
	assert_int_equal(inode, 20123);
	assert_string_equal(text, "unix /run/a b.sock");
	assert_true(descriptor_parse_unix("ffff888100a1b000: 00000003 00000000 00000000 0001 03 77\n", &inode, text));
	assert_string_equal(text, "unix socket:[77]");
	assert_true(descriptor_parse_unix("0: 2 0 10000 1 1 8 @hidden\n", &inode, text));
	assert_string_equal(text, "unix @hidden");
	assert_false(descriptor_parse_unix("Num       RefCount Protocol Flags    Type St Inode Path\n", &inode, text));
	assert_false(descriptor_parse_unix("", &inode, text));
}

static void test_lock_lines(void **state)
{
	unsigned major_number, minor_number;
	uint64_t inode;
	pid_t pid;

	(void)state;
	assert_true(descriptor_parse_lock("3: FLOCK  ADVISORY  WRITE 3333 fe:01:1234 0 EOF\n", &pid, &major_number,
					  &minor_number, &inode));
	assert_int_equal(pid, 3333);
	assert_int_equal(major_number, 0xfe);
	assert_int_equal(minor_number, 1);
	assert_int_equal(inode, 1234);
	assert_true(descriptor_parse_lock("1: POSIX  ADVISORY  READ  7 00:2e:9 0 99\n", &pid, &major_number,
					  &minor_number, &inode));
	/* who waits, and who is in no PID namespace of ours */
	assert_false(descriptor_parse_lock("3: -> FLOCK  ADVISORY  WRITE 3333 fe:01:1234 0 EOF\n", &pid, &major_number,
					   &minor_number, &inode));
	assert_false(descriptor_parse_lock("3: OFDLCK ADVISORY  WRITE -1 fe:01:1234 0 EOF\n", &pid, &major_number,
					   &minor_number, &inode));
	assert_false(descriptor_parse_lock("", &pid, &major_number, &minor_number, &inode));
}

static void assert_described(int descriptor, struct sockets *sockets, const char *wanted)
{
	char text[DESCRIPTOR_TEXT_BYTES];

	assert_int_equal(descriptor_describe(getpid(), descriptor, sockets, text), 0);
	assert_string_equal(text, wanted);
}

static void test_own_sockets(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listening = socket(AF_INET, SOCK_STREAM, 0), connected = socket(AF_INET, SOCK_STREAM, 0);
	CLEANUP(sockets_freep) struct sockets *sockets = NULL;
	socklen_t n_bytes = sizeof address;
	struct sockaddr_in own;
	char wanted[DESCRIPTOR_TEXT_BYTES];

	(void)state;
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &n_bytes), 0);
	assert_int_equal(connect(connected, (struct sockaddr *)&address, sizeof address), 0);
	n_bytes = sizeof own;
	assert_int_equal(getsockname(connected, (struct sockaddr *)&own, &n_bytes), 0);
	assert_int_equal(sockets_new(getpid(), &sockets), 0);
	snprintf(wanted, sizeof wanted, "tcp 127.0.0.1:%u, listening", ntohs(address.sin_port));
	assert_described(listening, sockets, wanted);
	snprintf(wanted, sizeof wanted, "tcp 127.0.0.1:%u to 127.0.0.1:%u", ntohs(own.sin_port),
		 ntohs(address.sin_port));
	assert_described(connected, sockets, wanted);
	assert_true(sockets_listen_at(sockets, ntohs(address.sin_port)));
	assert_false(sockets_listen_at(sockets, ntohs(own.sin_port)));
	close(listening);
	/* Known until they are read again. */
	assert_true(sockets_listen_at(sockets, ntohs(address.sin_port)));
	sockets_renew(sockets);
	assert_int_equal(descriptor_describe(getpid(), connected, sockets, wanted), 0);
	assert_false(sockets_listen_at(sockets, ntohs(address.sin_port)));
	assert_false(sockets_listen_at(sockets, 65536));
	close(connected);
}

static void test_own_files(void **state)
{
	char path[] = "/tmp/test_descriptor_XXXXXX", text[DESCRIPTOR_TEXT_BYTES];
	int file = mkstemp(path), ends[2];

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_described(file, NULL, path);
	assert_int_equal(descriptor_describe(getpid(), ends[0], NULL, text), 0);
	assert_int_equal(strncmp(text, "pipe:[", 6), 0);
	assert_int_equal(descriptor_lock_holder(getpid(), file), 0);
	assert_int_equal(flock(file, LOCK_EX), 0);
	assert_int_equal(descriptor_lock_holder(getpid(), file), getpid());
	close(file);
	unlink(path);
	assert_int_equal(descriptor_describe(getpid(), file, NULL, text), -ENOENT);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),       cmocka_unit_test(test_inet_lines),
		cmocka_unit_test(test_unix_lines),  cmocka_unit_test(test_lock_lines),
		cmocka_unit_test(test_own_sockets), cmocka_unit_test(test_own_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
