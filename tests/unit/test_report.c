/* SPDX-License-Identifier: MIT */
/* test_report.c - the table of top functions, on profiles made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "src/columns/columns.h"
#include "src/report/sums.h"
#include "src/report/report.h"
#include "tests/unit/made_profile.h"

static char *report_text(const struct profile *profile, const struct report_options *options)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out;

	out = open_memstream(&text, &n_bytes);
	assert_non_null(out);
	assert_int_equal(report_print(profile, options, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *cell_text(const char *name, unsigned columns, enum cell_cut cut)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out;

	out = open_memstream(&text, &n_bytes);
	assert_non_null(out);
	assert_int_equal(cell_put(out, name, columns, cut),
			 text_columns_shown(name) < columns ? text_columns_shown(name) : columns);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void assert_cell(const char *name, unsigned columns, enum cell_cut cut, const char *expected)
{
	CLEANUP(freep) char *text = cell_text(name, columns, cut);

	assert_string_equal(text, expected);
}

static void assert_duration(uint64_t ns, const char *expected)
{
	char text[24];

	cell_format_ns(ns, text, sizeof text);
	assert_string_equal(text, expected);
	assert_true(strlen(text) <= 7);
}

/* Every line is valid UTF-8 and no wider than columns. */
static void assert_fits(const char *text, unsigned columns)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		char line[1024];

		assert_true(n < sizeof line);
		memcpy(line, text, n);
		line[n] = '\0';
		for (const char *at = line; *at;) {
			utf8proc_int32_t c;
			utf8proc_ssize_t got = utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &c);

			assert_true(got > 0);
			assert_true(c >= 0x20 && c != 0x7f);
			at += got;
		}
		if (text_columns_shown(line) > columns)
			fail_msg("%u columns, not %u: %s", text_columns_shown(line), columns, line);
		text += n + (text[n] == '\n');
	}
}

static const struct report_sum *find(const struct report_sums *sums, const char *name)
{
	for (size_t i = 0; i < sums->n_items; i++) {
		if (strcmp(sums->items[i].name, name) == 0)
			return &sums->items[i];
	}
	fail_msg("no function %s", name);
	return NULL;
}

static void test_cells(void **state)
{
	(void)state;
	assert_cell("short", 10, CELL_CUT_MIDDLE, "short");
	assert_cell("exactly_10", 10, CELL_CUT_MIDDLE, "exactly_10");
	assert_cell("a_name_too_long", 10, CELL_CUT_MIDDLE, "a_nam…long");
	assert_cell("a_name_too_long", 10, CELL_CUT_START, "…_too_long");
	assert_cell("abc", 1, CELL_CUT_MIDDLE, "…");
	assert_cell("abc", 2, CELL_CUT_MIDDLE, "a…");
	assert_cell("a\tb\033[2Jc\n", 20, CELL_CUT_MIDDLE, "a b [2Jc ");
	assert_cell("\xff\xfex", 20, CELL_CUT_MIDDLE, "\xef\xbf\xbd\xef\xbf\xbdx");
	assert_cell("\xe2\x80\xaeto the left", 30, CELL_CUT_MIDDLE, " to the left");
	assert_cell("日本語", 6, CELL_CUT_MIDDLE, "日本語");
	assert_int_equal(text_columns_shown("日本語"), 6);
	assert_int_equal(text_columns_shown("e\xcc\x81"), 1);
}

static void test_wide_characters_are_not_split(void **state)
{
	(void)state;
	for (unsigned columns = 1; columns < 14; columns++) {
		char *text = NULL;
		size_t n_bytes;
		FILE *out = open_memstream(&text, &n_bytes);
		unsigned used;

		assert_non_null(out);
		used = cell_put(out, "一二三四五六七", columns, CELL_CUT_MIDDLE);
		assert_int_equal(fclose(out), 0);
		assert_true(used <= columns);
		assert_true(used + 2 >= columns);
		assert_int_equal(text_columns_shown(text), used);
		assert_non_null(strstr(text, "…"));
		free(text);
	}
}

static void test_durations(void **state)
{
	(void)state;
	assert_duration(0, "0");
	assert_duration(1500, "2 us");
	assert_duration(999400, "999 us");
	assert_duration(999500, "1 ms");
	assert_duration(999499999, "999 ms");
	assert_duration(999500000, "1.00 s");
	assert_duration(99990000000, "99.99 s");
	assert_duration(99999000000, "1m 40s");
	assert_duration(5999000000000, "99m 59s");
	assert_duration(6000000000000, "1h 40m");
	assert_duration(359999000000000, "99h 59m");
	assert_duration(360000000000000, "100 h");
}

static void test_sums(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(report_sums_done) struct report_sums sums = {};
	const struct report_sum *walk;
	uint64_t self = 0;

	(void)state;
	made_training(&made);
	assert_int_equal(report_sums_of_frames(&made.profile, false, order_by_function, &sums), 0);
	assert_true(sums.whole.by_weight);
	assert_int_equal(sums.whole.samples, 100);
	assert_int_equal(sums.whole.weight, 1000000000);
	for (size_t i = 0; i < sums.n_items; i++)
		self += sums.items[i].self;
	assert_int_equal(self, sums.whole.weight);
	assert_int_equal(find(&sums, "Trainer.train")->total, 970000000);
	assert_int_equal(find(&sums, "Trainer.train")->self, 100000000);
	/* Three walk()s on every stack count once; line 23 is on it twice. */
	walk = find(&sums, "walk");
	assert_int_equal(walk->self, 150000000);
	assert_int_equal(walk->total, 200000000);
	assert_int_equal(walk->frame->line, 23);
	assert_int_equal(find(&sums, "[no stack]")->self, 30000000);
	assert_null(find(&sums, "[no stack]")->frame);
}

static void test_without_weights(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(report_sums_done) struct report_sums sums = {};
	CLEANUP(freep) char *text = NULL;
	struct report_options options = { .columns = 80 };

	(void)state;
	made_training(&made);
	for (size_t i = 0; i < made.profile.n_totals; i++)
		made.profile.totals[i].weight = 0;
	assert_int_equal(report_sums_of_frames(&made.profile, false, order_by_function, &sums), 0);
	assert_false(sums.whole.by_weight);
	assert_int_equal(find(&sums, "sorted")->self, 5);
	text = report_text(&made.profile, &options);
	assert_non_null(strstr(text, "100 samples\n"));
	assert_non_null(strstr(text, "   5.0       -     5.0       - builtin sorted"));
}

static void assert_count(uint64_t n, const char *expected)
{
	char text[24];

	cell_format_count(n, text, sizeof text);
	assert_string_equal(text, expected);
	assert_true(strlen(text) <= 7);
}

/* Weights that count something else than nanoseconds. */
static void test_counts(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	struct report_options options = { .columns = 80 };

	(void)state;
	assert_count(0, "0");
	assert_count(99999, "99999");
	assert_count(100000, "100 k");
	assert_count(999499, "999 k");
	assert_count(999500, "1.00 M");
	assert_count(12345678, "12.3 M");
	assert_count(UINT64_MAX, "18.4 E");
	made_training(&made);
	made.profile.unit = "page-faults";
	text = report_text(&made.profile, &options);
	assert_non_null(strstr(text, "100 samples, 1.00 G page-faults\n"));
	assert_non_null(strstr(text, "   5.0  50.0 M     5.0  50.0 M builtin sorted"));
	assert_null(strstr(text, " ms"));
}

static void test_widths(void **state)
{
	static const unsigned widths[] = { 1, 24, 39, 40, 55, 56, 71, 72, 80, 120, 200 };
	CLEANUP(made_done) struct made_profile made = {};
	struct profile_frame long_one = {
		.kind = FRAME_PYTHON,
		.name = "Outer.<locals>.a_decorator_with_a_rather_long_name.<locals>.the_wrapper_"
			"inside_of_it",
		.file = "/srv/environments/production/lib/python3.11/site-packages/package/"
			"module.py",
		.line = 1234,
	};
	struct profile_frame wide = { .kind = FRAME_NATIVE,
				      .name = "日本語の関数名がここにあります一二三四五六七八",
				      .module = "/opt/日本語/ライブラリ.so" };

	(void)state;
	made_training(&made);
	made_total(&made, 1, 1, made_stack(&made, -1, made_frame(&made, long_one)), 3);
	made_total(&made, 1, 1, made_stack(&made, -1, made_frame(&made, wide)), 3);
	for (size_t i = 0; i < N_ELEMENTS(widths); i++) {
		struct report_options options = { .columns = widths[i] };
		CLEANUP(freep) char *text = report_text(&made.profile, &options);

		assert_fits(text, widths[i] > 24 ? widths[i] : 24);
		assert_true((widths[i] >= 40) == (strstr(text, "builtin") != NULL));
		assert_true((widths[i] >= 72) == (strstr(text, "where") != NULL));
	}
}

static void test_200_columns(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct report_options options = { .columns = 200, .max_rows = 6 };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	made_training(&made);
	text = report_text(&made.profile, &options);
	assert_string_equal(text, "100 samples, 1.00 s\n"
				  "\n"
				  "self %    self total %   total kind    function               where\n"
				  "  50.0  500 ms    65.0  650 ms native  at::gemm<float>(int)   gemm.cpp:7\n"
				  "  15.0  150 ms    20.0  200 ms py      walk                   train.py:23\n"
				  "  10.0  100 ms    97.0  970 ms py      Trainer.train          train.py:12\n"
				  "   8.0   80 ms     8.0   80 ms native  libtorch_cpu.so+0x12a0 libtorch_cpu.so\n"
				  "   7.0   70 ms     7.0   70 ms kernel  do_syscall_64\n"
				  "   5.0   50 ms     5.0   50 ms builtin sorted                 python3\n"
				  "(3 more)\n");
}

static void test_40_columns_by_total(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct report_options options = { .columns = 40, .max_rows = 4, .by_total = true };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	made_training(&made);
	text = report_text(&made.profile, &options);
	assert_string_equal(text, "100 samples, 1.00 s\n"
				  "\n"
				  "self % total % kind    function\n"
				  "  10.0    97.0 py      Trainer.train\n"
				  "   0.0    97.0 py      <module>\n"
				  "  50.0    65.0 native  at::gemm…at>(int)\n"
				  "  15.0    20.0 py      walk\n"
				  "(5 more)\n");
}

static void test_colour(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct report_options options = {};
	CLEANUP(freep) char *plain = NULL;
	CLEANUP(freep) char *coloured = NULL;

	(void)state;
	made_training(&made);
	plain = report_text(&made.profile, &options);
	assert_null(strchr(plain, '\033'));
	options.colour = true;
	coloured = report_text(&made.profile, &options);
	assert_non_null(strstr(coloured, "\033[34mpy      walk\033[0m"));
}

static void test_empty(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct report_options options = {};
	CLEANUP(freep) char *text = NULL;

	(void)state;
	text = report_text(&made.profile, &options);
	assert_string_equal(text, "The recording has no samples.\n");
}

static void test_deep_stack(void **state)
{
	enum { DEPTH = 20000 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(report_sums_done) struct report_sums sums = {};
	int32_t frame, stack = -1;

	(void)state;
	frame = made_frame(&made, (struct profile_frame){ .kind = FRAME_PYTHON, .name = "deep", .file = "n.py" });
	for (int i = 0; i < DEPTH; i++)
		stack = made_stack(&made, stack, frame);
	made_total(&made, 1, 1, stack, 3);
	made_total(&made, 1, 2, stack, 4);
	assert_int_equal(report_sums_of_frames(&made.profile, false, order_by_function, &sums), 0);
	assert_int_equal(sums.n_items, 1);
	assert_int_equal(sums.items[0].self, 70000000);
	assert_int_equal(sums.items[0].total, 70000000);
}

static void test_many_stacks(void **state)
{
	enum { N_FRAMES = 300, N_STACKS = 100000 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(report_sums_done) struct report_sums sums = {};
	uint64_t seed = 1, self = 0;

	(void)state;
	for (int i = 0; i < N_FRAMES; i++)
		made_frame(&made, (struct profile_frame){ .kind = FRAME_PYTHON, .name = "f", .function = 1 + i / 3 });
	for (int i = 0; i < N_STACKS; i++) {
		int32_t parent;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		parent = i == 0 ? -1 : (int32_t)((seed >> 33) % (unsigned)i);
		made_stack(&made, parent, (int32_t)((seed >> 20) % N_FRAMES));
		made_total(&made, 1, 1, i, (seed >> 50) % 4);
	}
	assert_int_equal(report_sums_of_frames(&made.profile, false, order_by_function, &sums), 0);
	assert_true(sums.n_items <= N_FRAMES / 3);
	for (size_t i = 0; i < sums.n_items; i++) {
		self += sums.items[i].self;
		assert_true(sums.items[i].total >= sums.items[i].self);
		assert_true(sums.items[i].total <= sums.whole.weight);
	}
	assert_int_equal(self, sums.whole.weight);
}

/* Of a table, the lines behind its head. */
static void assert_rows(const struct report_options *options, const char *expected)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	const char *rows;

	made_training(&made);
	text = report_text(&made.profile, options);
	rows = strstr(text, "\n\n");
	assert_non_null(rows);
	assert_string_equal(rows + 2, expected);
}

static void test_by_line(void **state)
{
	const struct report_options options = { .by = REPORT_BY_LINE, .columns = 100, .max_rows = 4 };

	(void)state;
	/* Line 23 of walk() is on each stack of it, and line 21 is where its time is spent. */
	assert_rows(&options, "self %    self total %   total kind    function               where\n"
			      "  50.0  500 ms    65.0  650 ms native  at::gemm<float>(int)   gemm.cpp:7\n"
			      "  15.0  150 ms    20.0  200 ms py      walk                   train.py:21\n"
			      "  10.0  100 ms    97.0  970 ms py      Trainer.train          train.py:12\n"
			      "   8.0   80 ms     8.0   80 ms native  libtorch_cpu.so+0x12a0 libtorch_cpu.so\n"
			      "(6 more)\n");
}

static void test_by_module(void **state)
{
	const struct report_options options = { .by = REPORT_BY_MODULE, .columns = 100 };

	(void)state;
	assert_rows(&options, "self %    self total %   total kind    module          where\n"
			      "  58.0  580 ms    65.0  650 ms native  libtorch_cpu.so /usr/lib/libtorch_cpu.so\n"
			      "  25.0  250 ms    97.0  970 ms py      train.py        /home/anna/train.py\n"
			      "   7.0   70 ms     7.0   70 ms kernel  [kernel]\n"
			      "   5.0   50 ms     5.0   50 ms native  python3         /usr/bin/python3\n"
			      "   3.0   30 ms     3.0   30 ms         [no stack]\n"
			      "   2.0   20 ms     2.0   20 ms native  libother.so     /usr/lib/libother.so\n");
}

static void test_by_task(void **state)
{
	const struct report_options threads = { .by = REPORT_BY_THREAD, .columns = 100 };
	const struct report_options processes = { .by = REPORT_BY_PROCESS, .columns = 100 };

	(void)state;
	assert_rows(&threads, "total %   total thread    where\n"
			      "   80.0  800 ms python3   process 100 (python3), thread 100\n"
			      "   20.0  200 ms pt_worker process 100 (python3), thread 101\n");
	assert_rows(&processes, "total %   total process where\n"
				"  100.0  1.00 s python3 process 100\n");
}

/* Two threads that wait on one line, with and without the kernel's and native functions, and others. */
static void made_waits(struct made_profile *made)
{
	static const char app[] = "/srv/app.py", python[] = "/usr/bin/python3", libc[] = "/lib/libc.so.6";
	const struct profile_frame frames[] = {
		{ .kind = FRAME_PYTHON, .name = "Arbiter.sleep", .file = app, .line = 344, .function = 1 },
		{ .kind = FRAME_NATIVE, .role = ROLE_BUILTIN, .name = "select.select", .module = python, .function = 2 },
		{ .kind = FRAME_NATIVE, .name = "select_inner", .module = python, .function = 3 },
		{ .kind = FRAME_NATIVE, .name = "__select", .module = libc, .function = 4 },
		{ .kind = FRAME_KERNEL, .name = "schedule", .function = 5 },
		{ .kind = FRAME_WAIT, .name = "[io]", .function = 6 },
		{ .kind = FRAME_NATIVE,
		  .name = "serve",
		  .file = "/src/serve.c",
		  .line = 7,
		  .module = "/usr/bin/served",
		  .function = 7 },
		{ .kind = FRAME_NATIVE, .name = "pthread_cond_wait", .module = libc, .function = 8 },
		{ .kind = FRAME_NATIVE, .name = "futex_wait", .module = libc, .function = 9 },
		{ .kind = FRAME_WAIT, .name = "[lock]", .function = 10 },
		{ .kind = FRAME_WAIT, .name = "[runnable]", .function = 11 },
		{ .kind = FRAME_WAIT, .name = "[gil]", .function = 12 },
		{ .kind = FRAME_NATIVE, .name = "Engine::wait", .module = "/lib/libengine.so", .function = 13 },
		{ .kind = FRAME_WAIT, .name = "[held by MainThread]", .function = 14 },
		{ .kind = FRAME_WAIT, .name = "[pipe]", .function = 15 },
		{ .kind = FRAME_WAIT, .name = "[tcp to 10.0.0.2:80]", .function = 16 },
	};
	static const struct {
		int32_t tid;
		uint64_t samples;
		int32_t frames[8]; /* from 1 */
	} stacks[] = {
		{ 100, 10, { 1, 2, 3, 4, 6, 16 } }, { 100, 20, { 1, 2, 3, 4, 6, 15 } },
		{ 101, 10, { 1, 2, 3, 4, 5, 6 } },  { 100, 3, { 1, 6 } }, /* its native part could not be read */
		{ 100, 2, { 1, 6, 15 } },           { 102, 20, { 7, 8, 9, 10, 14 } }, /* no Python */
		{ 100, 3, { 1, 2, 11 } },           { 102, 1, { 7, 11 } },
		{ 100, 2, { 1, 13, 8, 10 } },                           /* not a builtin's own wait */
		{ 101, 4, { 1, 3, 8, 9, 12 } },     { 101, 25, { 1 } }, /* runs */
	};
	int32_t first = 0;

	for (size_t i = 0; i < N_ELEMENTS(frames); i++)
		first = made_frame(made, frames[i]) - (int32_t)i;
	for (size_t i = 0; i < N_ELEMENTS(stacks); i++) {
		int32_t stack = -1;

		for (size_t k = 0; stacks[i].frames[k] > 0; k++)
			stack = made_stack(made, stack, first + stacks[i].frames[k] - 1);
		made_total(made, 100, stacks[i].tid, stack, stacks[i].samples);
	}
}

static char *waits_text(const struct report_options *options, bool python_only)
{
	CLEANUP(made_done) struct made_profile made = {};

	made_waits(&made);
	made.profile.python_only = python_only;
	return report_text(&made.profile, options);
}

static void test_by_wait(void **state)
{
	static const char expected[] =
		"100 samples, 1.00 s\n"
		"\n"
		"total %   total threads samples kind    wait                                                  where\n"
		"   45.0  450 ms       2      45 py      Arbiter.sleep · [io] select.select [pipe] and 1 other /srv/app.py:344\n"
		"   20.0  200 ms       1      20 native  serve · [lock] pthread_cond_wait [held by MainThread] /src/serve.c:7\n"
		"    4.0   40 ms       1       4 py      Arbiter.sleep · [gil]                                 /srv/app.py:344\n"
		"    4.0   40 ms       2       4 wait    [runnable]\n"
		"    2.0   20 ms       1       2 py      Arbiter.sleep · [lock] Engine::wait                   /srv/app.py:344\n";
	const struct report_options options = { .by = REPORT_BY_WAIT, .columns = 120 };

	(void)state;
	for (int python_only = 0; python_only < 2; python_only++) {
		CLEANUP(freep) char *text = waits_text(&options, python_only);

		assert_string_equal(text, expected);
	}
}

/* They follow the functions of a recording that has any. */
static void test_longest_waits(void **state)
{
	const struct report_options options = { .columns = 120, .max_rows = 1 };
	const struct report_options json = { .json = true };
	CLEANUP(freep) char *text = waits_text(&options, false), *object = waits_text(&json, false), *none;
	CLEANUP(made_done) struct made_profile training = {};
	const char *waits = strstr(text, "\n\nThe longest waits"), *pipe, *socket;

	(void)state;
	assert_non_null(waits);
	assert_non_null(strstr(
		waits, " 45.0  450 ms       2      45 py      Arbiter.sleep · [io] select.select [pipe] and 1 other "));
	assert_non_null(strstr(object, "\"waits\": ["));
	assert_non_null(strstr(object, "\"state\": \"io\""));
	assert_non_null(strstr(object, "\"wait_function\": \"select.select\""));
	/* The rest of the 450 ms is of unknown objects. */
	assert_non_null(strstr(object, "\"wait_objects\": ["));
	pipe = strstr(object, "\"name\": \"pipe\"");
	socket = strstr(object, "\"name\": \"tcp to 10.0.0.2:80\"");
	assert_non_null(pipe);
	assert_non_null(socket);
	assert_true(pipe < socket);
	assert_non_null(strstr(pipe, "\"total\": 220000000"));
	assert_non_null(strstr(socket, "\"total\": 100000000"));
	made_training(&training);
	none = report_text(&training.profile, &options);
	assert_null(strstr(none, "waits"));
}

static void test_no_waits(void **state)
{
	const struct report_options options = { .by = REPORT_BY_WAIT, .columns = 120 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;

	(void)state;
	made_training(&made);
	text = report_text(&made.profile, &options);
	assert_string_equal(text, "The recording has no waits: record with --mode wall or --mode offcpu.\n");
}

static void test_waits_fit(void **state)
{
	(void)state;
	for (unsigned columns = 24; columns < 130; columns += 5) {
		const struct report_options options = { .by = REPORT_BY_WAIT, .columns = columns };
		CLEANUP(freep) char *text = waits_text(&options, false);

		assert_fits(text, columns);
	}
}

static char *neighbours_text(const char *name, bool callers, bool json)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(glob_list_done) struct glob_list names = {};
	const struct report_options options = { .columns = 100, .json = json };
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	made_training(&made);
	assert_int_equal(glob_list_add(&names, name), 0);
	assert_int_equal(report_neighbours(&made.profile, &names, callers, &options, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void assert_neighbours(const char *name, bool callers, const char *expected)
{
	CLEANUP(freep) char *text = neighbours_text(name, callers, false);
	const char *rows = strstr(text, "\n\n");

	assert_non_null(rows);
	assert_string_equal(strchr(rows + 2, '\n') + 1, expected);
}

/* walk() calls itself twice on each stack, which counts once; it has another caller all the same. */
static void test_neighbours(void **state)
{
	(void)state;
	assert_neighbours("walk", true,
			  "   20.0  200 ms   100.0 py      walk                  train.py:23\n"
			  "   20.0  200 ms   100.0 py        Trainer.train       train.py:12\n"
			  "   20.0  200 ms   100.0 py        walk                train.py:23\n");
	assert_neighbours("walk", false,
			  "   20.0  200 ms   100.0 py      walk                  train.py:23\n"
			  "   20.0  200 ms   100.0 py        walk                train.py:23\n"
			  "   15.0  150 ms    75.0           [itself]\n"
			  "    5.0   50 ms    25.0 builtin   sorted              python3\n");
	assert_neighbours("<mod*", true,
			  "   97.0  970 ms   100.0 py      <module>                    train.py:40\n"
			  "   97.0  970 ms   100.0           [none: root of the stack]\n");
}

static void test_neighbours_of_nobody(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(glob_list_done) struct glob_list names = {};
	const struct report_options options = {};

	(void)state;
	made_training(&made);
	assert_int_equal(glob_list_add(&names, "no such function"), 0);
	assert_int_equal(report_neighbours(&made.profile, &names, true, &options, stdout), -ENODATA);
}

static void test_json(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	const struct report_options options = { .json = true, .max_rows = 1 };
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *edges = NULL;

	(void)state;
	made_training(&made);
	made.profile.frames[5].name = "not\xffUTF-8\x1b";
	text = report_text(&made.profile, &options);
	assert_string_equal(
		text, "{\n \"samples\": 100,\n \"weight\": 1000000000,\n \"unit\": \"ns\",\n \"by\": \"function\",\n"
		      " \"rows\": [\n  {\n   \"name\": \"not\xef\xbf\xbdUTF-8\\u001B\",\n   \"kind\": \"native\",\n"
		      "   \"builtin\": false,\n   \"file\": \"/src/gemm.cpp\",\n   \"file_label\": \"gemm.cpp\",\n"
		      "   \"line\": 7,\n"
		      "   \"module\": \"/usr/lib/libtorch_cpu.so\",\n   \"self\": 500000000,\n"
		      "   \"self_share\": 50.000,\n   \"total\": 650000000,\n   \"total_share\": 65.000,\n"
		      "   \"samples\": 65\n  }\n ],\n \"left_out\": 8\n}\n");
	edges = neighbours_text("sorted", true, true);
	assert_non_null(strstr(edges, "\"callers\": [\n    {\n     \"name\": \"walk\""));
	assert_non_null(strstr(edges, "\"of_it\": 100.000"));
}

static void assert_held(const struct held_time *held, unsigned columns, const char *expected)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	report_held(held, columns, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_what_was_held(void **state)
{
	const struct held_time whole = { 1000, 801, 1000, 30, 1000 }, part = { 1000, 801, 900, 30, 850 };

	(void)state;
	assert_held(&whole, 0, "80.1 % with the GIL, 3.0 % collecting garbage\n");
	assert_held(&part, 0, "80.1 % with the GIL, 3.0 % collecting garbage (unknown: 10.0 %, 15.0 %)\n");
	assert_held(&part, 60, "80.1 % with the GIL, 3.0 % collecting garbage\n");
	assert_held(&part, 24, "GIL 80.1 %, GC 3.0 %\n");
	assert_held(&part, 1, "GIL 80.1 %, GC 3.0 %\n");
	assert_held(&(struct held_time){ 1000, 0, 0, 0, 0 }, 0, "");
	assert_held(&(struct held_time){ 0 }, 0, "");
}

static void test_full_disk(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct report_options options = {};
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	made_training(&made);
	assert_true(report_print(&made.profile, &options, full) < 0);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_wide_characters_are_not_split),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_without_weights),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_200_columns),
		cmocka_unit_test(test_40_columns_by_total),
		cmocka_unit_test(test_colour),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_deep_stack),
		cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_by_line),
		cmocka_unit_test(test_by_module),
		cmocka_unit_test(test_by_task),
		cmocka_unit_test(test_by_wait),
		cmocka_unit_test(test_longest_waits),
		cmocka_unit_test(test_no_waits),
		cmocka_unit_test(test_waits_fit),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_neighbours_of_nobody),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_what_was_held),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
