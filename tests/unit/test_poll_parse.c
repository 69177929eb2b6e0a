/* SPDX-License-Identifier: MIT */
/* test_poll_parse.c - the files of /proc that a look reads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/poll_parse.h"

/* A "stat" file with a name, and with what its memory is like. */
static const char *stat_of(const char *name, const char *code, const char *stack, const char *data)
{
	static char text[1024];

	snprintf(text, sizeof text,
		 "12 (%s) S 1 12 12 34816 12 4194304 100 0 0 0 250 31 7 8 20 0 1 0 1000 9000000 200 "
		 "18446744073709551615 %s 94000000 %s 0 0 0 0 0 0 0 0 0 17 5 0 0 0 0 0 %s 1 2 3 4 5 6 0\n",
		 name, code, stack, data);
	return text;
}

static void stat_says_what_a_thread_is(void **state)
{
	struct poll_stat stat;

	(void)state;
	assert_int_equal(poll_parse_stat(stat_of("python3", "1", "2", "3"), &stat), 0);
	assert_string_equal(stat.name, "python3");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.ticks, 281);
	assert_int_equal(stat.cpu, 5);
	assert_int_not_equal(stat.image, 0);
}

static void names_may_hold_anything(void **state)
{
	static const char *const names[] = { "", ")", "a) R 1 (b", "(((", " ", "a b\nc" };
	struct poll_stat stat;
	char longest[200];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		assert_int_equal(poll_parse_stat(stat_of(names[i], "1", "2", "3"), &stat), 0);
		assert_string_equal(stat.name, names[i]);
		assert_int_equal(stat.ticks, 281);
	}
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(poll_parse_stat(stat_of(longest, "1", "2", "3"), &stat), 0);
	assert_int_equal(strlen(stat.name), POLL_NAME_BYTES - 1);
}

static uint64_t image_of(const char *code, const char *stack, const char *data)
{
	struct poll_stat stat;

	assert_int_equal(poll_parse_stat(stat_of("x", code, stack, data), &stat), 0);
	return stat.image;
}

static void an_image_is_where_a_program_lies(void **state)
{
	uint64_t one = image_of("94000000000000", "140000000000000", "94000000100000");

	(void)state;
	assert_int_equal(one, image_of("94000000000000", "140000000000000", "94000000100000"));
	assert_int_not_equal(one, image_of("94000000000001", "140000000000000", "94000000100000"));
	assert_int_not_equal(one, image_of("94000000000000", "140000000000001", "94000000100000"));
	assert_int_not_equal(one, image_of("94000000000000", "140000000000000", "94000000100001"));
	/* For an unreadable or ended process, the kernel prints zeros. */
	assert_int_equal(image_of("1", "0", "0"), 0);
	/* in the middle of an exec */
	assert_int_equal(image_of("0", "140000000000000", "0"), 0);
	assert_int_equal(image_of("94000000000000", "140000000000000", "0"), 0);
}

static void what_is_cut_or_foreign_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"1",
		"1 (x",
		"1 x) S",
		"1 )x( S 1",
		"1 (x)",
		"1 (x) ",
		"1 (x) S",
		"1 (x) 5 1 2",
		"1 (x) S 1 2 3 4 5 6 7 8 9 10 x 12 13",
		"1 (x) S 1 2 3 4 5 6 7 8 9 10 11 12",
		"1 (x) S 1 2 3 4 5 6 7 8 9 10 99999999999999999999 12",
	};
	struct poll_stat stat = { .cpu = 77 };
	uint64_t ns = 77, n = 77;
	pid_t pid = 77;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		assert_int_equal(poll_parse_stat(texts[i], &stat), -EBADMSG);
	assert_int_equal(poll_parse_schedstat("", &ns, &n), -EBADMSG);
	assert_int_equal(poll_parse_schedstat("5 1", &ns, &n), -EBADMSG);
	assert_int_equal(poll_parse_schedstat("-5 1 2", &ns, &n), -EBADMSG);
	assert_int_equal(poll_parse_status("Name:\tx\n", &ns, &n), -EBADMSG);
	assert_int_equal(poll_parse_status("voluntary_ctxt_switches:\t5\n", &ns, &n), -EBADMSG);
	assert_int_equal(poll_parse_loadavg("0.1 0.2 0.3 1/89", &pid), -EBADMSG);
	assert_int_equal(poll_parse_loadavg("0.1 0.2 0.3 1/89 99999999999", &pid), -EBADMSG);
	assert_int_equal(stat.cpu, 77); /* untouched */
	assert_int_equal(ns, 77);
	assert_int_equal(n, 77);
	assert_int_equal(pid, 77);
}

static void numbers_are_read(void **state)
{
	const char *children = "12 345 6789 \n";
	const char *foreign = "12 x 13";
	uint64_t ns, n;
	pid_t pid;

	(void)state;
	assert_int_equal(poll_parse_schedstat("123456789012 3456 78\n", &ns, &n), 0);
	assert_true(ns == UINT64_C(123456789012));
	assert_int_equal(n, 78);
	assert_int_equal(poll_parse_status("Name:\tx\nvoluntary_ctxt_switches:\t5\n"
					   "nonvoluntary_ctxt_switches:\t7\n",
					   &ns, &n),
			 0);
	assert_int_equal(ns, 5);
	assert_int_equal(n, 7);
	assert_int_equal(poll_parse_loadavg("0.18 0.65 0.46 1/89 23681\n", &pid), 0);
	assert_int_equal(pid, 23681);
	assert_int_equal(poll_parse_child(&children), 12);
	assert_int_equal(poll_parse_child(&children), 345);
	assert_int_equal(poll_parse_child(&children), 6789);
	assert_int_equal(poll_parse_child(&children), 0);
	assert_int_equal(poll_parse_child(&foreign), 12);
	assert_int_equal(poll_parse_child(&foreign), 0);
}

/* What this kernel says of ourselves. */
static void the_real_files_are_read(void **state)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *average = NULL;
	struct poll_stat stat;
	pid_t newest;

	(void)state;
	assert_int_equal(read_file("/proc/thread-self/stat", 4096, &text, NULL), 0);
	assert_int_equal(poll_parse_stat(text, &stat), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_not_equal(stat.image, 0);
	assert_memory_equal(stat.name, "test_poll_parse", strlen("test_poll_parse"));
	assert_int_equal(read_file("/proc/loadavg", 4096, &average, NULL), 0);
	assert_int_equal(poll_parse_loadavg(average, &newest), 0);
	assert_true(newest > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_says_what_a_thread_is),
		cmocka_unit_test(names_may_hold_anything),
		cmocka_unit_test(an_image_is_where_a_program_lies),
		cmocka_unit_test(what_is_cut_or_foreign_is_refused),
		cmocka_unit_test(numbers_are_read),
		cmocka_unit_test(the_real_files_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
