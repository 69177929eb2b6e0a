/* SPDX-License-Identifier: MIT */
/* Test names from another process: equal results, also if that process dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/name_client.h"
#include "src/pipeline/name_wire.h"

enum { MODULE = 5, N_FRAMES = 3 };

/* This program itself, as a module, and functions in it. */
static struct module own;
static struct new_frame frames[N_FRAMES];
static const char *const functions[N_FRAMES] = { "main", "open_own", "wire_send" };

static int open_own(void **state)
{
	struct elf_file *file;
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	(void)state;
	if (n <= 0 || elf_file_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &file) < 0)
		return -1;
	path[n] = '\0';
	own = (struct module){ .path = strdup(path), .opener = getpid(), .elf = file };
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		uint64_t start, n_bytes;

		if (elf_file_symbol(file, functions[i], &start, &n_bytes) < 0)
			return -1;
		frames[i] = (struct new_frame){
			.id = i + 1, .kind = FRAME_NATIVE, .module = &own, .module_id = MODULE, .address = start + 1
		};
	}
	return 0;
}

static int close_own(void **state)
{
	(void)state;
	elf_file_free(own.elf);
	free(own.path);
	return 0;
}

/* The received names, by frame. */
struct came {
	char names[N_FRAMES][128];
	unsigned n, n_nameless;
	int error;
};

static int take_native(void *data, const struct new_frame *frame, const struct symbol *symbols, int n)
{
	struct came *came = data;

	assert_in_range(frame->id, 1, N_FRAMES);
	snprintf(came->names[frame->id - 1], sizeof came->names[0], "%s", symbols[n - 1].name);
	came->n++;
	return came->error;
}

static int take_generated(void *data, const struct new_frame *frame, const struct generated_symbol *symbol)
{
	struct came *came = data;

	assert_in_range(frame->id, 1, N_FRAMES);
	if (symbol)
		snprintf(came->names[frame->id - 1], sizeof came->names[0], "%s", symbol->name);
	came->n_nameless += symbol == NULL;
	return came->error;
}

static int look_up(struct name_client *client, const struct new_frame *wanted, size_t n, struct came *came)
{
	const struct name_taker taker = { take_native, take_generated, came };

	*came = (struct came){ .error = came->error };
	return name_client_look_up(client, wanted, n, &taker);
}

static void put_own(struct name_client *client)
{
	const struct new_module row = { .id = MODULE, .module = &own };

	assert_int_equal(name_client_put_module(client, &row), 0);
}

static struct name_client *start(void)
{
	struct name_client *client;

	assert_int_equal(name_client_start(&client), 0);
	put_own(client);
	return client;
}

static void assert_named(const struct came *came)
{
	assert_int_equal(came->n, N_FRAMES);
	for (size_t i = 0; i < N_FRAMES; i++)
		assert_string_equal(came->names[i], functions[i]);
}

static void assert_by_offset(const struct came *came)
{
	for (size_t i = 0; i < N_FRAMES; i++)
		assert_non_null(strstr(came->names[i], "test_name_client+0x"));
}

static struct pipeline_name_troubles troubles_of(const struct name_client *client)
{
	struct pipeline_name_troubles troubles;

	name_client_troubles(client, &troubles);
	return troubles;
}

static void test_names_come_from_elsewhere(void **state)
{
	struct name_client *client = start();
	struct came came = { 0 };

	(void)state;
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	assert_named(&came);
	assert_int_equal(troubles_of(client).n_deaths, 0);
	name_client_free(client);
}

static void test_an_image_in_memory_has_names(void **state)
{
	CLEANUP(freep) char *image = NULL;
	struct module module = own;
	struct name_client *client;
	struct came came = { 0 };
	const struct new_module row = { .id = MODULE, .module = &module };
	size_t n_bytes;

	(void)state;
	assert_int_equal(read_file("/proc/self/exe", 1 << 28, &image, &n_bytes), 0);
	module.image = image;
	module.n_image_bytes = n_bytes;
	module.elf = NULL;
	assert_int_equal(name_client_start(&client), 0);
	assert_int_equal(name_client_put_module(client, &row), 0);
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	assert_named(&came);
	name_client_free(client);
}

/* ---- The parsing process ---- */

/* Calls a function for each process below this one, which has two generations. */
static unsigned each_below(void (*call)(pid_t pid, unsigned generation))
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		struct proc_stat child, parent;

		/* One that is ending still has its sockets: it is dead as a zombie. Source: do_exit(), kernel/exit.c. */
		if (pid <= 0 || proc_stat_read(pid, 0, &child) < 0 || child.state == 'Z' || child.state == 'X')
			continue;
		if (child.parent == getpid())
			call(pid, 1);
		else if (child.parent > 1 && proc_stat_read(child.parent, 0, &parent) == 0 && parent.parent == getpid())
			call(pid, 2);
		else
			continue;
		n++;
	}
	closedir(folder);
	return n;
}

static unsigned long long status_number(const char *status, const char *key, int base)
{
	const char *value = proc_status_value(status, key);

	assert_non_null(value);
	return strtoull(value, NULL, base);
}

static void check_privilege(pid_t pid, unsigned generation)
{
	CLEANUP(freep) char *status = NULL;
	char path[64];

	(void)generation;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	assert_int_equal(read_file(path, 1 << 16, &status, NULL), 0);
	assert_true(status_number(status, "CapEff", 16) == 0);
	assert_true(status_number(status, "CapPrm", 16) == 0);
	assert_true(status_number(status, "NoNewPrivs", 10) == 1);
	assert_true(status_number(status, "Seccomp", 10) == 2);
}

static void test_whoever_parses_has_no_privilege(void **state)
{
	struct name_client *client = start();
	struct came came = { 0 };

	(void)state;
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	if (troubles_of(client).filter_error != 0) {
		name_client_free(client);
		print_message("skipped: a kernel or a container without filters of system calls\n");
		skip();
	}
	assert_int_equal(each_below(check_privilege), 2);
	name_client_free(client);
	assert_int_equal(each_below(check_privilege), 0); /* and all are gone */
}

static void kill_worker(pid_t pid, unsigned generation)
{
	if (generation == 2)
		assert_int_equal(kill(pid, SIGKILL), 0);
}

static void ignore(pid_t pid, unsigned generation)
{
	(void)pid;
	(void)generation;
}

static void wait_for_death(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 0; i < 5000 && each_below(ignore) > 1; i++)
		nanosleep(&moment, NULL);
	assert_int_equal(each_below(ignore), 1);
}

static void test_one_that_died_is_replaced(void **state)
{
	struct name_client *client = start();
	struct came came = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
		assert_named(&came);
		assert_int_equal(troubles_of(client).n_deaths, i);
		each_below(kill_worker);
		wait_for_death();
	}
	name_client_free(client);
}

static void test_there_is_an_end_to_replacing(void **state)
{
	struct name_client *client = start();
	struct came came = { 0 };

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		each_below(kill_worker);
		wait_for_death();
		assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	}
	assert_by_offset(&came);
	assert_int_equal(each_below(ignore), 1);
	name_client_free(client);
}

/* ---- A parsing process under a file's control ---- */

/* A fake server, which answers the first question for places, or for names of generated code, with given bytes. */
struct liar {
	int socket;
	void (*lie)(int socket);
	pthread_t thread;
};

static void *answer_falsely(void *data)
{
	struct liar *liar = data;
	struct wire wire;

	wire_init(&wire);
	while (wire_receive(liar->socket, 10000, &wire) >= 0 && wire.kind != WIRE_PLACES && wire.kind != WIRE_GENERATED)
		;
	liar->lie(liar->socket);
	close(liar->socket);
	wire_done(&wire);
	return NULL;
}

static struct name_client *start_liar(struct liar *liar, void (*lie)(int socket))
{
	struct name_client *client;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	*liar = (struct liar){ .socket = ends[1], .lie = lie };
	assert_int_equal(name_client_over(ends[0], &client), 0);
	put_own(client);
	assert_int_equal(pthread_create(&liar->thread, NULL, answer_falsely, liar), 0);
	return client;
}

static void send_answer(int socket, uint32_t subject, const char *name)
{
	struct wire_answer answer = { .subject = subject, .n = 1 };
	struct wire_answers answers = { 0 };

	answer.symbols[0].name = name;
	if (wire_put_answer(&answers, &answer) >= 0)
		(void)wire_send(socket, WIRE_ANSWERS, answers.bytes, answers.n, -1);
	free(answers.bytes);
}

static void send_nothing(int socket)
{
	(void)socket;
}

static void send_nonsense(int socket)
{
	static const char nonsense[4096] = "nonsense";

	(void)wire_send(socket, WIRE_ANSWERS, nonsense, sizeof nonsense, -1);
}

static void send_too_much(int socket)
{
	const uint32_t head[] = { WIRE_ANSWERS, UINT32_MAX };

	(void)send(socket, head, sizeof head, MSG_NOSIGNAL);
}

static void name_others(int socket)
{
	send_answer(socket, N_FRAMES, "false");
}

static void send_unknown(int socket)
{
	(void)wire_send(socket, (enum wire_kind)999, NULL, 0, -1);
}

/* An end packet without limits, with an unknown limit, and with an unterminated path. */
static void end_shortly(int socket)
{
	(void)wire_send(socket, WIRE_END, NULL, 0, -1);
}

static void end_for_no_reason(int socket)
{
	const struct wire_limited end = { .n_places = 1, .limit = SYMBOL_N_LIMITS };

	(void)wire_send(socket, WIRE_END, &end, sizeof end, -1);
}

static void end_without_end(int socket)
{
	struct wire_limited end = { .n_places = 1, .limit = SYMBOL_LIMIT_TIME };

	memset(end.path, 'x', sizeof end.path);
	(void)wire_send(socket, WIRE_END, &end, sizeof end, -1);
}

static void test_lies_name_nothing(void **state)
{
	static void (*const lies[])(int socket) = { send_nothing, send_nonsense, send_too_much,     name_others,
						    send_unknown, end_shortly,   end_for_no_reason, end_without_end };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(lies); i++) {
		struct liar liar;
		struct name_client *client = start_liar(&liar, lies[i]);
		struct came came = { 0 };

		assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
		assert_by_offset(&came);
		assert_int_equal(troubles_of(client).n_deaths, 1);
		assert_string_equal(troubles_of(client).path, own.path);
		pthread_join(liar.thread, NULL);
		name_client_free(client);
	}
}

static void answer_one(int socket)
{
	send_answer(socket, 1, "found");
}

static void test_what_was_answered_before_stays(void **state)
{
	struct liar liar;
	struct name_client *client = start_liar(&liar, answer_one);
	struct came came = { 0 };

	(void)state;
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	assert_int_equal(came.n, N_FRAMES);
	assert_string_equal(came.names[1], "found");
	assert_non_null(strstr(came.names[0], "+0x"));
	assert_non_null(strstr(came.names[2], "+0x"));
	pthread_join(liar.thread, NULL);
	name_client_free(client);
}

static void tell_limits(int socket)
{
	static const struct wire_limited end = {
		.n_places = 3, .n_modules = 1, .limit = SYMBOL_LIMIT_MEMORY, .path = "/lib/big.so"
	};

	for (uint32_t i = 0; i < N_FRAMES; i++)
		send_answer(socket, i, "big.so+0x1");
	(void)wire_send(socket, WIRE_END, &end, sizeof end, -1);
}

static void test_limits_are_told(void **state)
{
	struct liar liar;
	struct name_client *client = start_liar(&liar, tell_limits);
	struct symbol_limited limited;
	struct came came = { 0 };

	(void)state;
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	name_client_limited(client, &limited);
	assert_int_equal(limited.n_places, 3);
	assert_int_equal(limited.n_modules, 1);
	assert_int_equal(limited.limit, SYMBOL_LIMIT_MEMORY);
	assert_string_equal(limited.path, "/lib/big.so");
	assert_int_equal(troubles_of(client).n_deaths, 0);
	pthread_join(liar.thread, NULL);
	name_client_free(client);
}

/* The fake server receives the result of its request. */
static int32_t wished;

static void wish_for_a_secret(int socket)
{
	struct wire wire;

	wire_init(&wire);
	wished = 1;
	(void)wire_send(socket, WIRE_WANT_PATH, "/etc/passwd", sizeof "/etc/passwd", -1);
	if (wire_receive(socket, 10000, &wire) < 0 || !wire_struct(&wire, &wished, sizeof wished) || wire.fd >= 0)
		wished = 2;
	(void)wire_send(socket, WIRE_WANT_PATH, "/etc/passwd", 4, -1); /* without an end */
	if (wire_receive(socket, 10000, &wire) < 0 || wire.fd >= 0)
		wished = 3;
	(void)wire_send(socket, WIRE_END, NULL, 0, -1);
	wire_done(&wire);
}

static void test_other_files_are_not_handed_over(void **state)
{
	struct liar liar;
	struct name_client *client = start_liar(&liar, wish_for_a_secret);
	struct came came = { 0 };

	(void)state;
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), 0);
	pthread_join(liar.thread, NULL);
	assert_int_equal(wished, -EACCES);
	name_client_free(client);
}

static void name_another_frame(int socket)
{
	send_answer(socket, 77, "false");
}

static void name_frame_zero(int socket)
{
	send_answer(socket, 0, "false");
}

static void check_generated(void (*lie)(int socket))
{
	const struct new_program program = { .id = 1, .owner = { .pid = 1 } };
	struct new_frame frame = { .id = 2, .kind = FRAME_NATIVE, .program = 1, .address = 0x1000 };
	struct liar liar;
	struct name_client *client = start_liar(&liar, lie);
	struct came came = { 0 };

	assert_int_equal(name_client_put_programs(client, &program, 1, NULL, 0), 0);
	assert_int_equal(look_up(client, &frame, 1, &came), 0);
	pthread_join(liar.thread, NULL);
	assert_string_equal(came.names[1], "");
	assert_int_equal(came.n_nameless, 1);
	assert_true(troubles_of(client).is_of_generated);
	assert_false(name_client_is_open(client));
	name_client_free(client);
}

static void test_generated_code_is_named_by_its_own(void **state)
{
	(void)state;
	check_generated(name_another_frame);
	check_generated(name_frame_zero);
}

/* What goes wrong with the recording is not the other process' fault. */
static void test_the_takers_error_ends_all(void **state)
{
	struct name_client *client = start();
	struct came came = { .error = -ENOSPC };

	(void)state;
	assert_int_equal(look_up(client, frames, N_FRAMES, &came), -ENOSPC);
	assert_int_equal(troubles_of(client).n_deaths, 0);
	name_client_free(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_come_from_elsewhere),
		cmocka_unit_test(test_an_image_in_memory_has_names),
		cmocka_unit_test(test_whoever_parses_has_no_privilege),
		cmocka_unit_test(test_one_that_died_is_replaced),
		cmocka_unit_test(test_there_is_an_end_to_replacing),
		cmocka_unit_test(test_lies_name_nothing),
		cmocka_unit_test(test_what_was_answered_before_stays),
		cmocka_unit_test(test_limits_are_told),
		cmocka_unit_test(test_other_files_are_not_handed_over),
		cmocka_unit_test(test_generated_code_is_named_by_its_own),
		cmocka_unit_test(test_the_takers_error_ends_all),
	};

	return cmocka_run_group_tests(tests, open_own, close_own);
}
