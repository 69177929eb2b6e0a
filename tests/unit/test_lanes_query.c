/* SPDX-License-Identifier: MIT */
/* The parameters of a timeline. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/lanes/lanes.h"

static void nothing_is_all(void **state)
{
	char sentence[LANES_SENTENCE_BYTES];
	struct lanes_query query;

	(void)state;
	assert_int_equal(lanes_query_parse("", &query, sentence), 0);
	assert_false(query.has_since || query.has_until || query.has_threads);
	assert_int_equal(query.pixels, LANES_DEFAULT_PIXELS);
	assert_int_equal(query.depth, LANES_DEFAULT_DEPTH);
}

static void each_part_is_read(void **state)
{
	char sentence[LANES_SENTENCE_BYTES];
	struct lanes_query query;

	(void)state;
	assert_int_equal(
		lanes_query_parse("since=-1.5&until=2.000000001&pixels=16&depth=0&threads=7,4242", &query, sentence),
		0);
	assert_int_equal(query.since_ns, -1500000000);
	assert_int_equal(query.until_ns, 2000000001);
	assert_int_equal(query.pixels, 16);
	assert_int_equal(query.depth, 0);
	assert_int_equal(query.n_threads, 2);
	assert_int_equal(query.threads[1], 4242);
	assert_int_equal(lanes_query_parse("threads=", &query, sentence), 0);
	assert_true(query.has_threads);
	assert_int_equal(query.n_threads, 0);
}

static void anything_else_is_refused_with_a_sentence(void **state)
{
	static const char *const wrong[] = { "since",       "since=",
					     "since=inf",   "since=0x10",
					     "since=1e3",   "since=99999999999",
					     "until=1.2.3", "pixels=15",
					     "pixels=8193", "pixels=-1",
					     "depth=257",   "depth=x",
					     "threads=a",   "threads=1;2",
					     "threads=,",   "target=x",
					     "=1",          "since=2&until=2",
					     "since=--1",   "pixels= 16",
					     "threads=-1",  "pixels=99999999999999999999999999999999999999" };
	struct lanes_query query = { .pixels = 1 };
	char sentence[LANES_SENTENCE_BYTES], text[LANES_QUERY_BYTES * 2];

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		sentence[0] = '\0';
		if (lanes_query_parse(wrong[i], &query, sentence) != -EINVAL)
			fail_msg("%s is accepted", wrong[i]);
		assert_string_not_equal(sentence, "");
	}
	strcpy(text, "threads=1");
	for (int i = 1; i < LANES_MAX_CHOSEN; i++)
		strcat(text, ",1");
	assert_int_equal(lanes_query_parse(text, &query, sentence), 0);
	strcat(text, ",1");
	query.pixels = 1;
	assert_int_equal(lanes_query_parse(text, &query, sentence), -EINVAL);
	memset(text, '1', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(lanes_query_parse(text, &query, sentence), -EINVAL);
	assert_int_equal(query.pixels, 1); /* untouched */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_all),
		cmocka_unit_test(each_part_is_read),
		cmocka_unit_test(anything_else_is_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
