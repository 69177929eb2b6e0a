/* SPDX-License-Identifier: MIT */
/* test_control_line.c - commands in the bytes of a FIFO. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/target/target.h"

/* Feed a text; returns how many commands came, the last one in *ret. */
static size_t feed(struct control_line *line, const char *text, enum control_command *ret)
{
	size_t n = 0;

	for (; *text; text++)
		n += control_line_take(line, *text, ret);
	return n;
}

static void each_word_is_its_command(void **state)
{
	static const char *const words[] = { "pause\n", "resume\n", "flush\n", "stop\n", "status\n", "dance\n" };
	struct control_line line = { .n = 0 };
	enum control_command command;

	(void)state;
	for (size_t i = 0; i <= CONTROL_UNKNOWN; i++) {
		assert_int_equal(feed(&line, words[i], &command), 1);
		assert_int_equal(command, i);
	}
}

static void space_around_does_not_matter_and_words_behind_do(void **state)
{
	struct control_line line = { .n = 0 };
	enum control_command command;

	(void)state;
	assert_int_equal(feed(&line, " \tpause \r\n", &command), 1);
	assert_int_equal(command, CONTROL_PAUSE);
	assert_int_equal(feed(&line, "pause now\n", &command), 1);
	assert_int_equal(command, CONTROL_UNKNOWN);
	assert_int_equal(feed(&line, "pauses\n", &command), 1);
	assert_int_equal(command, CONTROL_UNKNOWN);
	assert_int_equal(feed(&line, "\n  \n\r\n", &command), 0);
}

static void a_line_may_come_in_pieces(void **state)
{
	struct control_line line = { .n = 0 };
	enum control_command command;

	(void)state;
	assert_int_equal(feed(&line, "st", &command), 0);
	assert_int_equal(feed(&line, "op\npau", &command), 1);
	assert_int_equal(command, CONTROL_STOP);
	assert_int_equal(feed(&line, "se\n", &command), 1);
	assert_int_equal(command, CONTROL_PAUSE);
}

static void a_line_too_long_is_one_mistake(void **state)
{
	struct control_line line = { .n = 0 };
	enum control_command command;
	char text[3 * CONTROL_MAX_LINE];

	(void)state;
	memset(text, ' ', sizeof text);
	strcpy(text + sizeof text - 6, "stop\n");
	assert_int_equal(feed(&line, text, &command), 1);
	assert_int_equal(command, CONTROL_UNKNOWN);
	assert_int_equal(feed(&line, "stop\n", &command), 1);
	assert_int_equal(command, CONTROL_STOP);
}

static void what_a_terminal_obeys_is_not_passed_on(void **state)
{
	struct control_line line = { .n = 0 };
	enum control_command command;

	(void)state;
	assert_int_equal(feed(&line, "\033[2J\007!\n", &command), 1);
	assert_string_equal(line.text, "?[2J?!");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_word_is_its_command),
		cmocka_unit_test(space_around_does_not_matter_and_words_behind_do),
		cmocka_unit_test(a_line_may_come_in_pieces),
		cmocka_unit_test(a_line_too_long_is_one_mistake),
		cmocka_unit_test(what_a_terminal_obeys_is_not_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
