/* SPDX-License-Identifier: MIT */
/* test_layout.c - the table of layouts: what is refused, and what the runtime may say.
 *
 * That the table agrees with the headers of the releases is tested by
 * tests/releases_test.py.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/util.h"
#include "unwind/cpython/layout.h"

static const uint64_t debug_offsets_3_13[] = {
#include "tests/unit/debug_offsets_3_13.h"
};

static void test_refused(void **state)
{
	struct layout layout = { .version = 7 };

	(void)state;
	assert_int_equal(layout_of(0x030300f0, false, &layout), -EOPNOTSUPP);        /* 3.3 */
	assert_int_equal(layout_of(0x03630000 | 0xf0, false, &layout), -EOPNOTSUPP); /* 3.99 */
	assert_int_equal(layout_of(0x030d00b1, false, &layout), -EOPNOTSUPP);        /* a beta */
	assert_int_equal(layout_of(0x030c00f0, true, &layout), -EOPNOTSUPP);         /* 3.12 always has a GIL */
	assert_int_equal(layout.version, 7);
}

static void test_releases_differ(void **state)
{
	struct layout layout;

	(void)state;
	assert_int_equal(layout_of(0x02071200 | 0xf0, false, &layout), 0);
	assert_int_equal(layout.field[ROOT], ROOT_CURRENT_THREAD);
	assert_int_equal(layout.field[STRINGS], STRINGS_BYTES);
	assert_int_equal(layout.field[STRING_STATE], ABSENT);
	assert_int_equal(layout_of(0x030602f0, false, &layout), 0);
	assert_int_equal(layout.field[LINES], LINES_SIGNED_DELTAS);
	assert_int_equal(layout.field[CODE_FIRST_LINE], 36);
	assert_int_equal(layout_of(0x030b02f0, false, &layout), 0);
	assert_int_equal(layout.field[FRAME_ENTRY], 68);
	assert_int_equal(layout.field[CODE_VERSION], ABSENT);
	assert_int_equal(layout.frame_bytes, 70); /* up to the owner, which is a byte */
	assert_int_equal(layout_of(0x030c01f0, false, &layout), 0);
	assert_int_equal(layout.field[FRAME_ENTRY], ABSENT);
	assert_int_equal(layout.field[CODE_VERSION], 92);
}

static void test_debug_offsets(void **state)
{
	uint64_t words[N_ELEMENTS(debug_offsets_3_13)];
	unsigned n = N_ELEMENTS(words), version;
	struct layout layout;
	bool free_threaded;

	(void)state;
	memcpy(words, debug_offsets_3_13, sizeof words);
	assert_int_equal(layout_peek_debug_offsets(words, &version, &free_threaded), 0);
	assert_int_equal(version, 0x030d00f0);
	assert_false(free_threaded);
	assert_int_equal(layout_of(version, false, &layout), 0);
	assert_int_equal(layout.field[THREAD_FRAME], ABSENT);
	assert_int_equal(layout_n_words(&layout), n);
	assert_int_equal(layout_read_debug_offsets(words, n, &layout), 0);
	assert_int_equal(layout.field[THREAD_FRAME], 72);
	assert_int_equal(layout_read_debug_offsets(words, n - 1, &layout), -EOPNOTSUPP);
	words[2] = 1; /* a free-threaded build is laid out differently */
	assert_int_equal(layout_read_debug_offsets(words, n, &layout), -EOPNOTSUPP);
	words[2] = 0;
	words[5] = UINT64_MAX;
	assert_int_equal(layout_read_debug_offsets(words, n, &layout), -EOPNOTSUPP);
	words[5] = debug_offsets_3_13[5];
	words[39] = MAX_HEAD_BYTES; /* further into a code object than is ever read */
	assert_int_equal(layout_read_debug_offsets(words, n, &layout), -EOPNOTSUPP);
	words[39] = debug_offsets_3_13[39] + 2; /* no number is there */
	assert_int_equal(layout_read_debug_offsets(words, n, &layout), -EOPNOTSUPP);
	words[39] = debug_offsets_3_13[39];
	assert_int_equal(layout_read_debug_offsets(words, n, &layout), 0);
	words[0] = 0;
	assert_int_equal(layout_peek_debug_offsets(words, &version, &free_threaded), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_releases_differ),
		cmocka_unit_test(test_debug_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
