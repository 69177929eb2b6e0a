/* SPDX-License-Identifier: MIT */
/* What other machines may ask: verbs and options of fixed lists, and nothing that starts a program or names a file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/serve/question.h"

static void good_questions_are_taken(void **state)
{
	static const char *const good[] = {
		"nodes",
		"backtrace\n--format=json\n--threads\n--timeout=10000ms\n--job=none%3a29500\n",
		"query\n--each\n--\nSELECT%201",
		"report\n--duration=5000ms\n--samples=20",
		"record\n--start-at=1795729623162074300\n--\n-d\n10s\n--mode=wall\n--no-native",
		"nodes\n--below=https://a:7070,https://b.example:7070",
	};
	struct question question;
	const char *why;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(good); i++) {
		why = "";
		assert_int_equal(question_parse(good[i], strlen(good[i]), &question, &why), 0);
		assert_int_equal(question.is_recording, i == 4);
		assert_string_equal(question.below ? question.below : "",
				    i == 5 ? "https://a:7070,https://b.example:7070" : "");
		question_done(&question);
	}
}

static void all_else_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"eval",
		"attach",
		"rows",
		"clock",
		"nodes\n--ssh=sh",
		"nodes\n--ss=sh",
		"nodes\n--remote-probing=/bin/sh",
		"nodes\n--hosts=a",
		"nodes\n--local",
		"nodes\n--token-file=/etc/shadow",
		"nodes\nnode",
		"nodes\n--each",
		"nodes\n--\nx",
		"backtrace\n-o\n/tmp/x",
		"backtrace\n--from=/etc/passwd",
		"query\n--",
		"query\n--\nSELECT%201\nSELECT%202",
		"query\n--\nSELECT 1",
		"query\n--\n$(x)",
		"record\n--\nsh",
		"record\n--\n--\nsh",
		"record\n--\n-o\nx",
		"record\n--\n--output=x",
		"record\n--\n-d",
		"record\n--\n-d\n--",
		"record\n--\n--mode=/x",
		"record\n--\n--control=x",
		"record\n--below=https://a:7070\n--\n-d\n1",
		"nodes\n--below=a",
		"nodes\n--below=http://a:1",
		"nodes\n--below=https://a:1,",
		"nodes\n--below=https://a/x",
		"nodes\n--below=https://",
		"--below=https://a:7070",
	};
	struct question question;
	const char *why;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		why = NULL;
		if (question_parse(bad[i], strlen(bad[i]), &question, &why) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(why);
		question_done(&question);
	}
	assert_int_equal(question_parse("nodes\0", 6, &question, &why), -EBADMSG);
	question_done(&question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_questions_are_taken),
		cmocka_unit_test(all_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
