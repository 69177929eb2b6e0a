/* SPDX-License-Identifier: MIT */
/* test_glob_list.c - lists of words, and what they mean. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/glob_list.h"

static void commas_part_words(void **state)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };

	(void)state;
	assert_int_equal(glob_list_add_list(&words, ",,"), -EINVAL);
	assert_int_equal(glob_list_add_list(&words, ""), -EINVAL);
	assert_int_equal(glob_list_add_list(&words, "12,,busy-*,"), 0);
	assert_int_equal(words.n, 2);
	assert_string_equal(words.words[0], "12");
	assert_string_equal(words.words[1], "busy-*");
	assert_false(glob_list_are_numbers(&words));
	assert_true(glob_list_have_number(&words, 12));
	assert_false(glob_list_have_number(&words, 1));
	assert_false(glob_list_have_number(&words, -1)); /* "busy-*" is none */
}

static void globs_are_of_whole_names(void **state)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };

	(void)state;
	assert_false(glob_list_match(&words, ""));
	assert_int_equal(glob_list_add_list(&words, "busy-?,main"), 0);
	assert_true(glob_list_match(&words, "busy-1"));
	assert_false(glob_list_match(&words, "busy-12"));
	assert_false(glob_list_match(&words, "mainly"));
	assert_false(glob_list_match(&words, "Thread.main"));
}

/* Waits, native operators and listed comprehensions have names that look like globs. */
static void a_name_fits_itself(void **state)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };

	(void)state;
	assert_int_equal(glob_list_add(&words, "[lock]"), 0);
	assert_int_equal(glob_list_add(&words, "operator[]"), 0);
	assert_true(glob_list_match(&words, "[lock]"));
	assert_true(glob_list_match(&words, "k")); /* and it is a glob still */
	assert_true(glob_list_match_function(&words, "operator[]"));
	assert_false(glob_list_match(&words, "[gil]"));
}

static void functions_go_by_their_last_name_too(void **state)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };

	(void)state;
	assert_int_equal(glob_list_add(&words, "step"), 0);
	assert_int_equal(glob_list_add(&words, "f<a, b>"), 0);
	assert_true(glob_list_match_function(&words, "step"));
	assert_true(glob_list_match_function(&words, "Trainer.step"));
	assert_true(glob_list_match_function(&words, "f<a, b>"));
	assert_false(glob_list_match_function(&words, "step.inner"));
	assert_false(glob_list_match_function(&words, "step."));
	assert_false(glob_list_match_function(&words, "footstep"));
}

static void numbers_are_whole_words(void **state)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };

	(void)state;
	assert_true(glob_list_are_numbers(&words));
	assert_int_equal(glob_list_add_list(&words, "7,007"), 0);
	assert_true(glob_list_are_numbers(&words));
	assert_true(glob_list_have_number(&words, 7));
	assert_int_equal(glob_list_add_list(&words, "7x"), 0);
	assert_false(glob_list_are_numbers(&words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_part_words),       cmocka_unit_test(globs_are_of_whole_names),
		cmocka_unit_test(a_name_fits_itself),      cmocka_unit_test(functions_go_by_their_last_name_too),
		cmocka_unit_test(numbers_are_whole_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
