/* SPDX-License-Identifier: MIT */
/* What importers share: numbers of text, values with commas, numbers for keys, calls spread over stacks, marshal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/import/csv.h"
#include "src/import/decimal.h"
#include "src/import/ids.h"
#include "src/import/lines.h"
#include "src/import/marshal.h"
#include "src/import/unzip.h"
#include "src/import/wire.h"

static void test_decimals(void **state)
{
	static const struct {
		const char *text;
		double value;
		bool is_number;
	} cases[] = {
		{ "12", 12, true },     { "1.5", 1.5, true },   { "-0.25", -0.25, true }, { ".5", 0.5, true },
		{ "3e+02", 300, true }, { "25e-1", 2.5, true }, { "", 0, false },         { ".", 0, false },
		{ "1,5", 0, false },    { "1e", 0, false },     { "1e999", 0, false },    { "12x", 0, false },
		{ "nan", 0, false },    { "-", 0, false },
	};
	double value;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(piece_decimal(piece_of(cases[i].text), &value), cases[i].is_number);
		if (cases[i].is_number)
			assert_true(value == cases[i].value);
	}
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ns; /* -1: none */
	} cases[] = { { "801ns", 801 }, { "1.0240us", 1024 }, { "737.97ms", 737970000 }, { "1.86200s", 1862000000 },
		      { "12", -1 },     { "us", -1 },         { "1.5parsec", -1 },       { "1e300s", -1 } };
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(piece_time(piece_of(cases[i].text), &ns), cases[i].ns >= 0);
		if (cases[i].ns >= 0)
			assert_int_equal(ns, cases[i].ns);
	}
}

static void check_fields(const char *line, size_t n, const char *const *wanted)
{
	struct piece fields[CSV_MAX_FIELDS];

	assert_int_equal(csv_split(piece_of(line), fields), n);
	for (size_t i = 0; i < n; i++)
		assert_true(piece_is(fields[i], wanted[i]));
}

static void test_commas(void **state)
{
	(void)state;
	check_fields("1, 2 ,3", 3, (const char *const[]){ "1", "2", "3" });
	check_fields("\"a, b\",,\"c\"", 3, (const char *const[]){ "a, b", "", "c" });
	check_fields(",%,ms,", 4, (const char *const[]){ "", "%", "ms", "" });
	check_fields("\"say \"\"so\"\"\",x", 2, (const char *const[]){ "say \"\"so\"\"", "x" });
	check_fields("\"open", 1, (const char *const[]){ "open" });
}

static void test_lines(void **state)
{
	struct piece rest = piece_of("one\r\n\nlast"), line;

	(void)state;
	assert_true(next_line(&rest, &line) && piece_is(line, "one"));
	assert_true(next_line(&rest, &line) && piece_is(line, ""));
	assert_true(next_line(&rest, &line) && piece_is(line, "last"));
	assert_false(next_line(&rest, &line));
}

/* Many keys, each with the number it was given, and one that is the beginning of another. */
static void test_ids(void **state)
{
	CLEANUP(ids_done) struct ids ids = { 0 };
	char key[32];
	int64_t id;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(key, sizeof key, "key %d", i);
			assert_int_equal(ids_add(&ids, key, strlen(key), &id), round == 0);
			assert_int_equal(id, i + 1);
		}
	}
	assert_int_equal(ids_add(&ids, "key", 3, &id), 1);
	assert_int_equal(ids_add(&ids, "", 0, &id), 1);
	assert_int_equal(ids_add(&ids, "", 0, &id), 0);
	assert_int_equal(id, 5002);
}

static void test_marshal(void **state)
{
	/* marshal.dumps({("a", -2): 1.5}, 4), with one more reference to its text. */
	static const uint8_t bytes[] = "{)\x03\xda\x01"
				       "a\x69\xfe\xff\xff\xff"
				       "r\x00\x00\x00\x00g\x00\x00\x00\x00\x00\x00\xf8\x3f"
				       "0";
	CLEANUP(marshal_done) struct marshal marshal;
	const struct marshal_value *key;

	(void)state;
	assert_int_equal(marshal_read(bytes, sizeof bytes - 1, &marshal), 0);
	key = marshal_item(&marshal, &marshal.values[0], 0);
	assert_int_equal(key->n_items, 3);
	assert_true(piece_is(marshal_item(&marshal, key, 0)->text, "a"));
	assert_int_equal(marshal_item(&marshal, key, 1)->integer, -2);
	assert_true(piece_is(marshal_item(&marshal, key, 2)->text, "a"));
	assert_true(marshal_item(&marshal, &marshal.values[0], 1)->real == 1.5);
	assert_null(marshal_item(&marshal, key, 3));
}

/* Truncated data is refused everywhere, and so are cycles and endless containers. */
static void test_marshal_damaged(void **state)
{
	static const uint8_t itself[] = "\xa9\x01r\x00\x00\x00\x00",
			     text[] = "{)\x02z\x01xi\x01\x00\x00\x00i\x02\x00\x00\x00"
				      "0";
	uint8_t deep[4096];

	(void)state;
	memset(deep, 0, sizeof deep);
	for (size_t i = 0; i < sizeof deep; i += 2)
		deep[i] = ')', deep[i + 1] = 1;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		CLEANUP(marshal_done) struct marshal marshal;

		assert_int_equal(marshal_read(text, n, &marshal), -EBADMSG);
	}
	for (int i = 0; i < 2; i++) {
		CLEANUP(marshal_done) struct marshal marshal;

		assert_int_equal(
			marshal_read(i == 0 ? itself : deep, i == 0 ? sizeof itself - 1 : sizeof deep, &marshal),
			-EBADMSG);
	}
}

static void test_wire(void **state)
{
	static const char bytes[] = "\x08\x96\x01\x12\x02hi\x1d\x01\x00\x00\x00";
	struct cursor in = wire_within((struct piece){ bytes, sizeof bytes - 1 });
	struct wire_field field;

	(void)state;
	assert_true(wire_next(&in, &field) && field.number == 1 && field.value == 150 && !field.bytes.at);
	assert_true(wire_next(&in, &field) && field.number == 2 && piece_is(field.bytes, "hi"));
	assert_true(wire_next(&in, &field) && field.number == 3 && field.value == 1);
	assert_false(wire_next(&in, &field) || in.failed);
	in = wire_within((struct piece){ "\x12\x7fx", 3 });
	assert_false(wire_next(&in, &field));
	assert_true(in.failed);
}

static void test_unzip(void **state)
{
	/* printf hello | gzip -n9 */
	static const uint8_t packed[] = { 0x1f, 0x8b, 8, 0, 0,    0,    0,    0,    2, 3, 0xcb, 0x48, 0xcd,
					  0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0,    0 };
	CLEANUP(freep) uint8_t *bytes = NULL;
	size_t n = 0;

	(void)state;
	assert_true(is_gzip(packed, sizeof packed));
	assert_int_equal(unzip(packed, sizeof packed, 100, &bytes, &n), 0);
	assert_int_equal(n, 5);
	assert_memory_equal(bytes, "hello", 5);
	assert_int_equal(unzip(packed, sizeof packed, 4, &bytes, &n), -E2BIG);
	free(TAKE(bytes));
	assert_int_equal(unzip(packed, sizeof packed, 5, &bytes, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(unzip(packed, sizeof packed - 9, 100, &bytes, &n), -EBADMSG);
}

static void test_what_may_be_unpacked(void **state)
{
	const size_t mb = 1 << 20;

	(void)state;
	assert_int_equal(unzip_most(1), 256 * mb);
	assert_int_equal(unzip_most(8 * mb), 256 * mb);
	assert_int_equal(unzip_most(20 * mb), 640 * mb);
	assert_int_equal(unzip_most(64 * mb), 2048 * mb);
	assert_int_equal(unzip_most(SIZE_MAX), 2048 * mb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decimals),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_commas),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_marshal),
		cmocka_unit_test(test_marshal_damaged),
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_unzip),
		cmocka_unit_test(test_what_may_be_unpacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
