/* SPDX-License-Identifier: MIT */
/* test_export.c - exporters, on profiles made by hand. */
#include <errno.h>
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

/* What an SVG draws, without its style and script. */
static char *drawing_of(const char *svg)
{
	const char *start = strstr(svg, "<g class=\"frames\">");
	const char *end = strstr(svg, "<script>");

	assert_non_null(start);
	assert_non_null(end);
	return strndup(start, (size_t)(end - start));
}

static void test_table(void **state)
{
	(void)state;
	assert_string_equal(exporter_by_name("folded")->name, "folded");
	assert_string_equal(exporter_by_name("svg")->name, "svg");
	assert_string_equal(exporter_by_path("a.callgrind")->name, "callgrind");
	assert_string_equal(exporter_by_path("a.prof")->name, "pstats");
	assert_string_equal(exporter_by_path("a.html")->name, "html");
	assert_null(exporter_by_name("sv"));
	assert_string_equal(exporter_by_path("/tmp/x.y/a.svg")->name, "svg");
	assert_string_equal(exporter_by_path("A.SVG")->name, "svg");
	assert_string_equal(exporter_by_path("a.folded")->name, "folded");
	assert_string_equal(exporter_by_path("a.collapsed")->name, "folded");
	assert_null(exporter_by_path("a.db"));
	assert_null(exporter_by_path(".svg"));
	assert_null(exporter_by_path(""));
	for (size_t i = 0; exporters[i]; i++) {
		assert_non_null(exporters[i]->summary);
		assert_int_equal(exporters[i]->endings[0], '.');
	}
}

static void test_folded_golden(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options split = { .by_thread = true, .lines = true };
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *text_split = NULL;

	(void)state;
	made_training(&made);
	text = export_text("folded", &made.profile, &plain);
	compare_golden("training.folded", text);
	assert_int_equal(folded_sum(text), 100);
	text_split = export_text("folded", &made.profile, &split);
	compare_golden("training_threads_lines.folded", text_split);
	assert_int_equal(folded_sum(text_split), 100);
}

/* Weights of time if samples weigh differently, and all of it despite rounding; else the number of samples. */
static void test_folded_weights(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *times = NULL, *events = NULL, *counts = NULL;

	(void)state;
	made_training(&made);
	for (size_t i = 0; i < made.profile.n_totals; i++)
		made.profile.totals[i].weight = i == 0 ? 1000600 : 2400;
	times = export_text("folded", &made.profile, &(struct export_options){ 0 });
	assert_non_null(strstr(times, "<module> (train.py);Trainer.train (train.py) 1001\n"));
	assert_int_equal(folded_sum(times), (1000600 + (made.profile.n_totals - 1) * 2400 + 500) / 1000);
	made.profile.unit = "page-faults";
	events = export_text("folded", &made.profile, &(struct export_options){ 0 });
	assert_int_equal(folded_sum(events), 1000600 + (made.profile.n_totals - 1) * 2400);
	profile_drop_weights(&made.profile);
	counts = export_text("folded", &made.profile, &(struct export_options){ 0 });
	assert_int_equal(folded_sum(counts), 100);
}

/* Without weights the output has only the number of samples. */
static void test_counts(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *svg = NULL, *scope = NULL, *gecko = NULL, *grind = NULL, *none = NULL;
	struct export_options options = { 0 };
	size_t n_bytes;
	FILE *out;

	(void)state;
	made_training(&made);
	made_samples(&made);
	profile_drop_weights(&made.profile);
	svg = export_text("svg", &made.profile, &options);
	assert_non_null(strstr(svg, "97 % · 97 samples<"));
	scope = export_text("speedscope", &made.profile, &options);
	assert_non_null(strstr(scope, "\"unit\":\"none\""));
	assert_non_null(strstr(scope, "\"endValue\":80"));
	gecko = export_text("gecko", &made.profile, &options);
	assert_non_null(strstr(gecko, "\"weightType\":\"samples\""));
	grind = export_text("callgrind", &made.profile, &options);
	assert_non_null(strstr(grind, "events: samples\ntotals: 100\n"));
	out = open_memstream(&none, &n_bytes);
	assert_non_null(out);
	assert_int_equal(exporter_by_name("chrome")->write(&made.profile, &options, out), -ENOTSUP);
	assert_int_equal(exporter_by_name("pstats")->write(&made.profile, &options, out), -ENOTSUP);
	fclose(out);
}

static void test_svg_golden(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options options = { .title = "train.py & more" };
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *again = NULL;
	CLEANUP(freep) char *drawing = NULL;

	(void)state;
	made_training(&made);
	text = export_text("svg", &made.profile, &options);
	drawing = drawing_of(text);
	compare_golden("training_drawing.svg", drawing);
	again = export_text("svg", &made.profile, &options);
	assert_string_equal(text, again);
	/* The page loads nothing from the network. */
	assert_int_equal(count(text, "http"), count(text, "http://www.w3.org/"));
	assert_null(strstr(text, "href"));
	assert_null(strstr(text, "@import"));
	assert_null(strstr(text, "url("));
}

static void test_callgrind_golden(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options options = { .title = "train.py" };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	made_training(&made);
	text = export_text("callgrind", &made.profile, &options);
	compare_golden("training.callgrind", text);
}

/* Direct and mutual recursion: a function below itself has another name, and nothing counts twice. */
static void test_callgrind_recursion(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	int32_t f, g, stack;

	(void)state;
	f = made_frame(&made, (struct profile_frame){ .kind = FRAME_NATIVE, .name = "f", .file = "f.c", .line = 3 });
	g = made_frame(&made, (struct profile_frame){ .kind = FRAME_NATIVE, .name = "g", .file = "f.c", .line = 9 });
	stack = made_stack(&made, made_stack(&made, made_stack(&made, -1, f), g), f);
	made_total(&made, 1, 1, made_stack(&made, stack, f), 7);
	text = export_text("callgrind", &made.profile, &plain);
	assert_non_null(strstr(text, "totals: 70000000 7\n"));
	/* all calls f, f calls g, g calls f'2, and that itself. */
	assert_int_equal(count(text, "calls=7 "), 4);
	assert_int_equal(count(text, " f'2\n"), 1);
	assert_int_equal(count(text, "\n3 70000000 7\n"), 3);
	assert_int_equal(count(text, "\n9 70000000 7\n"), 1);
}

/* Python reads its own format for all names. Each function has its count and its total time. */
static void test_pstats(void **state)
{
	static const char reader[] =
		"python3 -c 'import sys, marshal; s = marshal.load(sys.stdin.buffer); "
		"print(sorted((k[2], k[0][-8:], v[0], round(v[2], 2), round(v[3], 2), "
		"sorted((c[2], w[0], round(w[3], 2)) for c, w in v[4].items())) for k, v in s.items() if k[2] in (\"walk\", \"sorted\")))'";
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *said = NULL;

	(void)state;
	made_training(&made);
	said = read_back("pstats", &made.profile, &plain, reader);
	assert_string_equal(said,
			    "[('sorted', '/python3', 5, 0.05, 0.05, [('walk', 5, 0.05)]), "
			    "('walk', 'train.py', 20, 0.15, 0.2, [('Trainer.train', 20, 0.2), ('walk', 20, 0.2)])]\n");
}

static void test_pstats_numbers(void **state)
{
	static const char reader[] = "python3 -c 'import sys, marshal; s = marshal.load(sys.stdin.buffer); "
				     "print([v[:4] for v in s.values()])'";
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *said = NULL;

	(void)state;
	made_total(&made, 1, 1, -1, 1);
	made.profile.totals[0].samples = 123456789012345;
	made.profile.totals[0].weight = 1500000000;
	said = read_back("pstats", &made.profile, &plain, reader);
	assert_string_equal(said, "[(123456789012345, 123456789012345, 1.5, 1.5)]\n");
}

static void test_html(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *said = NULL;
	static struct profile_sample samples[] = {
		{ .weight = 10000000, .thread = 0, .stack = 1, .verdict = VERDICT_VERIFIED, .gil = ANSWER_YES },
		{ .weight = 20000000, .thread = 0, .stack = 1, .verdict = VERDICT_NO_PYTHON, .gil = ANSWER_UNKNOWN },
		{ .weight = 20000000, .thread = 1, .stack = -1, .verdict = VERDICT_NO_PYTHON, .gil = ANSWER_NO },
	};

	(void)state;
	made_training(&made);
	made.profile.samples = samples;
	made.profile.n_samples = N_ELEMENTS(samples);
	said = read_back(
		"html", &made.profile, &plain,
		HTML_DATA
		"n = d[\"nodes\"]; c = d[\"cells\"]; print(d[\"samples\"], d[\"scale\"], c[\"samples\"], sum(c[\"value\"]), n[\"up\"][:3], "
		"[(a[\"name\"], {v: sum(s) for v, s in zip(a[\"values\"], a[\"sums\"]) if sum(s)}) for a in d[\"aspects\"]], "
		"[(t[\"name\"], t[\"tid\"], t[\"cells\"]) for t in d[\"threads\"]], "
		"d[\"strings\"][d[\"labels\"][\"text\"][n[\"label\"][1]] - 1])'");
	assert_string_equal(said, "100 10000000 None 100 [0, 1, 1] "
				  "[('verdict', {'verified': 1, 'no_python': 4}), ('gil', {'held': 1, 'not held': 2})] "
				  "[('python3', 100, 6), ('pt_worker', 101, 3)] <module> (train.py)\n");
	made.profile.samples = NULL;
}

/* The same function name in two modules is two functions everywhere. */
static void test_same_name_in_two_modules(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *svg = NULL;
	CLEANUP(freep) char *folded = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct profile_frame frame = { .kind = FRAME_NATIVE,
					       .name = "init",
					       .module = i ? "/lib/a.so" : "/lib/b.so" };

		made_total(&made, 1, 1, made_stack(&made, -1, made_frame(&made, frame)), 5);
	}
	svg = export_text("svg", &made.profile, &plain);
	assert_int_equal(count(svg, "<title>init (a.so)\n"), 1);
	assert_int_equal(count(svg, "<title>init (b.so)\n"), 1);
	assert_int_equal(count(svg, "/lib/a.so"), 1);
	folded = export_text("folded", &made.profile, &plain);
	assert_string_equal(folded, "init (a.so) 5\ninit (b.so) 5\n");
}

static void test_groups(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	struct export_options by_thread = { .by_thread = true };
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) char *split = NULL;
	int32_t stack;

	(void)state;
	stack = made_stack(&made, -1, made_frame(&made, (struct profile_frame){ .kind = FRAME_NATIVE, .name = "f" }));
	made_total(&made, 9, 9, stack, 1);
	made_total(&made, 7, 8, stack, 2);
	made_total(&made, 7, 7, stack, 3);
	made_total(&made, 7, 6, -1, 4);
	made_thread(&made, 9, 9, "child;x", "child;x");
	made_thread(&made, 7, 8, "worker", "main");
	made_thread(&made, 7, 7, "main", "main");
	text = export_text("folded", &made.profile, &plain);
	assert_string_equal(text, "child:x (9);f 1\n"
				  "main (7);[no stack] 4\n"
				  "main (7);f 5\n");
	split = export_text("folded", &made.profile, &by_thread);
	assert_string_equal(split, "child:x (9);child:x (9);f 1\n"
				   "main (7);main (7);f 3\n"
				   "main (7);thread (6);[no stack] 4\n"
				   "main (7);worker (8);f 2\n");
}

static void test_empty(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *folded = NULL;
	CLEANUP(freep) char *svg = NULL;

	(void)state;
	folded = export_text("folded", &made.profile, &plain);
	assert_string_equal(folded, "");
	svg = export_text("svg", &made.profile, &plain);
	assert_non_null(strstr(svg, "0 samples"));
	assert_non_null(strstr(svg, "width=\"1180\""));
}

static void test_deep_stack(void **state)
{
	enum { DEPTH = 20000 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *folded = NULL;
	CLEANUP(freep) char *svg = NULL;
	CLEANUP(freep) char *callgrind = NULL, *html = NULL;
	int32_t frames[2], stack = -1;

	(void)state;
	for (int i = 0; i < 2; i++)
		frames[i] = made_frame(
			&made,
			(struct profile_frame){ .kind = FRAME_PYTHON, .name = i ? "odd" : "even", .file = "n.py" });
	for (int i = 0; i < DEPTH; i++)
		stack = made_stack(&made, stack, frames[i % 2]);
	made_total(&made, 1, 1, stack, 3);
	folded = export_text("folded", &made.profile, &plain);
	assert_int_equal(count(folded, ";"), DEPTH - 1);
	assert_int_equal(folded_sum(folded), 3);
	svg = export_text("svg", &made.profile, &plain);
	assert_int_equal(count(svg, "<g><title>"), DEPTH + 1);
	callgrind = export_text("callgrind", &made.profile, &plain);
	assert_int_equal(count(callgrind, "calls=3 "), 5);
	html = export_text("html", &made.profile, &plain);
	assert_non_null(strstr(html, "\"left_out\":18000,\"depth\":2000,"));
}

/* Boxes too narrow to see are omitted and counted; their weight stays in their callers. */
static void test_narrow_boxes(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *svg = NULL;
	int32_t outer, rare;

	(void)state;
	outer = made_stack(&made, -1,
			   made_frame(&made, (struct profile_frame){ .kind = FRAME_PYTHON, .name = "outer" }));
	rare = made_frame(&made, (struct profile_frame){ .kind = FRAME_NATIVE, .name = "rare" });
	made_total(&made, 1, 1, outer, 99999);
	made_total(&made, 1, 1, made_stack(&made, made_stack(&made, outer, rare), rare), 1);
	svg = export_text("svg", &made.profile, &plain);
	assert_non_null(strstr(svg, "2 boxes below 0.005 % left out"));
	assert_non_null(strstr(svg, "<title>outer\n100 % · 100000 samples · 1000 s</title>"));
	assert_null(strstr(svg, "<title>rare"));
}

/* With too many boxes for a browser, the limit rises, and the message changes with it. */
static void test_many_boxes(void **state)
{
	enum { N_CHAINS = 10000, DEPTH = 10 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *svg = NULL;
	char(*names)[16] = calloc(N_CHAINS, sizeof *names);

	(void)state;
	assert_non_null(names);
	for (int i = 0; i < N_CHAINS; i++) {
		int32_t stack = -1, frame;

		snprintf(names[i], sizeof names[i], "f%d", i);
		frame = made_frame(&made, (struct profile_frame){ .kind = FRAME_NATIVE, .name = names[i] });
		for (int depth = 0; depth < DEPTH; depth++)
			stack = made_stack(&made, stack, frame);
		made_total(&made, 1, 1, stack, i == 0 ? N_CHAINS : 1);
	}
	svg = export_text("svg", &made.profile, &plain);
	free(names);
	assert_int_equal(count(svg, "<g><title>"), 1 + DEPTH);
	assert_non_null(strstr(svg, " · 99990 boxes below 0.01 % left out"));
}

/* A multiplier is enough chance here, and the same everywhere. */
static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static void test_many_stacks(void **state)
{
	enum { N_FRAMES = 500, N_STACKS = 100000 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *folded = NULL;
	CLEANUP(freep) char *svg = NULL;
	char names[N_FRAMES][16], expected[64];
	uint64_t seed = 1, sum = 0;

	(void)state;
	for (int i = 0; i < N_FRAMES; i++) {
		snprintf(names[i], sizeof names[i], "f%d", i);
		made_frame(&made,
			   (struct profile_frame){ .kind = (enum frame_kind)(i % FRAME_N_KINDS), .name = names[i] });
	}
	for (int i = 0; i < N_STACKS; i++) {
		int32_t parent = i == 0 ? -1 : (int32_t)(next_random(&seed) % (unsigned)i);
		uint64_t samples = next_random(&seed) % 5;

		made_stack(&made, parent, (int32_t)(next_random(&seed) % N_FRAMES));
		made_total(&made, 1, 1, i, samples);
		sum += samples;
	}
	folded = export_text("folded", &made.profile, &plain);
	assert_int_equal(folded_sum(folded), sum);
	svg = export_text("svg", &made.profile, &plain);
	snprintf(expected, sizeof expected, "<title>all\n100 %% · %ju samples", (uintmax_t)sum);
	assert_non_null(strstr(svg, expected));
}

/* Errors of the stream reach the caller. */
static void test_full_disk(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};

	(void)state;
	made_training(&made);
	made_samples(&made);
	for (size_t i = 0; exporters[i]; i++) {
		FILE *full;

		if (!exporters[i]->write)
			continue;
		full = fopen("/dev/full", "w");
		assert_non_null(full);
		assert_true(exporters[i]->write(&made.profile, &plain, full) < 0);
		fclose(full);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_folded_golden),
		cmocka_unit_test(test_folded_weights),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_svg_golden),
		cmocka_unit_test(test_callgrind_golden),
		cmocka_unit_test(test_callgrind_recursion),
		cmocka_unit_test(test_pstats),
		cmocka_unit_test(test_pstats_numbers),
		cmocka_unit_test(test_html),
		cmocka_unit_test(test_same_name_in_two_modules),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_deep_stack),
		cmocka_unit_test(test_narrow_boxes),
		cmocka_unit_test(test_many_boxes),
		cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
