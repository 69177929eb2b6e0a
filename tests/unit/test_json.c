/* SPDX-License-Identifier: MIT */
/* Test writing and parsing of JSON. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"
#include "base/util.h"

struct sink {
	FILE *out;
	char *text;
	size_t n;
};

static void sink_done(struct sink *sink)
{
	if (sink->out)
		fclose(sink->out);
	free(sink->text);
}

static void open_sink(struct sink *sink)
{
	sink->out = open_memstream(&sink->text, &sink->n);
	assert_non_null(sink->out);
}

static void put_document(struct json *json)
{
	to_json_object(json);
	to_json_put_string(json, "lines", "one\ntwo\x1b");
	to_json_put_string(json, "broken", "a\xff\xc3");
	to_json_put_string(json, "none", NULL);
	to_json_put_text(json, "empty", "");
	to_json_put_array(json, "numbers");
	to_json_number(json, 0.5);
	to_json_number(json, NAN);
	to_json_fixed(json, 1500, 3);
	to_json_digits(json, "-1.250", 6);
	to_json_integer(json, -3);
	to_json_array_end(json);
	to_json_put_known(json, "known", 7, true);
	to_json_put_known(json, "unknown", 7, false);
	to_json_object_end(json);
}

static void fixed_numbers_have_the_digits_they_need(void **state)
{
	static const struct {
		uint64_t value;
		unsigned decimals;
		const char *text;
	} cases[] = {
		{ 0, 0, "0" },
		{ 0, 3, "0" },
		{ 1, 3, "0.001" },
		{ 10, 3, "0.01" },
		{ 120500, 3, "120.5" },
		{ 7000, 3, "7" },
		{ 1200, 0, "1200" },
		{ UINT64_MAX, 0, "18446744073709551615" },
		{ UINT64_MAX, 19, "1.8446744073709551615" },
	};
	char text[TEXT_FIXED_BYTES];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(text_fixed(cases[i].value, cases[i].decimals, text), strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
}

#define MEMBERS                                                                                                        \
	"\"broken\":\"a\xef\xbf\xbd\xef\xbf\xbd\",\"none\":null,\"empty\":null,"                                       \
	"\"numbers\":[0.5,null,1.5,-1.250,-3],\"known\":7,\"unknown\":null}\n"

static void what_is_kept_has_the_characters_that_a_text_has(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	(void)state;
	open_sink(&sink);
	assert_int_equal(to_json_keep(NULL, &json), 0);
	put_document(&json);
	assert_int_equal(ftell(sink.out), 0);
	assert_int_equal(to_json_finish(&json, sink.out), 0);
	assert_string_equal(sink.text, "{\"lines\":\"one\\ntwo\\u001B\"," MEMBERS);
}

static void what_is_streamed_has_texts_of_one_line(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	(void)state;
	open_sink(&sink);
	assert_int_equal(to_json_open(sink.out, &json), 0);
	put_document(&json);
	assert_true(ftell(sink.out) > 0);
	assert_int_equal(to_json_finish(&json, sink.out), 0);
	assert_string_equal(sink.text, "{\"lines\":\"one two \"," MEMBERS);
}

static void an_indented_document_ends_with_one_newline(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	(void)state;
	open_sink(&sink);
	assert_int_equal(to_json_keep("  ", &json), 0);
	to_json_object(&json);
	to_json_put_bool(&json, "yes", true);
	to_json_object_end(&json);
	assert_int_equal(to_json_finish(&json, sink.out), 0);
	assert_string_equal(sink.text, "{\n  \"yes\": true\n}\n");
}

static void put_name(struct json *json)
{
	to_json_key(json, "name");
}

static void nothing_is_written_of_what_went_wrong(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	(void)state;
	open_sink(&sink);
	assert_int_equal(to_json_keep(NULL, &json), 0);
	for (int i = 0; i < 1000; i++)
		to_json_array(&json);
	for (int i = 0; i < 1000; i++)
		to_json_array_end(&json);
	assert_int_equal(to_json_finish(&json, sink.out), -EINVAL);
	assert_int_equal(ftell(sink.out), 0);
}

static int nest(unsigned n)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	open_sink(&sink);
	assert_int_equal(to_json_keep(NULL, &json), 0);
	for (unsigned i = 0; i < n; i++)
		to_json_array(&json);
	for (unsigned i = 0; i < n; i++)
		to_json_array_end(&json);
	return to_json_finish(&json, sink.out);
}

static void nesting_has_a_limit(void **state)
{
	(void)state;
	assert_int_equal(nest(JSON_MAX_DEPTH), 0);
	assert_int_equal(nest(JSON_MAX_DEPTH + 1), -EINVAL);
}

static void calls_out_of_order_are_errors(void **state)
{
	static const struct {
		const char *name, *calls; /* { } [ ] as they are, k: a name, v: a value */
		int error;
	} cases[] = {
		{ "a document", "{kvk[vv]k{}}", 0 },       { "one value", "v", 0 },
		{ "two documents", "vv", -EINVAL },        { "no document", "", -EINVAL },
		{ "not closed", "[v", -EINVAL },           { "not opened", "]", -EINVAL },
		{ "closed otherwise", "[}", -EINVAL },     { "a member without a name", "{v}", -EINVAL },
		{ "two names", "{kkv}", -EINVAL },         { "a name without a value", "{k}", -EINVAL },
		{ "a name in an array", "[kv]", -EINVAL }, { "a name of its own", "kv", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		CLEANUP(to_json_done) struct json json = { 0 };
		CLEANUP(sink_done) struct sink sink = { 0 };

		open_sink(&sink);
		assert_int_equal(to_json_keep(NULL, &json), 0);
		for (const char *call = cases[i].calls; *call; call++)
			(*call == '{'   ? to_json_object
			 : *call == '}' ? to_json_object_end
			 : *call == '[' ? to_json_array
			 : *call == ']' ? to_json_array_end
			 : *call == 'v' ? to_json_null
					: put_name)(&json);
		if (to_json_finish(&json, sink.out) != cases[i].error)
			fail_msg("%s", cases[i].name);
		assert_true((ftell(sink.out) > 0) == (cases[i].error == 0));
	}
}

static void numbers_read_back_equal(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0.0" },
		{ -0.5, "-0.5" },
		{ 0.1, "0.1" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 1e300, "1e+300" },
		{ 9007199254740992, "9007199254740992.0" },
		{ 5e-324, "4.94065645841247e-324" },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		CLEANUP(to_json_done) struct json json = { 0 };
		CLEANUP(sink_done) struct sink sink = { 0 };

		open_sink(&sink);
		assert_int_equal(to_json_keep(NULL, &json), 0);
		to_json_number(&json, cases[i].value);
		assert_int_equal(to_json_finish(&json, sink.out), 0);
		assert_true(strtod(sink.text, NULL) == cases[i].value);
		assert_int_equal(strncmp(sink.text, cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(sink.text[strlen(cases[i].text)], '\n');
	}
}

static void bytes_keep_their_nuls(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	(void)state;
	open_sink(&sink);
	assert_int_equal(to_json_keep(NULL, &json), 0);
	to_json_bytes(&json, "a\0\xc3\xa9\x7f\b/\"", 8);
	assert_int_equal(to_json_next(&json, sink.out), 0);
	to_json_bytes(&json, NULL, 0);
	assert_int_equal(to_json_finish(&json, sink.out), 0);
	assert_string_equal(sink.text, "\"a\\u0000\xc3\xa9\x7f\\b/\\\"\"\"\"\n");
}

static void empty_levels_take_no_lines(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(sink_done) struct sink sink = { 0 };

	(void)state;
	open_sink(&sink);
	assert_int_equal(to_json_keep(" ", &json), 0);
	to_json_array(&json);
	to_json_object(&json);
	to_json_object_end(&json);
	to_json_array(&json);
	to_json_array_end(&json);
	to_json_array_end(&json);
	assert_int_equal(to_json_finish(&json, sink.out), 0);
	assert_string_equal(sink.text, "[\n {},\n []\n]\n");
}

static void a_full_disk_is_an_error(void **state)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	assert_int_equal(to_json_keep(NULL, &json), 0);
	put_document(&json);
	assert_int_equal(to_json_finish(&json, full), -ENOSPC);
	fclose(full);
}

static void a_text_in_quotes_stands_on_one_line(void **state)
{
	CLEANUP(freep) char *quoted = to_json_quote("say \"a\"\nb");

	(void)state;
	assert_string_equal(quoted, "\"say \\\"a\\\" b\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_numbers_have_the_digits_they_need),
		cmocka_unit_test(what_is_kept_has_the_characters_that_a_text_has),
		cmocka_unit_test(what_is_streamed_has_texts_of_one_line),
		cmocka_unit_test(an_indented_document_ends_with_one_newline),
		cmocka_unit_test(nothing_is_written_of_what_went_wrong),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(calls_out_of_order_are_errors),
		cmocka_unit_test(numbers_read_back_equal),
		cmocka_unit_test(bytes_keep_their_nuls),
		cmocka_unit_test(empty_levels_take_no_lines),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(a_text_in_quotes_stands_on_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
