/* SPDX-License-Identifier: MIT */
/* Files of probes: what each key takes, and the place and the sentence of each mistake. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/probes/probes.h"

static void all_keys_are_taken(void **state)
{
	static const char text[] = "# a training\n"
				   "functions:\n"
				   "  - train.step\n"
				   "  - model.Net.forward\n"
				   "variables: [loss@train.step]\n"
				   "interval: 0.25\n"
				   "sampling: {sample_rate: 0.01, retention_days: 7}\n"
				   "torch: on\n";
	char why[PROBES_WHY_BYTES];
	struct probes probes;
	double rate = 0;

	(void)state;
	assert_int_equal(probes_parse(text, sizeof text - 1, why, &probes), 0);
	assert_int_equal(probes.n_functions, 2);
	assert_string_equal(probes.functions[1], "model.Net.forward");
	assert_int_equal(probes.n_variables, 1);
	assert_string_equal(probes.variables[0], "loss@train.step");
	assert_true(probes.interval_s == 0.25);
	assert_int_equal(probes.n_assignments, 2);
	assert_string_equal(probes.assignments[0], "sample_rate=0.01");
	assert_true(config_number(&probes.config, &config_sample_rate, &rate));
	assert_true(rate == 0.01);
	assert_true(probes.torch);
	probes_done(&probes);
	assert_int_equal(probes_parse("functions: [f]\n", 15, why, &probes), 0);
	assert_true(probes.interval_s == 1.0);
	assert_false(probes.torch);
	probes_done(&probes);
}

static void mistakes_have_a_place_and_say_what_is_allowed(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "1:1: the file is empty: docs/rings.md has an example" },
		{ "- f\n", "1:1: keys are expected here: functions, variables, interval, sampling, torch" },
		{ "functions: [f]\nfuncs: [g]\n",
		  "2:1: there is no key 'funcs': the keys are functions, variables, interval, sampling and torch" },
		{ "functions: f\n",
		  "1:12: a list is expected here, each item a function: write - MODULE.FUNCTION or MODULE.CLASS.METHOD" },
		{ "functions:\n  - f\n  - a b\n",
		  "3:5: 'a b' is not a function: write MODULE.FUNCTION or MODULE.CLASS.METHOD" },
		{ "functions: [f, f]\n", "1:16: f is listed twice" },
		{ "functions: [f]\nfunctions: [g]\n", "2:1: functions is set twice" },
		{ "variables: [loss]\n", "1:13: 'loss' is not a variable: write VARIABLE@FUNCTION or VARIABLE@MODULE" },
		{ "variables: [a.b@f]\n",
		  "1:13: 'a.b@f' is not a variable: write VARIABLE@FUNCTION or VARIABLE@MODULE" },
		{ "functions: [[f]]\n", "1:13: a function is expected here" },
		{ "functions: [\"f\\0g\"]\n", "1:13: a function is expected here" },
		{ "functions: [f]\ninterval: 0\n", "2:11: interval cannot be '0': it is 0.01 to 3600 seconds" },
		{ "functions: [f]\ninterval: 1e1\n", "2:11: interval cannot be '1e1': it is 0.01 to 3600 seconds" },
		{ "torch: maybe\n", "1:8: torch cannot be 'maybe': it is on or off" },
		{ "torch: off\n", "1:1: the file names no probe: list functions or variables" },
		{ "sampling: {rate: 1}\n",
		  "1:12: there is no key 'rate' in sampling: the keys are sample_rate and retention_days" },
		{ "sampling: {sample_rate: 1, sample_rate: 2}\n", "1:28: sample_rate is set twice" },
		{ "sampling: {sample_rate: 99}\n",
		  "1:25: probing.sample_rate cannot be '99': it is 0.00005 to 10 s, or default" },
		{ "functions: [f]\n---\nfunctions: [g]\n", "2:1: a second document begins here: write one" },
	};
	char why[PROBES_WHY_BYTES];
	struct probes probes;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(probes_parse(wrong[i].text, strlen(wrong[i].text), why, &probes), -EINVAL);
		assert_string_equal(why, wrong[i].why);
	}
	assert_int_equal(probes_parse("functions: [f\n: }", 17, why, &probes), -EINVAL);
	assert_non_null(strstr(why, ": this is not YAML: "));
	assert_int_equal(probes_parse("", PROBES_MAX_BYTES + 1, why, &probes), -EFBIG);
}

static void names_are_bounded(void **state)
{
	char text[PROBES_MAX_NAME + 64] = "functions: [", why[PROBES_WHY_BYTES];
	char many[16 * PROBES_MAX_NAMES];
	size_t n;
	struct probes probes;

	(void)state;
	memset(text + 12, 'f', PROBES_MAX_NAME);
	strcpy(text + 12 + PROBES_MAX_NAME, "]");
	assert_int_equal(probes_parse(text, strlen(text), why, &probes), 0);
	probes_done(&probes);
	strcpy(text + 12 + PROBES_MAX_NAME, "f]");
	assert_int_equal(probes_parse(text, strlen(text), why, &probes), -EINVAL);
	n = (size_t)snprintf(many, sizeof many, "functions:\n");
	for (int i = 0; i <= PROBES_MAX_NAMES; i++)
		n += (size_t)snprintf(many + n, sizeof many - n, "- f%d\n", i);
	assert_int_equal(probes_parse(many, strlen(many), why, &probes), -EINVAL);
	assert_string_equal(why, "258:3: more than 256 names");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys_are_taken),
		cmocka_unit_test(mistakes_have_a_place_and_say_what_is_allowed),
		cmocka_unit_test(names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
