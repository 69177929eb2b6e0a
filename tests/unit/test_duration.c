/* SPDX-License-Identifier: MIT */
/* Lengths of time, as people write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/cli/duration.h"

static void units_multiply(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} durations[] = {
		{ "0", 0 },          { "90", 90 },      { "1.5", 1.5 },  { ".5", 0.5 },   { "500ms", 0.5 },
		{ "250us", 250e-6 }, { "90s", 90 },     { "2m", 120 },   { "2min", 120 }, { "2M", 120 },
		{ "1h", 3600 },      { "1h30m", 5400 }, { "1d", 86400 }, { "1e3", 1000 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(durations); i++) {
		double seconds = -1;

		assert_int_equal(duration_parse(durations[i].text, &seconds), 0);
		assert_true(seconds > durations[i].seconds - 1e-9 && seconds < durations[i].seconds + 1e-9);
	}
}

static void what_is_no_duration_is_refused(void **state)
{
	static const char *const texts[] = { "",         "s",   "-1",  "+1",   " 1",  "1 s",   "1x", "1h30",
					     "5parsecs", "inf", "nan", "0x10", "1s,", "1e999", "m5" };
	double seconds = -1;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		assert_int_equal(duration_parse(texts[i], &seconds), -EINVAL);
	assert_true(seconds == -1); /* untouched */
}

static void time_left_follows_the_rate(void **state)
{
	static const uint64_t second = UINT64_C(1000000000);
	static const struct {
		uint64_t elapsed_s, n_done, n_all;
		const char *text;
	} works[] = {
		{ 1, 500, 1000, "" },             /* too early */
		{ 10, 0, 1000, "" },              /* no rate */
		{ 10, 500, 0, "" },               /* no end */
		{ 10, 1000, 1000, "" },           /* at the end */
		{ 10, 250, 1000, ", 30 s left" }, /* 25 a second */
		{ 60, 100, 700, ", 6 min left" }, /* 100 a minute */
		{ 3600, 1, 4, ", 3 h left" },     /* one an hour */
		{ 3600, 1, UINT64_MAX, ", 9999 h left" },
	};
	char text[DURATION_LEFT_BYTES];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(works); i++) {
		duration_format_left(works[i].elapsed_s * second, works[i].n_done, works[i].n_all, text);
		assert_string_equal(text, works[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_left_follows_the_rate),
		cmocka_unit_test(units_multiply),
		cmocka_unit_test(what_is_no_duration_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
