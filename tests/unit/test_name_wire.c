/* SPDX-License-Identifier: MIT */
/* Messages and answers between the recorder and the process that finds names, and which files it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/pipeline/name_files.h"
#include "src/pipeline/name_wire.h"

struct pidfd_set {
	int a, b;
};

static struct pidfd_set make_ends(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	return (struct pidfd_set){ ends[0], ends[1] };
}

static void test_carries_bytes_and_a_file(void **state)
{
	struct pidfd_set ends = make_ends();
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat sent, came;
	struct wire wire;
	uint32_t number;

	(void)state;
	wire_init(&wire);
	assert_int_equal(wire_send(ends.a, WIRE_DUMP, &(uint32_t){ 7 }, sizeof number, file), 0);
	assert_int_equal(wire_send(ends.a, WIRE_END, NULL, 0, -1), 0);
	assert_int_equal(wire_receive(ends.b, 1000, &wire), 0);
	assert_int_equal(wire.kind, WIRE_DUMP);
	assert_true(wire_struct(&wire, &number, sizeof number));
	assert_int_equal(number, 7);
	assert_int_equal(fstat(file, &sent), 0);
	assert_int_equal(fstat(wire.fd, &came), 0);
	assert_true(sent.st_rdev == came.st_rdev);
	assert_true(fcntl(wire.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(wire_receive(ends.b, 1000, &wire), 0);
	assert_int_equal(wire.kind, WIRE_END);
	assert_int_equal(wire.fd, -1);
	assert_false(wire_struct(&wire, &number, sizeof number));
	close(ends.a);
	assert_int_equal(wire_receive(ends.b, 1000, &wire), -EPIPE);
	wire_done(&wire);
	close(file);
	close(ends.b);
}

static void test_bounds_what_comes(void **state)
{
	const uint32_t head[] = { WIRE_ANSWERS, WIRE_MAX_BYTES + 1 };
	struct pidfd_set ends = make_ends();
	struct wire wire;

	(void)state;
	wire_init(&wire);
	assert_int_equal(wire_receive(ends.b, 10, &wire), -ETIMEDOUT);
	assert_int_equal(write(ends.a, head, sizeof head), sizeof head);
	assert_int_equal(wire_receive(ends.b, 1000, &wire), -EMSGSIZE);
	assert_int_equal(write(ends.a, head, 3), 3); /* and no more of it */
	assert_int_equal(wire_receive(ends.b, 10, &wire), -ETIMEDOUT);
	close(ends.b);
	assert_int_equal(wire_send(ends.a, WIRE_END, NULL, 0, -1), -EPIPE);
	close(ends.a);
	wire_done(&wire);
}

static struct wire_answer an_answer(void)
{
	struct wire_answer answer = { .subject = 12, .n = 2 };

	answer.symbols[0] = (struct wire_symbol){
		.name = "inner", .file = "a.c", .start = 0x1122334455667788, .line = 7, .role = SYMBOL_BUILTIN
	};
	answer.symbols[1] = (struct wire_symbol){
		.name = "", .linkage = "_Z5outerv", .first_line = 3, .is_offset = true, .is_python = true
	};
	return answer;
}

static void test_answers_come_as_they_were(void **state)
{
	const struct wire_answer sent = an_answer(), none = { .subject = 9 };
	struct wire_answers answers = { 0 };
	struct wire_answer came;
	struct cursor from;

	(void)state;
	assert_int_equal(wire_put_answer(&answers, &sent), 0);
	assert_int_equal(wire_put_answer(&answers, &none), 0);
	from = (struct cursor){ .at = answers.bytes, .end = answers.bytes + answers.n };
	assert_int_equal(wire_take_answer(&from, &came), 1);
	assert_int_equal(came.subject, 12);
	assert_int_equal(came.n, 2);
	assert_string_equal(came.symbols[0].name, "inner");
	assert_null(came.symbols[0].linkage);
	assert_string_equal(came.symbols[0].file, "a.c");
	assert_true(came.symbols[0].start == 0x1122334455667788);
	assert_int_equal(came.symbols[0].line, 7);
	assert_int_equal(came.symbols[0].role, SYMBOL_BUILTIN);
	assert_string_equal(came.symbols[1].name, "");
	assert_string_equal(came.symbols[1].linkage, "_Z5outerv");
	assert_int_equal(came.symbols[1].first_line, 3);
	assert_true(came.symbols[1].is_offset && came.symbols[1].is_python);
	assert_int_equal(wire_take_answer(&from, &came), 1);
	assert_int_equal(came.subject, 9);
	assert_int_equal(came.n, 0);
	assert_int_equal(wire_take_answer(&from, &came), 0);
	free(answers.bytes);
}

static void test_long_names_are_cut(void **state)
{
	char name[WIRE_MAX_STRING + 100];
	struct wire_answer answer = { .n = SYMBOL_MAX_INLINED };
	struct wire_answers answers = { 0 };
	struct cursor from;

	(void)state;
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	for (size_t i = 0; i < SYMBOL_MAX_INLINED; i++)
		answer.symbols[i] = (struct wire_symbol){ .name = name, .linkage = name, .file = name };
	assert_int_equal(wire_put_answer(&answers, &answer), 0);
	assert_true(answers.n <= WIRE_MAX_BYTES);
	from = (struct cursor){ .at = answers.bytes, .end = answers.bytes + answers.n };
	assert_int_equal(wire_take_answer(&from, &answer), 1);
	assert_int_equal(strlen(answer.symbols[SYMBOL_MAX_INLINED - 1].file), WIRE_MAX_STRING);
	free(answers.bytes);
}

/* Change each byte of an answer, and truncate it everywhere: the reader never exceeds it. */
static void test_damaged_answers_are_no_answers(void **state)
{
	const struct wire_answer sent = an_answer();
	struct wire_answers answers = { 0 };
	struct wire_answer came;

	(void)state;
	assert_int_equal(wire_put_answer(&answers, &sent), 0);
	for (size_t n = 1; n < answers.n; n++) {
		uint8_t *cut = malloc(n); /* so that a sanitizer sees who reads on */
		struct cursor from = { .at = cut, .end = cut + n };

		memcpy(cut, answers.bytes, n);
		assert_int_equal(wire_take_answer(&from, &came), -EBADMSG);
		free(cut);
	}
	for (size_t i = 0; i < answers.n; i++) {
		struct cursor from = { .at = answers.bytes, .end = answers.bytes + answers.n };
		uint8_t before = answers.bytes[i];

		answers.bytes[i] ^= 0xff;
		if (wire_take_answer(&from, &came) == 1)
			assert_true(came.n <= SYMBOL_MAX_INLINED);
		answers.bytes[i] = before;
	}
	free(answers.bytes);
}

/* ---- Files ---- */

static const char *resolved(const char *path)
{
	static char to[NAME_FILE_MAX_PATH];

	return name_file_resolve(path, to) < 0 ? NULL : to;
}

static void test_resolves_by_text(void **state)
{
	(void)state;
	assert_string_equal(resolved("/usr/lib/x"), "/usr/lib/x");
	assert_string_equal(resolved("//usr/./lib//a/../x/"), "/usr/lib/x");
	assert_string_equal(resolved("/usr/lib/debug/.build-id/ab/../../.dwz/x"), "/usr/lib/debug/.dwz/x");
	assert_string_equal(resolved("/..x/...y"), "/..x/...y");
	assert_null(resolved("usr/lib"));
	assert_null(resolved("/a/../.."));
	assert_null(resolved("/"));
	assert_null(resolved(""));
}

static void make_file(const char *folder, const char *name, const char *text, char *path, size_t n_bytes)
{
	CLEANUP(closep) int fd = -1;

	snprintf(path, n_bytes, "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int try(const char *path, const char *module, const char *root)
{
	int fd = -1, r = name_file_open(path, module, root, &fd);

	if (r >= 0)
		close(fd);
	return r;
}

static void test_opens_what_may_be_a_modules(void **state)
{
	char folder[] = "/tmp/probing-test.XXXXXX", module[128], text[128], elf[128], pipe[128], wanted[512],
	     above[128];

	(void)state;
	assert_non_null(mkdtemp(folder));
	make_file(folder, "module.so", "", module, sizeof module);
	make_file(folder, "secret", "root:x:0:0", text, sizeof text);
	make_file(folder, "module.debug", "\177ELF and so on", elf, sizeof elf);
	snprintf(pipe, sizeof pipe, "%s/pipe", folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);

	assert_int_equal(try(elf, module, ""), 0);
	assert_int_equal(try(text, module, ""), -ENOEXEC);
	assert_int_equal(try(pipe, module, ""), -ENOEXEC); /* and is not waited for */
	assert_int_equal(try(folder, module, ""), -EACCES);
	assert_int_equal(try("/usr/lib/debug/there-is-no-such-file", module, ""), -ENOENT);

	snprintf(wanted, sizeof wanted, "%s/../../etc/passwd", folder);
	assert_int_equal(try(wanted, module, ""), -EACCES);
	assert_int_equal(try("/etc/passwd", module, ""), -EACCES);
	assert_int_equal(try("/proc/self/exe", module, ""), -EACCES);
	assert_int_equal(try("/etc/passwd", "/etc", ""), -EACCES); /* the root folder belongs to no module */
	assert_int_equal(try("/usr/lib/debug/../../bin/sh", module, ""), -EACCES);
	assert_int_equal(try("module.debug", module, ""), -EINVAL);
	assert_int_equal(try(elf, "module.so", ""), -EACCES);

	/* As a process sees it that has another root. */
	snprintf(above, sizeof above, "/proc/self/root");
	snprintf(wanted, sizeof wanted, "%s%s", above, elf);
	assert_int_equal(try(wanted, module, above), 0);
	assert_int_equal(try(wanted, module, ""), -EACCES);
	snprintf(wanted, sizeof wanted, "%s/etc/passwd", above);
	assert_int_equal(try(wanted, module, above), -EACCES);

	unlink(module);
	unlink(text);
	unlink(elf);
	unlink(pipe);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carries_bytes_and_a_file),       cmocka_unit_test(test_bounds_what_comes),
		cmocka_unit_test(test_answers_come_as_they_were),      cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_damaged_answers_are_no_answers), cmocka_unit_test(test_resolves_by_text),
		cmocka_unit_test(test_opens_what_may_be_a_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
