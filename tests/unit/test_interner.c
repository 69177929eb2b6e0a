/* SPDX-License-Identifier: MIT */
/* test_interner.c - numbers of byte strings, also of those whose hashes are the same. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/interner.h"

static void assert_added(struct interner *interner, const char *text, size_t n_bytes, int expected, uint32_t number)
{
	uint32_t id = UINT32_MAX, n_found;
	const void *found;

	assert_int_equal(interner_add(interner, text, n_bytes, &id), expected);
	assert_int_equal(id, number);
	found = interner_get(interner, id, &n_found);
	assert_int_equal(n_found, n_bytes);
	if (n_bytes > 0)
		assert_memory_equal(found, text, n_bytes);
	assert_int_equal(((const char *)found)[n_bytes], '\0');
}

static void test_numbers(void **state)
{
	struct interner interner = { 0 };

	(void)state;
	assert_added(&interner, "train", 5, 1, 0);
	assert_added(&interner, "trainer", 7, 1, 1);
	assert_added(&interner, NULL, 0, 1, 2);
	assert_added(&interner, "train", 5, 0, 0);
	assert_added(&interner, "", 0, 0, 2);
	assert_added(&interner, "trainer", 7, 0, 1);
	interner_done(&interner);
}

/* The hash of the first eight bytes is 0, and remains 0 with zeros after them. */
static void test_one_hash(void **state)
{
	static const uint64_t words[2] = { HASH_START };
	const char *bytes = (const char *)words;
	struct interner interner = { 0 };

	(void)state;
	assert_int_equal(hash_words(HASH_START, bytes, 8), 0);
	assert_int_equal(hash_words(HASH_START, bytes, 16), 0);
	for (int expected = 1; expected >= 0; expected--)
		for (uint32_t n = 8; n <= sizeof words; n++)
			assert_added(&interner, bytes, n, expected, n - 8);
	interner_done(&interner);
}

static void test_many(void **state)
{
	enum { N = 100000 };
	struct interner interner = { 0 };
	char text[32];

	(void)state;
	for (int expected = 1; expected >= 0; expected--)
		for (uint32_t i = 0; i < N; i++) {
			snprintf(text, sizeof text, "function_%u", i);
			assert_added(&interner, text, strlen(text), expected, i);
		}
	interner_done(&interner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_one_hash),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
