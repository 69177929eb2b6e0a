/* SPDX-License-Identifier: MIT */
/* Parts of paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/util.h"

static void the_last_part(void **state)
{
	(void)state;
	assert_string_equal(path_base_name("/usr/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(path_base_name("train.py"), "train.py");
	assert_string_equal(path_base_name("folder/"), "folder/");
}

static void without_its_ending(void **state)
{
	static const struct {
		const char *path, *stem;
	} cases[] = {
		{ "train.db", "train" },
		{ "a.b/train", "a.b/train" },
		{ "a.b/train.tar.gz", "a.b/train.tar" },
		{ ".hidden", ".hidden" },
		{ "a/.hidden", "a/.hidden" },
		{ "a/.hidden.db", "a/.hidden" },
		{ "", "" },
		{ "a.b/", "a.b/" },
		{ "train.", "train" },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		assert_int_equal(path_stem_bytes(cases[i].path), strlen(cases[i].stem));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_part),
		cmocka_unit_test(without_its_ending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
