/* SPDX-License-Identifier: MIT */
/* test_annotate.c - sources found where they are now, and time beside their lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/columns/columns.h"
#include "src/report/report.h"
#include "src/report/source.h"
#include "tests/unit/made_profile.h"

/* ---- A folder of sources ---- */

static char folder[] = "/tmp/probing-annotate.XXXXXX";

static void put_source(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *walk)
{
	(void)about, (void)type, (void)walk;
	return remove(path);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	put_source("project/train.py", "import os\n\n\ndef train():\n\tpass\n");
	put_source("project/deep/train.py", "deeper\n");
	put_source("train.py", "outer\r\nlast");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Compare the first line of the found file; "": none. %s in root is the folder. */
static void assert_found(const char *root, const char *file, const char *expected)
{
	CLEANUP(source_done) struct source source = {};
	CLEANUP(glob_list_done) struct glob_list roots = {};
	char text[512];
	int r;

	snprintf(text, sizeof text, root, folder);
	assert_int_equal(glob_list_add(&roots, text), 0);
	r = source_find(&roots, file, &source);
	assert_int_equal(r, expected ? 0 : -ENOENT);
	if (expected)
		assert_string_equal(source.lines[0], expected);
}

static void test_finding(void **state)
{
	(void)state;
	assert_found("%s", "/home/anna/project/deep/train.py", "deeper");
	assert_found("%s", "/home/anna/project/train.py", "import os");
	assert_found("%s", "/home/anna/other/train.py", "outer");
	assert_found("%s", "train.py", "outer");
	assert_found("%s", "../build/../project/train.py", "import os");
	assert_found("%s", "/home/anna/evaluate.py", NULL);
	assert_found("/home/anna=%s/project", "/home/anna/deep/train.py", "deeper");
	assert_found("/home/anna/=%s/project", "/home/anna/train.py", "import os");
	assert_found("/home/ann=%s", "/home/anna/train.py", NULL);
	assert_found("=%s", "/train.py", "outer");
	assert_found("%s", "/project", NULL); /* a folder is no source */
	assert_found("%s", "", NULL);
	assert_found("%s", "/", NULL);
	assert_found("/dev", "/dev/zero", NULL);
}

static void test_lines(void **state)
{
	CLEANUP(source_done) struct source source = {};
	CLEANUP(glob_list_done) struct glob_list roots = {};

	(void)state;
	assert_int_equal(glob_list_add(&roots, folder), 0);
	assert_int_equal(source_find(&roots, "train.py", &source), 0);
	assert_int_equal(source.n_lines, 2);
	assert_string_equal(source.lines[0], "outer");
	assert_string_equal(source.lines[1], "last");
	assert_true(source.changed_ns > 0);
}

/* ---- Text ---- */

static void assert_source(const char *text, unsigned columns, const char *expected)
{
	char *shown = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&shown, &n_bytes);

	assert_non_null(out);
	cell_put_source(out, text, columns);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(shown, expected);
	free(shown);
}

static void test_foreign_text(void **state)
{
	(void)state;
	assert_source("\tx = 1", 0, "        x = 1");
	assert_source("ab\tc", 0, "ab      c");
	assert_source("\033[2J\x7f\x01", 0, "^[[2J^?^A");
	assert_source("a\xff\xc3", 0, "a\\xff\\xc3");
	assert_source("\xe2\x80\xae# \xef\xbf\xbd", 0, "<U+202E># \xef\xbf\xbd");
	assert_source("\xc2\x9b", 0, "<U+009B>");
	assert_source("日本", 4, "日本");
	assert_source("日本語", 4, "日…");
	assert_source("abcdef", 4, "abc…");
	assert_source("abcd", 4, "abcd");
	assert_source("", 4, "");
}

/* No byte of a source reaches the terminal but what can be seen. */
static void test_all_bytes(void **state)
{
	char text[3] = "", *shown = NULL;
	size_t n_bytes;

	(void)state;
	for (unsigned i = 1; i < 65536; i++) {
		FILE *out = open_memstream(&shown, &n_bytes);

		text[0] = (char)(i >> 8);
		text[1] = (char)i;
		cell_put_source(out, text[0] ? text : text + 1, 0);
		assert_int_equal(fclose(out), 0);
		for (size_t k = 0; k < n_bytes; k++)
			assert_true((unsigned char)shown[k] >= ' ' && shown[k] != 0x7f);
		free(shown);
	}
}

/* ---- Listings ---- */

struct told {
	enum annotate_source what;
	unsigned n;
};

static void take_told(void *data, const char *file, enum annotate_source what, int error)
{
	struct told *told = data;

	(void)file, (void)error;
	told->what = what;
	told->n++;
}

/* Of the training program; owned by the caller. @what: NULL: anything. */
static char *listing(const char *what, struct annotate_options options, int expected, struct told *told)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(glob_list_done) struct glob_list names = {}, roots = {};
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	made_training(&made);
	if (what)
		assert_int_equal(glob_list_add(&names, what), 0);
	assert_int_equal(glob_list_add(&roots, folder), 0);
	options.what = &names;
	options.roots = &roots;
	options.tell = take_told;
	options.data = told;
	assert_int_equal(report_annotate(&made.profile, &options, out), expected);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void put_train(void)
{
	char text[1024] = "";

	for (int i = 1; i <= 30; i++)
		sprintf(text + strlen(text), "line %d\n", i);
	put_source("home/anna/train.py", text);
}

static void test_listing(void **state)
{
	struct told told = {};
	CLEANUP(freep) char *text = NULL;
	char expected[2048];

	(void)state;
	put_train();
	text = listing("walk", (struct annotate_options){ .context = 1 }, 0, &told);
	snprintf(expected, sizeof expected,
		 "train.py\n"
		 "self 15.0 %%, 150 ms of 1.00 s; source: %s/home/anna/train.py\n"
		 "\n"
		 "self %%    self total %%   total   line\n"
		 "                                   20  line 20\n"
		 "  15.0  150 ms    20.0  200 ms     21  line 21\n"
		 "                                   22  line 22\n"
		 "   0.0       0    20.0  200 ms     23  line 23\n"
		 "                                   24  line 24\n",
		 folder);
	assert_string_equal(text, expected);
	assert_int_equal(told.n, 1);
	assert_int_equal(told.what, ANNOTATE_FOUND);
}

static void test_gaps_and_ends(void **state)
{
	struct told told = {};
	CLEANUP(freep) char *gap = NULL;
	CLEANUP(freep) char *whole = NULL;

	(void)state;
	put_train();
	gap = listing("train.py", (struct annotate_options){ .recorded_ns = 1 }, 0, &told);
	assert_int_equal(told.what, ANNOTATE_NEWER);
	assert_non_null(strstr(gap, "  10.0  100 ms    97.0  970 ms     12  line 12\n"
				    "                                  ...\n"
				    "  15.0  150 ms    20.0  200 ms     21  line 21\n"
				    "                                  ...\n"
				    "   0.0       0    20.0  200 ms     23  line 23\n"
				    "   0.0       0    97.0  970 ms     40  [behind its end] <module>\n"));
	whole = listing("train.py", (struct annotate_options){ .all_lines = true }, 0, &told);
	assert_non_null(strstr(whole, "    1  line 1\n"));
	assert_non_null(strstr(whole, "   30  line 30\n"));
	assert_null(strstr(whole, "..."));
}

static void test_without_source(void **state)
{
	struct told told = {};
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *none = NULL;

	(void)state;
	text = listing("at::gemm*", (struct annotate_options){ .context = 3 }, 0, &told);
	assert_non_null(strstr(text, "  50.0  500 ms    65.0  650 ms      7  [at::gemm<float>(int)]\n"));
	assert_int_equal(told.what, ANNOTATE_MISSING);
	none = listing("sorted", (struct annotate_options){}, -ENODATA, &told); /* it has no line */
	assert_string_equal(none, "");
}

static void test_files_in_order(void **state)
{
	struct told told = {};
	CLEANUP(freep) char *present = NULL;
	CLEANUP(freep) char *both = NULL;

	(void)state;
	put_train();
	/* A missing file took more time; it has no lines to show. */
	present = listing(NULL, (struct annotate_options){ .max_files = 1 }, 0, &told);
	assert_non_null(strstr(present, "train.py\n"));
	assert_null(strstr(present, "gemm.cpp\n"));
	assert_non_null(strstr(present, "\n(1 more file, 1 of them with more time but without a source: "
					"name its folder with --source-root)\n"));
	assert_int_not_equal(told.what, ANNOTATE_MISSING);
	both = listing(NULL, (struct annotate_options){ .max_files = 2 }, 0, &told);
	assert_true(strstr(both, "train.py\n") < strstr(both, "gemm.cpp\n"));
	assert_null(strstr(both, "more file"));
	assert_int_equal(told.what, ANNOTATE_MISSING);
}

static void test_narrow_and_coloured(void **state)
{
	struct told told = {};
	CLEANUP(freep) char *text = NULL;

	(void)state;
	put_train();
	text = listing("walk", (struct annotate_options){ .columns = 40, .colour = true }, 0, &told);
	assert_non_null(strstr(text, "self % total %   line\n"));
	assert_non_null(strstr(text, "\033[1;31m  15.0    20.0     21  line 21\033[0m\n"));
}

static void test_json(void **state)
{
	struct told told = {};
	CLEANUP(freep) char *text = NULL;

	(void)state;
	put_train();
	text = listing("walk", (struct annotate_options){ .json = true }, 0, &told);
	assert_non_null(strstr(text, "   \"file\": \"/home/anna/train.py\",\n"));
	assert_non_null(strstr(text, "     \"line\": 21,\n     \"text\": \"line 21\",\n     \"function\": \"walk\",\n"
				     "     \"self\": 150000000,\n     \"self_share\": 15.000,\n"));
	assert_non_null(strstr(text, " \"left_out\": 0\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finding),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_foreign_text),
		cmocka_unit_test(test_all_bytes),
		cmocka_unit_test(test_listing),
		cmocka_unit_test(test_gaps_and_ends),
		cmocka_unit_test(test_without_source),
		cmocka_unit_test(test_files_in_order),
		cmocka_unit_test(test_narrow_and_coloured),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
