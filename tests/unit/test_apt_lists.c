/* SPDX-License-Identifier: MIT */
/* test_apt_lists.c - apt's lists of packages, plain and compressed. */
#include <lz4frame.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/cli/debian.h"

#define PLAIN "example.org_dists_stable_main_binary-amd64_Packages"
#define PACKED PLAIN ".lz4"
#define OURS "00112233445566778899aabbccddeeff00112233"
#define OTHER "ffeeddccbbaa99887766554433221100ffeeddcc"

static const char list[] = "Package: shape\nSource: shapes (1.2)\nDescription: Build-Ids: " OURS "\n\n"
			   "Package: shapes-dbg\nVersion: 1.2\nBuild-Ids: " OTHER " " OURS "\nSection: debug\n\n"
			   "Package: line-dbgsym\nBuild-Ids: " OTHER "\n\n"
			   "Package: circle-dbg\nSize: 1\n";

static char folder[] = "/tmp/probing-lists-XXXXXX";

static void put(const char *name, const void *bytes, size_t n_bytes)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(n_bytes, fwrite(bytes, 1, n_bytes, file));
	assert_int_equal(0, fclose(file));
}

static void drop(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	drop(PLAIN);
	drop(PACKED);
	return rmdir(folder);
}

static void assert_answers(void)
{
	struct apt_query queries[] = {
		{ .build_id = OURS, .candidates = { "shape-dbgsym", "line-dbgsym" } },
		{ .build_id = "0123", .candidates = { "none-dbg", "circle-dbg", "line-dbgsym" } },
		{ .build_id = "0123", .candidates = { "none-dbg" } },
		{ .candidates = { "line-dbgsym" } },
	};

	apt_lists_search(folder, queries, N_ELEMENTS(queries));
	assert_true(queries[0].has_file);
	assert_string_equal("shapes-dbg", queries[0].package);
	assert_false(queries[1].has_file);
	assert_string_equal("circle-dbg", queries[1].package);
	assert_string_equal("", queries[2].package);
	assert_string_equal("line-dbgsym", queries[3].package);
}

static void plain_list(void **state)
{
	(void)state;
	put(PLAIN, list, strlen(list));
	assert_answers();
	drop(PLAIN);
}

/* So long that lines lie across the pieces in which it is read and unpacked, and that blocks are of several pieces. */
static char *make_long(size_t *ret_bytes)
{
	const size_t n_fill = 3 << 20, n_list = strlen(list);
	char *text = malloc(2 * n_fill + n_list);

	assert_non_null(text);
	for (size_t i = 0; i < n_fill; i++)
		text[i] = text[n_fill + n_list + i] = i % 97 == 96 ? '\n' : (char)('a' + mix64(i) % 26);
	text[n_fill - 1] = '\n';
	memcpy(text + n_fill, list, n_list);
	text[n_fill + n_list] = '\n';
	*ret_bytes = 2 * n_fill + n_list;
	return text;
}

static void packed_list(void **state)
{
	const LZ4F_preferences_t blocks = { .frameInfo = { .blockSizeID = LZ4F_max4MB } };
	size_t n_text, n_packed;
	char *text = make_long(&n_text);
	char *packed = malloc(LZ4F_compressFrameBound(n_text, &blocks));

	(void)state;
	assert_non_null(packed);
	n_packed = LZ4F_compressFrame(packed, LZ4F_compressFrameBound(n_text, &blocks), text, n_text, &blocks);
	assert_false(LZ4F_isError(n_packed));
	put(PACKED, packed, n_packed);
	assert_answers();
	put(PLAIN, text, n_text);
	drop(PACKED);
	assert_answers();
	drop(PLAIN);
	free(packed);
	free(text);
}

/* A damaged file, or one of another kind, gives no answer, and parsing ends. */
static void no_list(void **state)
{
	struct apt_query query = { .build_id = OURS, .candidates = { "shape-dbgsym" } };

	(void)state;
	put(PACKED, list, strlen(list));
	apt_lists_search(folder, &query, 1);
	assert_false(query.has_file);
	drop(PACKED);
	put("another.txt", list, strlen(list));
	apt_lists_search(folder, &query, 1);
	assert_string_equal("", query.package);
	drop("another.txt");
	apt_lists_search("/nonexistent", &query, 1);
	assert_string_equal("", query.package);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_list),
		cmocka_unit_test(packed_list),
		cmocka_unit_test(no_list),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
