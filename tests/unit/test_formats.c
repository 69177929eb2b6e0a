/* SPDX-License-Identifier: MIT */
/* test_formats.c - exporters that others read as data, on profiles made by hand; and how a tree is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "src/export/export.h"
#include "tests/unit/export_fixture.h"

static const char *const json_formats[] = { "speedscope", "chrome", "gecko" };

/* It also refuses text that is not UTF-8. */
static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);

	if (!value)
		fail_msg("no JSON: %s", error.text);
	return value;
}

static json_t *at(json_t *value, const char *path)
{
	CLEANUP(freep) char *copy = strdup(path);
	char *rest = copy, *part;

	assert_non_null(copy);
	while (value && (part = strsep(&rest, ".")) != NULL) {
		char *end;
		size_t i = strtoul(part, &end, 10);

		if (end != part && *end == '\0' && json_is_array(value))
			value = json_array_get(value, i);
		else
			value = json_object_get(value, part);
	}
	if (!value)
		fail_msg("there is no %s", path);
	return value;
}

static double sum_of(json_t *array)
{
	double sum = 0;

	assert_true(json_is_array(array));
	for (size_t i = 0; i < json_array_size(array); i++)
		sum += json_number_value(json_array_get(array, i));
	return sum;
}

static const struct export_options plain = {};

static void test_golden(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};

	(void)state;
	made_training(&made);
	made_samples(&made);
	for (size_t i = 0; i < N_ELEMENTS(json_formats); i++) {
		CLEANUP(freep) char *text = export_text(json_formats[i], &made.profile, &plain);
		char name[64];

		snprintf(name, sizeof name, "training.%s.json", json_formats[i]);
		compare_golden(name, text);
	}
}

/* ---- What each says ---- */

static void test_speedscope_has_threads_in_order_of_time(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	json_t *root;

	(void)state;
	made_training(&made);
	made_samples(&made);
	text = export_text("speedscope", &made.profile, &plain);
	root = parse(text);
	assert_int_equal(json_array_size(at(root, "profiles")), 2);
	assert_string_equal(json_string_value(at(root, "profiles.1.name")), "pt_worker (101)");
	assert_int_equal(json_array_size(at(root, "profiles.0.samples")), 80);
	assert_true(sum_of(at(root, "profiles.0.weights")) == 800e6);
	assert_true(json_number_value(at(root, "profiles.1.endValue")) == 200000000);
	/* The worker begins with gemm and ends with what could not be read. */
	assert_int_equal(json_array_size(at(root, "profiles.1.samples.0")), 3);
	assert_int_equal(json_array_size(at(root, "profiles.1.samples.19")), 1);
	json_decref(root);
}

/* A recording of sums: the same weights, one sample for each. */
static void test_sums_alone(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL, *bytes = NULL;
	size_t n_bytes;
	json_t *root;
	FILE *out = fopen("/dev/null", "w");

	(void)state;
	made_training(&made);
	text = export_text("speedscope", &made.profile, &plain);
	root = parse(text);
	assert_int_equal(json_array_size(at(root, "profiles.0.samples")), 6);
	assert_true(sum_of(at(root, "profiles.0.weights")) == 800e6);
	json_decref(root);
	bytes = export_bytes("pprof", &made.profile, &plain, &n_bytes);
	assert_true(n_bytes > 100);
	assert_non_null(out);
	assert_int_equal(exporter_by_name("chrome")->write(&made.profile, &plain, out), -ENODATA);
	assert_int_equal(exporter_by_name("gecko")->write(&made.profile, &plain, out), -ENODATA);
	fclose(out);
}

/* Counts of events are written as such, but not if there is only time. */
static void test_events(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *speedscope = NULL, *gecko = NULL;
	FILE *out = fopen("/dev/null", "w");
	json_t *root;

	(void)state;
	made_training(&made);
	made_samples(&made);
	made.profile.unit = "page-faults";
	speedscope = export_text("speedscope", &made.profile, &plain);
	root = parse(speedscope);
	assert_string_equal(json_string_value(at(root, "profiles.0.unit")), "none");
	assert_string_equal(json_string_value(at(root, "name")), "python3 train.py (page-faults)");
	json_decref(root);
	gecko = export_text("gecko", &made.profile, &plain);
	root = parse(gecko);
	assert_string_equal(json_string_value(at(root, "threads.0.samples.weightType")), "samples");
	assert_true(sum_of(at(root, "threads.0.samples.weight")) == 800e6);
	json_decref(root);
	assert_non_null(out);
	assert_int_equal(exporter_by_name("chrome")->write(&made.profile, &plain, out), -ENOTSUP);
	fclose(out);
}

static void expect_slice(json_t *root, int i, const char *name, double ts, double dur)
{
	CLEANUP(freep) char *path = NULL;
	json_t *event;

	assert_true(asprintf(&path, "traceEvents.%d", i) > 0);
	event = at(root, path);
	assert_string_equal(json_string_value(at(event, "name")), name);
	assert_true(json_number_value(at(event, "ts")) == ts);
	assert_true(json_number_value(at(event, "dur")) == dur);
}

/* Slices are as long as samples weigh, but for an eighth of a microsecond; a wait follows what ran before it, and a gap stays one. */
static void test_chrome_slices(void **state)
{
	static const struct profile_frame function = { .kind = FRAME_NATIVE, .name = "f", .function = 1 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	int32_t stack;
	json_t *root;

	(void)state;
	stack = made_stack(&made, -1, made_frame(&made, function));
	made_thread(&made, 1, 1, "one", "one");
	made_total(&made, 1, 1, stack, 3);
	made.profile.run.started_ns = 1000000000;
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000010000, .weight = 10000, .stack = stack, .state = STATE_RUNNING });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000010500, .weight = 20000, .stack = stack, .state = STATE_IO });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000060000, .weight = 10000, .stack = stack, .state = STATE_RUNNING });
	text = export_text("chrome", &made.profile, &plain);
	root = parse(text);
	assert_int_equal(json_array_size(at(root, "traceEvents")), 2 + 2);
	expect_slice(root, 2, "f", 0, 29.875);
	expect_slice(root, 3, "f", 50, 9.875);
	json_decref(root);
}

/*
 * Callers precede their callees and end with them or later; times are eighths. Calls shorter than two are omitted.
 * Their callers continue through them, unless after a gap.
 */
static void test_chrome_slices_nest(void **state)
{
	static const struct profile_frame f = { .kind = FRAME_NATIVE, .name = "f", .function = 1 },
					  g = { .kind = FRAME_NATIVE, .name = "g", .function = 2 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	int32_t in_f, in_g, in_f_f;
	json_t *root;

	(void)state;
	in_f = made_stack(&made, -1, made_frame(&made, f));
	in_g = made_stack(&made, in_f, made_frame(&made, g));
	in_f_f = made_stack(&made, in_f, made_frame(&made, f));
	made_thread(&made, 1, 1, "one", "one");
	made_total(&made, 1, 1, in_f, 1);
	made_total(&made, 1, 1, in_g, 3);
	made_total(&made, 1, 1, in_f_f, 2);
	made.profile.run.started_ns = 1000000000;
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000001004, .weight = 1004, .stack = in_g, .state = STATE_RUNNING });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000001104, .weight = 100, .stack = in_f, .state = STATE_RUNNING });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000002004, .weight = 900, .stack = in_g, .state = STATE_RUNNING });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000003004, .weight = 1000, .stack = in_f_f, .state = STATE_RUNNING });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000009000, .weight = 90, .stack = in_f_f, .state = STATE_RUNNING });
	made_sample(&made, (struct profile_sample){
				   .time_ns = 1000010000, .weight = 1000, .stack = in_g, .state = STATE_RUNNING });
	text = export_text("chrome", &made.profile, &plain);
	root = parse(text);
	assert_int_equal(json_array_size(at(root, "traceEvents")), 2 + 5);
	expect_slice(root, 2, "f", 0, 2.875);
	expect_slice(root, 3, "g", 0, 1.875);
	expect_slice(root, 4, "f", 2, 0.875);
	expect_slice(root, 5, "f", 9, 0.875);
	expect_slice(root, 6, "g", 9, 0.875);
	json_decref(root);
}

/* ---- Deep stacks ---- */

static int32_t made_deep(struct made_profile *made, int32_t frame, int32_t from, unsigned n_calls)
{
	while (n_calls-- > 0)
		from = made_stack(made, from, frame);
	return from;
}

static void made_run(struct made_profile *made, int i, int32_t stack)
{
	made_total(made, 1, 1, stack, 1);
	made_sample(made, (struct profile_sample){ .time_ns = 1000000000 + 10000 * ((unsigned)i + 1),
						   .weight = 10000,
						   .stack = stack,
						   .state = STATE_RUNNING });
}

/* The slices of that name with this begin and end. */
static size_t count_slices(json_t *root, const char *name, double ts, double dur)
{
	json_t *events = at(root, "traceEvents");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(events); i++) {
		json_t *event = json_array_get(events, i);

		if (strcmp(json_string_value(at(event, "ph")), "X") == 0)
			n += strcmp(json_string_value(at(event, "name")), name) == 0 &&
			     json_number_value(at(event, "ts")) == ts && json_number_value(at(event, "dur")) == dur;
	}
	return n;
}

/*
 * No slice is nested deeper than 512. The output marks the omitted calls, and slices continue across stacks of similar
 * depth.
 */
static void test_chrome_deep(void **state)
{
	static const struct profile_frame f = { .kind = FRAME_NATIVE, .name = "f", .function = 1 },
					  g = { .kind = FRAME_NATIVE, .name = "g", .function = 2 };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;
	int32_t frame, at_512, at_513, at_767, at_1500;
	json_t *root;

	(void)state;
	frame = made_frame(&made, f);
	at_512 = made_deep(&made, frame, -1, 512);
	at_513 = made_deep(&made, frame, at_512, 1);
	at_767 = made_deep(&made, frame, at_513, 767 - 513);
	at_1500 = made_deep(&made, frame, at_767, 1500 - 767);
	made_thread(&made, 1, 1, "one", "one");
	made.profile.run.started_ns = 1000000000;
	made_run(&made, 0, at_512);
	made_run(&made, 1, at_513);
	made_run(&made, 2, at_767);
	made_run(&made, 3, at_1500);
	made_run(&made, 4, made_stack(&made, at_1500, made_frame(&made, g)));
	text = export_text("chrome", &made.profile, &plain);
	root = parse(text);
	/* At 512 all are present. At 513 and 767: 128, one for 256, and 129 or 383. At 1500: 128, one for 1024, 348. */
	assert_int_equal(count_slices(root, "f", 0, 49.875), 128);
	assert_int_equal(count_slices(root, "f", 0, 9.875), 512 - 128);
	assert_int_equal(count_slices(root, "[256 calls left out]", 10, 19.875), 1);
	assert_int_equal(count_slices(root, "f", 10, 19.875), 129);
	assert_int_equal(count_slices(root, "f", 20, 9.875), 383 - 129);
	assert_int_equal(count_slices(root, "[1024 calls left out]", 30, 19.875), 1);
	assert_int_equal(count_slices(root, "f", 30, 19.875), 348);
	assert_int_equal(count_slices(root, "g", 40, 9.875), 1);
	assert_int_equal(json_array_size(at(root, "traceEvents")), 2 + 512 + 1 + 383 + 1 + 348 + 1);
	json_decref(root);
}

/* ---- Which tree ---- */

static void test_inverted(void **state)
{
	static const struct export_options inverted = { .inverted = true };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL;

	(void)state;
	made_training(&made);
	text = export_text("folded", &made.profile, &inverted);
	assert_non_null(strstr(
		text,
		"do_syscall_64_[k];at::gemm<float>(int) (gemm.cpp);Trainer.train (train.py);<module> (train.py) 7\n"));
	assert_non_null(strstr(text, "\n[no stack] 3\n"));
}

/* Of 100 samples: a function with less than 10 counts as its caller's own time, or without a caller as a rest. */
static void test_min_share(void **state)
{
	static const struct export_options large = { .min_share = 0.1 },
					   larger = { .min_share = 0.1, .inverted = true };
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *text = NULL, *turned = NULL, *scope = NULL, *gecko = NULL;
	json_t *root;

	(void)state;
	made_training(&made);
	made_samples(&made);
	text = export_text("folded", &made.profile, &large);
	assert_non_null(strstr(text, "<module> (train.py);Trainer.train (train.py) 12\n"));
	assert_null(strstr(text, "do_syscall_64"));
	assert_non_null(strstr(text, "[rest] 3\n"));
	turned = export_text("folded", &made.profile, &larger);
	assert_null(strstr(turned, "do_syscall_64"));
	scope = export_text("speedscope", &made.profile, &large);
	root = parse(scope);
	assert_true(sum_of(at(root, "profiles.0.weights")) + sum_of(at(root, "profiles.1.weights")) == 1e9);
	json_decref(root);
	gecko = export_text("gecko", &made.profile, &large);
	root = parse(gecko);
	assert_true(sum_of(at(root, "threads.0.samples.weight")) == 800);
	json_decref(root);
}

/* ---- Foreign bytes ---- */

static const char *const hostile[] = { "\"},{\"x\":\"",    "\\",  "a\nb\x01\x7f", "\xff\xfe\xc3", "", "</script>",
				       "\xf0\x9f\x90\x8d", "%s%n" };

static void made_hostile(struct made_profile *made)
{
	int32_t stack = -1;

	for (size_t i = 0; i < N_ELEMENTS(hostile); i++) {
		stack = made_stack(
			made, stack,
			made_frame(made, (struct profile_frame){ .kind = (enum frame_kind)(i % FRAME_N_KINDS),
								 .name = hostile[i],
								 .file = hostile[i],
								 .module = hostile[i],
								 .build_id = hostile[i],
								 .symbol = hostile[i],
								 .line = 1 }));
		made_total(made, 1, (int32_t)i, stack, 1);
		made_thread(made, 1, (int32_t)i, hostile[i], hostile[i]);
	}
	made_samples(made);
	made->profile.run.command = hostile[3];
}

static void test_hostile_json(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};

	(void)state;
	made_hostile(&made);
	for (size_t i = 0; i < N_ELEMENTS(json_formats); i++) {
		CLEANUP(freep) char *text = export_text(json_formats[i], &made.profile, &plain);

		json_decref(parse(text)); /* which checks UTF-8, too */
	}
}

/* Bytes of a message in a gzip file, and again the same. */
static void test_pprof_is_a_gzip_file(void **state)
{
	CLEANUP(made_done) struct made_profile made = {};
	CLEANUP(freep) char *bytes = NULL, *again = NULL;
	static unsigned char message[1 << 16];
	z_stream stream = { 0 };
	size_t n_bytes, n_again;

	(void)state;
	made_hostile(&made);
	bytes = export_bytes("pprof", &made.profile, &plain, &n_bytes);
	again = export_bytes("pprof", &made.profile, &plain, &n_again);
	assert_int_equal(n_bytes, n_again);
	assert_memory_equal(bytes, again, n_bytes);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_in = (unsigned char *)bytes;
	stream.avail_in = (unsigned)n_bytes;
	stream.next_out = message;
	stream.avail_out = sizeof message;
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	/* The first field is a string, and it is empty. */
	assert_int_equal(message[0], 6 << 3 | 2);
	assert_int_equal(message[1], 0);
	inflateEnd(&stream);
}

/* Two requests with the same bytes; the second one compressed. Sums alone have no times, hostile names are valid UTF-8. */
static void test_otlp(void **state)
{
	static const struct export_options compressed = { .compress = true };
	CLEANUP(made_done) struct made_profile sums = {}, hostile = {};
	CLEANUP(freep) char *bytes = NULL, *again = NULL, *packed = NULL, *few = NULL;
	static unsigned char message[1 << 16];
	z_stream stream = { 0 };
	size_t n_bytes, n_again, n_packed, n_few;

	(void)state;
	made_hostile(&hostile);
	bytes = export_bytes("otlp", &hostile.profile, &plain, &n_bytes);
	again = export_bytes("otlp", &hostile.profile, &plain, &n_again);
	packed = export_bytes("otlp", &hostile.profile, &compressed, &n_packed);
	assert_int_equal(n_bytes, n_again);
	assert_memory_equal(bytes, again, n_bytes);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_in = (unsigned char *)packed;
	stream.avail_in = (unsigned)n_packed;
	stream.next_out = message;
	stream.avail_out = sizeof message;
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.total_out, n_bytes);
	assert_memory_equal(message, bytes, n_bytes);
	inflateEnd(&stream);
	made_training(&sums);
	few = export_bytes("otlp", &sums.profile, &plain, &n_few);
	assert_int_equal(few[0], 1 << 3 | 2); /* resource_profiles */
	assert_true(n_few > 100);
}

static void test_empty(void **state)
{
	static const struct profile empty = {};

	(void)state;
	for (size_t i = 0; exporters[i]; i++) {
		CLEANUP(freep) char *bytes = NULL;
		size_t n_bytes;
		FILE *out;
		int r;

		if (!exporters[i]->write)
			continue;
		out = open_memstream(&bytes, &n_bytes);
		assert_non_null(out);
		r = exporters[i]->write(&empty, &plain, out);
		assert_true(r == 0 || r == -ENODATA);
		fclose(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_speedscope_has_threads_in_order_of_time),
		cmocka_unit_test(test_sums_alone),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_chrome_slices),
		cmocka_unit_test(test_chrome_slices_nest),
		cmocka_unit_test(test_chrome_deep),
		cmocka_unit_test(test_inverted),
		cmocka_unit_test(test_min_share),
		cmocka_unit_test(test_hostile_json),
		cmocka_unit_test(test_pprof_is_a_gzip_file),
		cmocka_unit_test(test_otlp),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
