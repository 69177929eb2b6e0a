/* SPDX-License-Identifier: MIT */
/* test_export_names.c - exporters, with names of any bytes, as other programs may have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/export/export.h"
#include "tests/unit/export_fixture.h"

static const struct export_options plain = {};

/* Names that try to break out of a line, a tag, the script or the encoding. */
static const char *const hostile_names[] = {
	"a;b\nc 12",
	"</text></svg><script>alert(1)</script>",
	"]]></script><img src=x onerror=\"alert('x')\">",
	"&amp; & <b>",
	"bad \xff\xfe utf-8 \xc3",
	"\xed\xa0\x80 surrogate \xf4\x90\x80\x80 too high",
	"bell \a escape \033[31m \x7f \xc2\x85 \xe2\x80\xa8 \xef\xbf\xbf",
	"日本語の関数名がここにあります",
	"",
	" 7",
	"#comment",
};

static void made_hostile(struct made_profile *made)
{
	for (size_t i = 0; i < N_ELEMENTS(hostile_names); i++) {
		for (int kind = 0; kind < FRAME_N_KINDS; kind++) {
			struct profile_frame frame = {
				.kind = (enum frame_kind)kind,
				.name = hostile_names[i],
				.file = kind == FRAME_PYTHON ? hostile_names[i] : NULL,
				.module = kind == FRAME_NATIVE ? hostile_names[i] : NULL,
				.line = (int)i,
			};

			made_total(made, 1, 1, made_stack(made, -1, made_frame(made, frame)), i + 1);
		}
	}
	made_thread(made, 1, 1, hostile_names[2], hostile_names[2]);
}

static void test_hostile_folded(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options options = { .by_thread = true, .lines = true };
	CLEANUP(freep) char *text = NULL;
	const char *line;

	(void)state;
	made_hostile(&made);
	text = export_text("folded", &made.profile, &options);
	/* A native function, a task, a wait and time without a stack look the same under one name, and so does, without a
	 * name, a Python function. */
	assert_int_equal(count(text, "\n"), N_ELEMENTS(hostile_names) * (FRAME_N_KINDS - 3) - 1);
	assert_int_equal(folded_sum(text), FRAME_N_KINDS * 11 * 12 / 2);
	assert_non_null(strstr(text, ";a:b c 12 (a:b c 12) 1\n"));
	assert_non_null(strstr(text, ";[unnamed]_[k] 9\n"));
	for (line = text; *line; line = strchr(line, '\n') + 1) {
		size_t n = strcspn(line, "\n");

		assert_non_null(memchr(line, ';', n));
		assert_ptr_equal(memchr(line, ';', n), memrchr(line, ';', n));
	}
	for (const char *at = text; *at; at++)
		assert_true((unsigned char)*at >= 0x20 || *at == '\n');
}

static void test_hostile_svg(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options options = { .by_thread = true, .title = hostile_names[2] };
	CLEANUP(freep) char *text = NULL;
	FILE *parser;

	(void)state;
	made_hostile(&made);
	text = export_text("svg", &made.profile, &options);
	assert_int_equal(count(text, "<script>"), 1);
	assert_int_equal(count(text, "]]>"), 1);
	assert_null(strstr(text, "<img"));
	assert_null(strstr(text, "\xff"));
	parser = popen("python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.stdin.buffer)'", "w");
	assert_non_null(parser);
	assert_int_equal(fwrite(text, 1, strlen(text), parser), strlen(text));
	assert_int_equal(pclose(parser), 0);
}

static void test_hostile_html(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options options = { .by_thread = true, .title = hostile_names[1] };
	CLEANUP(freep) char *text = NULL, *said = NULL;

	(void)state;
	made_hostile(&made);
	text = export_text("html", &made.profile, &options);
	/* Two elements of ours, and the licences. */
	assert_int_equal(count(text, "<script"), 3);
	assert_int_equal(count(text, "</script"), 3);
	assert_null(strstr(text, "<img"));
	said = read_back("html", &made.profile, &options,
			 HTML_DATA
			 "print(d[\"samples\"], \"</text></svg><script>alert(1)</script>\" in d[\"strings\"])'");
	assert_string_equal(said, "396 True\n");
}

/* All distinct functions are in the output, with all of the time. */
static void test_hostile_pstats(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *said = NULL;

	(void)state;
	made_hostile(&made);
	said = read_back("pstats", &made.profile, &plain,
			 "python3 -c 'import sys, marshal; s = marshal.load(sys.stdin.buffer); "
			 "print(sum(v[0] for v in s.values()), round(sum(v[2] for v in s.values()), 2))'");
	assert_string_equal(said, "396 3.96\n");
}

/* The stock reader accepts every line and finds all functions. */
static void test_hostile_callgrind_annotate(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *said = NULL;

	(void)state;
	if (system("command -v callgrind_annotate >/dev/null") != 0) {
		print_message("callgrind_annotate is not there (package valgrind)\n");
		skip();
	}
	made_hostile(&made);
	made_training(&made);
	said = read_back(
		"callgrind", &made.profile, &plain,
		"sh -c 'f=$(mktemp) && cat >$f && callgrind_annotate --threshold=100 --auto=no --show-percs=no $f; rm -f $f'");
	assert_null(strstr(said, "WARNING"));
	assert_null(strstr(said, "malformed"));
	assert_non_null(strstr(said, "496  PROGRAM TOTALS"));
	assert_non_null(strstr(said, ":[unnamed] ["));
}

static const char *flamegraph_program(void)
{
	static const char *const places[] = { "/usr/bin/flamegraph.pl",
					      "/usr/share/perl5/Devel/NYTProf/flamegraph.pl" };

	for (size_t i = 0; i < N_ELEMENTS(places); i++) {
		if (access(places[i], R_OK) == 0)
			return places[i];
	}
	return NULL;
}

/* The stock reader of the folded format accepts every line, for all names. */
static void test_folded_in_flamegraph_pl(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *command = NULL;
	CLEANUP(freep) char *drawn = NULL;
	char folder[] = "/tmp/test_export.XXXXXX";
	char path[64];
	const char *program = flamegraph_program();
	FILE *pipe;

	(void)state;
	if (!program) {
		print_message("flamegraph.pl is not there (package libdevel-nytprof-perl)\n");
		skip();
	}
	made_training(&made);
	made_hostile(&made);
	text = export_text("folded", &made.profile, &plain);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/out.svg", folder);
	assert_true(asprintf(&command, "perl %s --minwidth 0 >%s 2>&1", program, path) > 0);
	pipe = popen(command, "w");
	assert_non_null(pipe);
	assert_int_equal(fwrite(text, 1, strlen(text), pipe), strlen(text));
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(read_file(path, 1 << 22, &drawn, NULL), 0);
	unlink(path);
	rmdir(folder);
	assert_null(strstr(drawn, "Ignored"));
	assert_non_null(strstr(drawn, "all (496 samples, 100%)"));
	assert_non_null(strstr(drawn, "(int) (gemm.cpp) (65 samples"));
	assert_non_null(strstr(drawn, "(int) (libother.so) (2 samples"));
	assert_non_null(strstr(drawn, "do_syscall_64_[k] (7 samples"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_folded),
		cmocka_unit_test(test_hostile_svg),
		cmocka_unit_test(test_hostile_html),
		cmocka_unit_test(test_hostile_pstats),
		cmocka_unit_test(test_hostile_callgrind_annotate),
		cmocka_unit_test(test_folded_in_flamegraph_pl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
