/* SPDX-License-Identifier: MIT */
/* Test ELF files read by another process: equal results, also if that process dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/cfi_client.h"
#include "src/pipeline/cfi_wire.h"

/*
 * A liar that must be given up costs a test SHORT_MS, during which a busy machine may not let it run: an honest answer
 * that takes a hundredth of the patience is slow, and three patiences of slow ones are too much.
 */
enum { PATIENCE_MS = 10000, SHORT_MS = 2000, MAX_DEATHS = 8 };

static struct cfi_client *start(void)
{
	struct cfi_client *client;

	assert_int_equal(cfi_client_start(PATIENCE_MS, &client), 0);
	return client;
}

static struct pipeline_cfi_troubles troubles_of(const struct cfi_client *client)
{
	struct pipeline_cfi_troubles troubles;

	cfi_client_troubles(client, &troubles);
	return troubles;
}

/* This program itself. */
static int open_own(const struct cfi_client *client, struct elf_file **ret)
{
	CLEANUP(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int r;

	r = elf_file_open_through(cfi_client_reader(client), "own", fd, NULL, 0, ret);
	if (r >= 0)
		TAKE_FD(fd);
	return r;
}

static struct elf_file *open_here(void)
{
	struct elf_file *file;

	assert_int_equal(elf_file_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &file), 0);
	return file;
}

static void assert_same_file(struct elf_file *ours, struct elf_file *theirs)
{
	uint64_t value, size, own_value, own_size;
	struct elf_segment a, b;
	size_t n = 0;

	assert_null(elf_file_elf(theirs));
	assert_int_equal(elf_file_machine(ours), elf_file_machine(theirs));
	assert_true(build_id_equal(elf_file_build_id(ours), elf_file_build_id(theirs)));
	for (; elf_file_segment(ours, n, &a); n++) {
		assert_true(elf_file_segment(theirs, n, &b));
		assert_true(a.address == b.address && a.file_offset == b.file_offset &&
			    a.n_file_bytes == b.n_file_bytes && a.n_memory_bytes == b.n_memory_bytes &&
			    a.writable == b.writable && a.executable == b.executable);
	}
	assert_true(n > 1);
	assert_false(elf_file_segment(theirs, n, &b));
	assert_int_equal(elf_file_symbol(ours, "main", &own_value, &own_size), 0);
	assert_int_equal(elf_file_symbol(theirs, "main", &value, &size), 0);
	assert_true(value == own_value && size == own_size);
	assert_int_equal(elf_file_symbol(theirs, "no such symbol", &value, &size), -ENOENT);
	assert_int_equal(elf_file_function(ours, own_value + 1, &own_value, &own_size), 0);
	assert_int_equal(elf_file_function(theirs, own_value + 1, &value, &size), 0);
	assert_true(value == own_value && size == own_size);
	assert_int_equal(elf_file_section(ours, ".text", &own_value, &own_size), 0);
	assert_int_equal(elf_file_section(theirs, ".text", &value, &size), 0);
	assert_true(value == own_value && size == own_size);
	assert_int_equal(elf_file_section(theirs, ".nowhere", &value, &size), -ENOENT);
}

static void test_it_is_read_as_well(void **state)
{
	struct elf_file *ours = open_here(), *theirs;
	struct cfi_client *client = start();

	(void)state;
	assert_int_equal(open_own(client, &theirs), 0);
	assert_same_file(ours, theirs);
	assert_int_equal(troubles_of(client).n_deaths, 0);
	elf_file_free(theirs);
	elf_file_free(ours);
	cfi_client_free(client);
}

static void test_so_is_an_image_in_memory(void **state)
{
	CLEANUP(freep) char *image = NULL;
	struct elf_file *ours = open_here(), *theirs;
	struct cfi_client *client = start();
	size_t n_bytes;

	(void)state;
	assert_int_equal(read_file("/proc/self/exe", 1 << 28, &image, &n_bytes), 0);
	assert_int_equal(elf_file_open_through(cfi_client_reader(client), "image", -1, image, n_bytes, &theirs), 0);
	assert_same_file(ours, theirs);
	elf_file_free(theirs);
	assert_int_equal(elf_file_open_through(cfi_client_reader(client), "cut", -1, image, 3, &theirs), -ENOEXEC);
	assert_int_equal(elf_file_open_through(cfi_client_reader(client), "empty", -1, image, 0, &theirs), -ENOEXEC);
	assert_int_equal(troubles_of(client).n_deaths, 0);
	elf_file_free(ours);
	cfi_client_free(client);
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
	struct cfi_client *client = start();
	struct elf_file *file;

	(void)state;
	assert_int_equal(open_own(client, &file), 0);
	if (troubles_of(client).filter_error == 0)
		assert_int_equal(each_below(check_privilege), 2);
	elf_file_free(file);
	cfi_client_free(client);
	assert_int_equal(each_below(check_privilege), 0); /* and all are gone */
}

static void kill_worker(pid_t pid, unsigned generation)
{
	if (generation == 2)
		assert_int_equal(kill(pid, SIGKILL), 0);
}

static void stop_worker(pid_t pid, unsigned generation)
{
	if (generation == 2)
		assert_int_equal(kill(pid, SIGSTOP), 0);
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

/* A death between two questions is no file's fault: files are sent to the next one, and read on. */
static void test_one_that_died_is_replaced(void **state)
{
	struct elf_file *ours = open_here(), *theirs;
	struct cfi_client *client = start();

	(void)state;
	assert_int_equal(open_own(client, &theirs), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_same_file(ours, theirs);
		assert_int_equal(troubles_of(client).n_deaths, i);
		each_below(kill_worker);
		wait_for_death();
	}
	assert_null(troubles_of(client).path);
	elf_file_free(theirs);
	elf_file_free(ours);
	cfi_client_free(client);
}

static void test_there_is_an_end_to_replacing(void **state)
{
	struct cfi_client *client = start();
	struct elf_file *file, *another;
	uint64_t value, size, start, end;

	(void)state;
	assert_int_equal(open_own(client, &file), 0);
	assert_int_equal(elf_file_symbol(file, "main", &value, &size), 0);
	for (unsigned i = 0; i < MAX_DEATHS; i++) {
		assert_int_equal(elf_file_function(file, value, &start, &end), 0);
		each_below(kill_worker);
		wait_for_death();
	}
	assert_int_equal(elf_file_function(file, value, &start, &end), -ENOENT);
	assert_int_equal(open_own(client, &another), -ENOEXEC);
	assert_int_equal(troubles_of(client).n_deaths, MAX_DEATHS);
	assert_int_equal(each_below(ignore), 1);
	elf_file_free(file);
	cfi_client_free(client);
}

/* ---- A parsing process under a file's control ---- */

/* A fake server, which accepts any file as one without segments, and answers the next question with given bytes. */
struct liar {
	int socket;
	void (*lie)(int socket);
	pthread_t thread;
};

static void *answer_falsely(void *data)
{
	struct liar *liar = data;
	CLEANUP(freep) uint8_t *buffer = malloc(CFI_MAX_PACKET);
	const struct elf_summary summary = { .machine = MACHINE_ELF };
	struct cfi_summary opened;
	struct cfi_packet packet;
	size_t n_bytes = cfi_put_summary(&summary, &opened);

	if (buffer && cfi_receive(liar->socket, PATIENCE_MS, true, buffer, &packet) >= 0) {
		closep(&packet.fd);
		(void)cfi_send(liar->socket, &opened, n_bytes, -1);
		if (cfi_receive(liar->socket, PATIENCE_MS, true, buffer, &packet) >= 0)
			liar->lie(liar->socket);
	}
	close(liar->socket);
	return NULL;
}

static struct cfi_client *start_liar(struct liar *liar, void (*lie)(int socket), int patience_ms)
{
	struct cfi_client *client;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	*liar = (struct liar){ .socket = ends[1], .lie = lie };
	assert_int_equal(cfi_client_over(ends[0], patience_ms, &client), 0);
	assert_int_equal(pthread_create(&liar->thread, NULL, answer_falsely, liar), 0);
	return client;
}

static void send_nothing(int socket)
{
	(void)socket;
}

static void send_nothing_for_long(int socket)
{
	struct pollfd end = { .fd = socket };

	(void)poll(&end, 1, PATIENCE_MS); /* until the client has given up */
}

static void send_too_little(int socket)
{
	(void)cfi_send(socket, "", 1, -1);
}

static void send_too_much(int socket)
{
	CLEANUP(freep) uint8_t *bytes = calloc(1, 2 * CFI_MAX_PACKET);

	if (bytes)
		(void)cfi_send(socket, bytes, 2 * CFI_MAX_PACKET, -1);
}

static void send_nonsense(int socket)
{
	(void)send(socket, "nonsense, and more of it", 24, MSG_NOSIGNAL);
}

static void test_lies_are_deaths(void **state)
{
	static void (*const lies[])(int socket) = { send_nothing, send_nothing_for_long, send_too_little, send_too_much,
						    send_nonsense };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(lies); i++) {
		struct liar liar;
		struct cfi_client *client = start_liar(&liar, lies[i],
						       lies[i] == send_nothing_for_long ? SHORT_MS : PATIENCE_MS);
		struct elf_file *file;
		uint64_t value, size;

		assert_int_equal(open_own(client, &file), 0);
		assert_int_equal(elf_file_symbol(file, "main", &value, &size), -ENOENT);
		assert_int_equal(elf_file_symbol(file, "main", &value, &size), -ENOENT); /* asked no more */
		assert_int_equal(troubles_of(client).n_deaths, 1);
		assert_string_equal(troubles_of(client).path, "own");
		elf_file_free(file);
		pthread_join(liar.thread, NULL);
		cfi_client_free(client);
	}
}

static void send_out_of_memory(int socket)
{
	const struct cfi_pair pair = { .error = -ENOMEM };

	(void)cfi_send(socket, &pair, sizeof pair, -1);
}

static void hand_over_a_file(int socket)
{
	const struct cfi_pair pair = { .first = 5 };

	(void)cfi_send(socket, &pair, sizeof pair, STDERR_FILENO);
}

/* Errors of others end nothing here, and their files do not stay. */
static void test_errors_and_files_stay_outside(void **state)
{
	struct elf_file *file;
	struct cfi_client *client;
	uint64_t value, size;
	struct liar liar;
	int before, after;

	(void)state;
	client = start_liar(&liar, send_out_of_memory, PATIENCE_MS);
	assert_int_equal(open_own(client, &file), 0);
	assert_int_equal(elf_file_symbol(file, "main", &value, &size), -ENOENT);
	elf_file_free(file);
	pthread_join(liar.thread, NULL);
	cfi_client_free(client);

	client = start_liar(&liar, hand_over_a_file, PATIENCE_MS);
	assert_int_equal(open_own(client, &file), 0);
	before = dup(STDERR_FILENO);
	assert_int_equal(elf_file_symbol(file, "main", &value, &size), 0);
	assert_int_equal(value, 5);
	pthread_join(liar.thread, NULL); /* which closes its end */
	after = dup(STDERR_FILENO);
	assert_true(after <= before + 1);
	close(before);
	close(after);
	elf_file_free(file);
	cfi_client_free(client);
}

/* Answers after a quarter of the patience, again and again. */
static void answer_slowly(int socket)
{
	CLEANUP(freep) uint8_t *buffer = malloc(CFI_MAX_PACKET);
	const struct timespec while_ = { .tv_nsec = SHORT_MS / 2 / 4 * 1000000 };
	const struct cfi_pair pair = { .first = 5 };
	struct cfi_packet packet;

	do
		nanosleep(&while_, NULL);
	while (buffer && cfi_send(socket, &pair, sizeof pair, -1) >= 0 &&
	       cfi_receive(socket, PATIENCE_MS, false, buffer, &packet) >= 0);
}

static void test_slow_answers_are_limited_together(void **state)
{
	struct liar liar;
	struct cfi_client *client = start_liar(&liar, answer_slowly, SHORT_MS / 2);
	struct elf_file *file;
	uint64_t value, size;
	char name[] = "a";

	(void)state;
	assert_int_equal(open_own(client, &file), 0);
	while (*name < 'u' && elf_file_symbol(file, name, &value, &size) == 0)
		++*name; /* a name that was answered is not asked for again */
	assert_in_range(*name, 'b', 't');
	assert_int_equal(troubles_of(client).n_deaths, 1);
	assert_int_equal(troubles_of(client).n_unread, 1);
	elf_file_free(file);
	pthread_join(liar.thread, NULL);
	cfi_client_free(client);
}

enum { N_FILES = 400 }; /* more than a socket holds packets */

/* Reads no more once all files are open, until the client has ended. */
static void open_all_and_stand_still(int socket)
{
	CLEANUP(freep) uint8_t *buffer = malloc(CFI_MAX_PACKET);
	const struct elf_summary summary = { .machine = MACHINE_ELF };
	struct cfi_summary opened;
	struct cfi_packet packet;
	size_t n_bytes = cfi_put_summary(&summary, &opened);
	struct pollfd end = { .fd = socket };

	for (unsigned i = 1; buffer && i < N_FILES; i++) {
		(void)cfi_send(socket, &opened, n_bytes, -1);
		if (i + 1 < N_FILES && cfi_receive(socket, PATIENCE_MS, true, buffer, &packet) >= 0)
			closep(&packet.fd);
	}
	(void)poll(&end, 1, PATIENCE_MS);
}

/* A closed file gets no answer, and closing waits for no answer. */
static void test_closing_waits_for_nobody(void **state)
{
	struct liar liar;
	struct cfi_client *client = start_liar(&liar, open_all_and_stand_still, SHORT_MS);
	struct elf_file *files[N_FILES];

	(void)state;
	for (unsigned i = 0; i < N_FILES; i++)
		assert_int_equal(open_own(client, &files[i]), 0);
	for (unsigned i = 0; i < N_FILES; i++)
		elf_file_free(files[i]);
	assert_int_equal(troubles_of(client).n_deaths, 1);
	cfi_client_free(client);
	pthread_join(liar.thread, NULL);
}

/* The parsing process ends when its parent is gone; SIGPIPE kills neither. */
static void kill_keeper(pid_t pid, unsigned generation)
{
	if (generation == 1)
		assert_int_equal(kill(pid, SIGKILL), 0);
}

static void test_without_the_keeper_there_is_no_other(void **state)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct cfi_client *client = start();
	struct elf_file *file;
	uint64_t value, size;

	(void)state;
	assert_int_equal(open_own(client, &file), 0);
	each_below(kill_worker);
	each_below(kill_keeper);
	for (int i = 0; i < 5000 && each_below(ignore) > 0; i++)
		nanosleep(&moment, NULL);
	assert_int_equal(elf_file_symbol(file, "main", &value, &size), -ENOENT);
	assert_int_equal(troubles_of(client).n_deaths, 1);
	assert_int_equal(troubles_of(client).n_unread, 1);
	elf_file_free(file);
	cfi_client_free(client);
}

/* A summary is taken as a whole or not at all. */
static void test_summaries(void **state)
{
	struct elf_summary summary = { .machine = 62, .n_segments = 2, .build_id = { .n_bytes = 20 } }, taken;
	struct cfi_summary bytes;
	struct cfi_packet packet = { (const uint8_t *)&bytes, cfi_put_summary(&summary, &bytes), -1 };

	(void)state;
	assert_int_equal(cfi_take_summary(&packet, &taken), 0);
	assert_int_equal(taken.n_segments, 2);
	packet.n_bytes--;
	assert_int_equal(cfi_take_summary(&packet, &taken), -EBADMSG);
	packet.n_bytes = sizeof bytes + 1;
	assert_int_equal(cfi_take_summary(&packet, &taken), -EBADMSG);
	packet.n_bytes = cfi_put_summary(&summary, &bytes);
	bytes.n_segments = ELF_SUMMARY_MAX_SEGMENTS + 1;
	assert_int_equal(cfi_take_summary(&packet, &taken), -EBADMSG);
	bytes.n_segments = 2;
	bytes.n_id_bytes = BUILD_ID_MAX + 1;
	assert_int_equal(cfi_take_summary(&packet, &taken), -EBADMSG);
	bytes.error = -ENOMEM;
	assert_int_equal(cfi_take_summary(&packet, &taken), -ENOENT);
}

/* One that loops is waited for as long as any other, and then ended by its keeper. */
static void test_one_that_stands_still_is_replaced(void **state)
{
	struct cfi_client *client;
	struct elf_file *file, *another;
	uint64_t value, size;

	(void)state;
	assert_int_equal(cfi_client_start(SHORT_MS, &client), 0);
	assert_int_equal(open_own(client, &file), 0);
	each_below(stop_worker);
	assert_int_equal(elf_file_symbol(file, "main", &value, &size), -ENOENT);
	assert_int_equal(troubles_of(client).n_deaths, 1);
	assert_string_equal(troubles_of(client).path, "own");
	assert_int_equal(elf_file_symbol(file, "main", &value, &size), -ENOENT); /* given up */
	assert_int_equal(open_own(client, &another), 0);
	assert_int_equal(elf_file_symbol(another, "main", &value, &size), 0);
	elf_file_free(another);
	elf_file_free(file);
	cfi_client_free(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_read_as_well),
		cmocka_unit_test(test_so_is_an_image_in_memory),
		cmocka_unit_test(test_whoever_parses_has_no_privilege),
		cmocka_unit_test(test_one_that_died_is_replaced),
		cmocka_unit_test(test_there_is_an_end_to_replacing),
		cmocka_unit_test(test_lies_are_deaths),
		cmocka_unit_test(test_slow_answers_are_limited_together),
		cmocka_unit_test(test_closing_waits_for_nobody),
		cmocka_unit_test(test_without_the_keeper_there_is_no_other),
		cmocka_unit_test(test_errors_and_files_stay_outside),
		cmocka_unit_test(test_summaries),
		cmocka_unit_test(test_one_that_stands_still_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
