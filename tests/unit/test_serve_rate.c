/* SPDX-License-Identifier: MIT */
/* test_serve_rate.c - how many requests a client may make: bursts, refilling, and who shares a bucket. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/serve/rate.h"

enum { START_MS = 1000000 };

static struct rate rate;

static int begin(void **state)
{
	(void)state;
	rate_init(&rate);
	return 0;
}

static bool ask(const char *from, bool is_known, uint64_t now_ms)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	uint64_t wait_ms;

	if (inet_pton(AF_INET, from, &v4.sin_addr) == 1)
		return rate_take(&rate, (struct sockaddr *)&v4, is_known, now_ms, &wait_ms);
	assert_int_equal(inet_pton(AF_INET6, from, &v6.sin6_addr), 1);
	return rate_take(&rate, (struct sockaddr *)&v6, is_known, now_ms, &wait_ms);
}

static unsigned ask_all(const char *from, bool is_known, uint64_t now_ms)
{
	unsigned n = 0;

	while (ask(from, is_known, now_ms))
		n++;
	return n;
}

static void a_burst_then_one_at_a_time(void **state)
{
	(void)state;
	assert_int_equal(ask_all("10.0.0.1", true, START_MS), RATE_KNOWN_BURST);
	assert_false(ask("10.0.0.1", true, START_MS + RATE_KNOWN_MS - 1));
	assert_int_equal(ask_all("10.0.0.1", true, START_MS + RATE_KNOWN_MS), 1);
	assert_int_equal(ask_all("10.0.0.1", true, START_MS + 4 * RATE_KNOWN_MS), 3);
	assert_int_equal(ask_all("10.0.0.1", true, 10 * START_MS), RATE_KNOWN_BURST);
}

static void the_time_to_wait(void **state)
{
	uint64_t wait_ms = 0;

	(void)state;
	while (rate_take(&rate, NULL, false, START_MS, &wait_ms))
		;
	assert_int_equal(wait_ms, RATE_OTHER_MS);
	assert_false(rate_take(&rate, NULL, false, START_MS + wait_ms - 1, &wait_ms));
	assert_int_equal(wait_ms, 1);
	assert_true(rate_take(&rate, NULL, false, START_MS + RATE_OTHER_MS, &wait_ms));
}

static void guesses_lock_nobody_out(void **state)
{
	(void)state;
	assert_int_equal(ask_all("10.0.0.1", false, START_MS), RATE_OTHER_BURST);
	assert_int_equal(ask_all("10.0.0.1", true, START_MS), RATE_KNOWN_BURST);
	assert_int_equal(ask_all("10.0.0.2", false, START_MS), RATE_OTHER_BURST);
}

static void addresses_of_one_client(void **state)
{
	(void)state;
	assert_int_equal(ask_all("::ffff:10.0.0.1", true, START_MS), RATE_KNOWN_BURST);
	assert_false(ask("10.0.0.1", true, START_MS));
	assert_int_equal(ask_all("2001:db8::1", true, START_MS), RATE_KNOWN_BURST);
	assert_false(ask("2001:db8::ffff:1", true, START_MS));
	assert_true(ask("2001:db8:0:1::1", true, START_MS));
}

static void a_full_table_forgets_who_was_silent(void **state)
{
	(void)state;
	assert_int_equal(ask_all("10.1.0.0", true, START_MS), RATE_KNOWN_BURST);
	assert_int_equal(ask_all("10.1.0.1", true, START_MS + 1), RATE_KNOWN_BURST);
	for (unsigned i = 2; i <= RATE_CLIENTS; i++) {
		struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr = { htonl(0x0a010000 + i) } };
		uint64_t wait_ms;

		assert_true(rate_take(&rate, (struct sockaddr *)&v4, true, START_MS + 2, &wait_ms));
	}
	assert_false(ask("10.1.0.1", true, START_MS + 2));
	assert_true(ask("10.1.0.0", true, START_MS + 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_burst_then_one_at_a_time, begin),
		cmocka_unit_test_setup(the_time_to_wait, begin),
		cmocka_unit_test_setup(guesses_lock_nobody_out, begin),
		cmocka_unit_test_setup(addresses_of_one_client, begin),
		cmocka_unit_test_setup(a_full_table_forgets_who_was_silent, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
