/* SPDX-License-Identifier: MIT */
/* Test the agent's settings: each key, its range, and the message for other values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"

static char why[CONFIG_MAX_WHY], text[CONFIG_MAX_TEXT];

static const char *format(const struct config *config, const char *name)
{
	config_format(config, (unsigned)config_find(name, strlen(name)), text);
	return text;
}

static void values_are_kept_and_formatted(void **state)
{
	struct config config = { 0 };
	double number = 0;

	(void)state;
	assert_string_equal(format(&config, "probing.sample_rate"), "default");
	assert_false(config_number(&config, &config_sample_rate, &number));
	assert_int_equal(config_assign(&config, "probing.sample_rate=0.1", why), 0);
	assert_string_equal(format(&config, "sample_rate"), "0.1");
	assert_true(config_number(&config, &config_sample_rate, &number));
	assert_true(number == 0.1);
	assert_int_equal(config_assign(&config, "sample_rate=10", why), 0);
	assert_string_equal(format(&config, "sample_rate"), "10");
	assert_int_equal(config_assign(&config, "sample_rate=0.00005", why), 0);
	assert_string_equal(format(&config, "sample_rate"), "0.00005");
	assert_int_equal(config_assign(&config, "sample_rate=default", why), 0);
	assert_string_equal(format(&config, "sample_rate"), "default");
	assert_false(config_is_on(&config, &config_follow_forks));
	assert_int_equal(config_assign(&config, "follow_forks=on", why), 0);
	assert_true(config_is_on(&config, &config_follow_forks));
	assert_string_equal(format(&config, "follow_forks"), "on");
}

static void what_is_wrong_says_what_is_allowed(void **state)
{
	static const struct {
		const char *assignment, *says;
	} cases[] = {
		{ "nonsense=1", "there is no key nonsense: the keys are probing.crash, probing.eval," },
		{ "", "there is no key" },
		{ "=", "there is no key" },
		{ "probing.=1", "there is no key" },
		{ "sample_rate", "sample_rate has no value: write sample_rate=VALUE" },
		{ "sample_rate=", "probing.sample_rate cannot be ''" },
		{ "sample_rate=11", "cannot be '11': it is 0.00005 to 10 s, or default" },
		{ "sample_rate=0", "0.00005 to 10 s" },
		{ "sample_rate=-1", "0.00005 to 10 s" },
		{ "sample_rate=1e1", "0.00005 to 10 s" },
		{ "sample_rate=0,1", "0.00005 to 10 s" },
		{ "sample_rate=.", "0.00005 to 10 s" },
		{ "sample_rate=1.2.3", "0.00005 to 10 s" },
		{ "sample_rate=nan", "0.00005 to 10 s" },
		{ "sample_rate=0.1 ", "0.00005 to 10 s" },
		{ "eval=maybe", "probing.eval cannot be 'maybe': it is on or off, or default" },
	};
	struct config config = { 0 }, before = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(config_assign(&config, cases[i].assignment, why), -EINVAL);
		assert_non_null(strstr(why, cases[i].says));
	}
	assert_memory_equal(&config, &before, sizeof config);
}

static void texts_are_checked(void **state)
{
	struct config config = { 0 };
	char longest[CONFIG_MAX_TEXT + 16];

	(void)state;
	assert_null(config_text(&config, &config_trace));
	assert_int_equal(config_assign(&config, "trace=train.step,Net.forward,\xc3\xa4.b", why), 0);
	assert_string_equal(config_text(&config, &config_trace), "train.step,Net.forward,\xc3\xa4.b");
	assert_string_equal(format(&config, "probing.trace"), "train.step,Net.forward,\xc3\xa4.b");
	for (const char *const *bad =
		     (const char *const[]){ "trace=", "trace=a,", "trace=,a", "trace=a,,b", "trace=a b", "trace=a.",
					    "trace=1a", "trace=a\n", "trace=a;b", NULL };
	     *bad; bad++) {
		assert_int_equal(config_assign(&config, *bad, why), -EINVAL);
		assert_non_null(strstr(why, "it is names of functions with commas between them"));
	}
	memset(longest, 'a', sizeof longest);
	memcpy(longest, "trace=", 6);
	for (size_t i = 100; i < sizeof longest; i += 100)
		longest[i] = ',';
	longest[6 + CONFIG_MAX_TEXT - 1] = '\0';
	assert_int_equal(config_assign(&config, longest, why), 0);
	longest[6 + CONFIG_MAX_TEXT - 1] = 'a';
	longest[6 + CONFIG_MAX_TEXT] = '\0';
	assert_int_equal(config_assign(&config, longest, why), -EINVAL);
	assert_int_equal(config_assign(&config, "trace=default", why), 0);
	assert_null(config_text(&config, &config_trace));
}

static void eval_stays_off(void **state)
{
	struct config config = { 0 };

	(void)state;
	assert_true(config_is_on(&config, &config_eval));
	assert_int_equal(config_assign(&config, "eval=off", why), 0);
	assert_int_equal(config_assign(&config, "eval=off", why), 0);
	assert_int_equal(config_assign(&config, "eval=on", why), -EPERM);
	assert_int_equal(config_assign(&config, "eval=default", why), -EPERM);
	assert_false(config_is_on(&config, &config_eval));
}

static void each_key_is_documented(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_config_keys; i++) {
		assert_int_equal(config_find(config_keys[i]->name, strlen(config_keys[i]->name)), (int)i);
		assert_true(strncmp(config_keys[i]->name, "probing.", 8) == 0);
		assert_true(strlen(config_keys[i]->doc) > 20 && config_keys[i]->by_default);
		assert_true(config_keys[i]->type != CONFIG_TEXT ||
			    (config_keys[i]->allowed && config_keys[i]->is_valid));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_kept_and_formatted),
		cmocka_unit_test(what_is_wrong_says_what_is_allowed),
		cmocka_unit_test(texts_are_checked),
		cmocka_unit_test(eval_stays_off),
		cmocka_unit_test(each_key_is_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
