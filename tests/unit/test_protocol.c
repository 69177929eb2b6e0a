/* SPDX-License-Identifier: MIT */
/* Test the messages between probing and its agent: a round trip of each, and their limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/agent/agent.h"

static char bytes[PROTOCOL_MAX_BYTES + 64], text[PROTOCOL_MAX_BYTES];

static const struct {
	enum message_kind kind;
	enum protocol_end from;
	bool has_number, has_text;
} kinds[] = {
	{ MESSAGE_HELLO, PROTOCOL_PROBING, false, false },     { MESSAGE_EVALUATE, PROTOCOL_PROBING, true, true },
	{ MESSAGE_INTERRUPT, PROTOCOL_PROBING, false, false }, { MESSAGE_DETACH, PROTOCOL_PROBING, false, false },
	{ MESSAGE_WELCOME, PROTOCOL_AGENT, true, true },       { MESSAGE_STARTED, PROTOCOL_AGENT, false, false },
	{ MESSAGE_OUTPUT, PROTOCOL_AGENT, true, true },        { MESSAGE_RESULT, PROTOCOL_AGENT, true, true },
	{ MESSAGE_REFUSED, PROTOCOL_AGENT, false, true },      { MESSAGE_BYE, PROTOCOL_AGENT, false, false },
	{ MESSAGE_CONFIGURE, PROTOCOL_PROBING, false, true },  { MESSAGE_CONFIGURATION, PROTOCOL_AGENT, false, true },
	{ MESSAGE_SAMPLE, PROTOCOL_PROBING, true, false },     { MESSAGE_SAMPLING, PROTOCOL_AGENT, false, false },
	{ MESSAGE_LAYOUT, PROTOCOL_PROBING, false, true },
};

static void each_kind_comes_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
		struct message sent = { .kind = kinds[i].kind,
					.numbers = { kinds[i].has_number ? 2 : 0 },
					.text = "abc",
					.n_text = kinds[i].has_text ? 3 : 0 };
		struct message got = { 0 };
		ssize_t n = message_format(&sent, bytes);

		assert_true(n >= PROTOCOL_HEADER_BYTES);
		/* whole, or not at all */
		for (ssize_t part = 0; part < n; part++)
			assert_int_equal(message_parse(bytes, (size_t)part, kinds[i].from, &got), 0);
		assert_int_equal(message_parse(bytes, (size_t)n + 5, kinds[i].from, &got), n);
		assert_int_equal(got.kind, sent.kind);
		assert_int_equal(got.numbers[0], sent.numbers[0]);
		assert_int_equal(got.n_text, sent.n_text);
		assert_memory_equal(got.text, "abc", got.n_text);
		/* never from the other end */
		assert_int_equal(message_parse(bytes, (size_t)n, !kinds[i].from, &got), -EBADMSG);
	}
}

static void text_has_a_bound(void **state)
{
	struct message message = {
		.kind = MESSAGE_OUTPUT, .numbers = { 1 }, .text = text, .n_text = PROTOCOL_MAX_OUTPUT
	};
	struct message got;
	uint32_t n_bytes = PROTOCOL_HEADER_BYTES + 4 + PROTOCOL_MAX_OUTPUT + 1;

	(void)state;
	assert_int_equal(message_format(&message, bytes), n_bytes - 1);
	message.n_text++;
	assert_int_equal(message_format(&message, bytes), -EMSGSIZE);
	memcpy(bytes, &n_bytes, sizeof n_bytes);
	/* without waiting for the rest */
	assert_int_equal(message_parse(bytes, PROTOCOL_HEADER_BYTES, PROTOCOL_AGENT, &got), -EBADMSG);
	message = (struct message){ .kind = MESSAGE_HELLO, .text = text, .n_text = 1 };
	assert_int_equal(message_format(&message, bytes), -EMSGSIZE);
}

static void numbers_have_bounds(void **state)
{
	struct message message = { .kind = MESSAGE_RESULT, .numbers = { OUTCOME_N } }, got;
	ssize_t n = message_format(&message, bytes);

	(void)state;
	assert_int_equal(message_parse(bytes, (size_t)n, PROTOCOL_AGENT, &got), -EBADMSG);
	message.numbers[0]--;
	n = message_format(&message, bytes);
	assert_int_equal(message_parse(bytes, (size_t)n, PROTOCOL_AGENT, &got), n);
}

static void other_versions_and_kinds_are_refused(void **state)
{
	struct message message = { .kind = MESSAGE_HELLO }, got;
	ssize_t n = message_format(&message, bytes);
	uint16_t word;

	(void)state;
	word = PROTOCOL_VERSION + 1;
	memcpy(bytes + 6, &word, sizeof word);
	assert_int_equal(message_parse(bytes, (size_t)n, PROTOCOL_PROBING, &got), -EPROTONOSUPPORT);
	word = PROTOCOL_VERSION;
	memcpy(bytes + 6, &word, sizeof word);
	for (unsigned kind = 0; kind < UINT16_MAX; kind++) {
		word = (uint16_t)kind;
		memcpy(bytes + 4, &word, sizeof word);
		if (kind == 0 || kind > MESSAGE_LAYOUT)
			assert_int_equal(message_parse(bytes, (size_t)n, PROTOCOL_PROBING, &got), -EBADMSG);
	}
	message.kind = 0;
	assert_int_equal(message_format(&message, bytes), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_comes_back),
		cmocka_unit_test(text_has_a_bound),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(other_versions_and_kinds_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
