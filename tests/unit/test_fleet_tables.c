/* SPDX-License-Identifier: MIT */
/* Tables of a fleet as statements, for the oldest and the newest server. tests/e2e/test_ship.py has servers run them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/fleet/fleet.h"

static const struct fleet_place new_place = { .dialect = FLEET_NEW, .database = "p", .keep_days = 30 };
static const struct fleet_place old_place = { .dialect = FLEET_OLD, .database = "p", .keep_days = 30 };

static void versions_choose_a_dialect(void **state)
{
	enum fleet_dialect dialect;

	(void)state;
	assert_int_equal(fleet_parse_version("18.16.1", &dialect), 0);
	assert_int_equal(dialect, FLEET_OLD);
	assert_int_equal(fleet_parse_version("26.7.2.1", &dialect), 0);
	assert_int_equal(dialect, FLEET_NEW);
	assert_int_equal(fleet_parse_version("19.1.1", &dialect), -EPROTONOSUPPORT);
	assert_int_equal(fleet_parse_version("1.1.54390", &dialect), -EPROTONOSUPPORT);
	assert_int_equal(fleet_parse_version("none", &dialect), -EINVAL);
}

static void the_old_server_gets_no_new_words(void **state)
{
	static const char *const words[] = { "CODEC", "LowCardinality", "DateTime64", "TTL", "deduplication" };

	(void)state;
	for (int table = 0; table < FLEET_N_TABLES; table++) {
		CLEANUP(freep) char *sql = NULL;

		assert_int_equal(fleet_create(&old_place, (enum fleet_table_id)table, false, &sql), 0);
		for (size_t i = 0; i < N_ELEMENTS(words); i++)
			assert_null(strstr(sql, words[i]));
	}
}

/* Rows of the same key become one: 18.16 has no times below a second. */
static void the_key_of_a_sample_has_its_millisecond(void **state)
{
	CLEANUP(freep) char *old = NULL, *new = NULL;

	(void)state;
	assert_int_equal(fleet_create(&old_place, FLEET_SAMPLES, false, &old), 0);
	assert_non_null(strstr(old, "run, tid, time, ms, number, block)"));
	assert_int_equal(fleet_create(&new_place, FLEET_SAMPLES, false, &new), 0);
	assert_non_null(strstr(new, "run, tid, time, number, block)"));
}

static void retention_is_a_ttl(void **state)
{
	CLEANUP(freep) char *sql = NULL, *change = NULL;

	(void)state;
	assert_int_equal(fleet_create(&new_place, FLEET_SAMPLES, false, &sql), 0);
	assert_non_null(strstr(sql, "TTL toDateTime(time) + INTERVAL 30 DAY"));
	assert_int_equal(fleet_set_ttl(&new_place, FLEET_SAMPLES, &change), 0);
	assert_string_equal(change, "ALTER TABLE p.samples_local MODIFY TTL toDateTime(time) + INTERVAL 30 DAY");
	assert_int_equal(fleet_set_ttl(&new_place, FLEET_TOTALS, &change), -ENOENT);
	assert_int_equal(fleet_set_ttl(&old_place, FLEET_SAMPLES, &change), -ENOENT);
}

static void text_is_never_sql(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(fleet_text("a' OR 1", text, sizeof text), 0);
	assert_string_equal(text, "unhex('6127204F522031')");
	assert_int_equal(fleet_text("a' OR 1", text, 23), -ENAMETOOLONG);
	assert_true(fleet_is_name("probing_2"));
	assert_false(fleet_is_name("2probing"));
	assert_false(fleet_is_name("a b"));
	assert_false(fleet_is_name("a`b"));
	assert_false(fleet_is_name(""));
}

static void each_column_has_a_wire_type_where_it_exists(void **state)
{
	(void)state;
	for (int table = 0; table < FLEET_N_TABLES; table++)
		for (size_t i = 0; i < fleet_tables[table].n_columns; i++) {
			const char *type = fleet_wire_type(&fleet_tables[table].columns[i], FLEET_NEW);

			assert_true(!type || (!strstr(type, "LowCardinality") && !strstr(type, "ALIAS")));
		}
	assert_null(fleet_wire_type(&fleet_tables[FLEET_SAMPLES].columns[7], FLEET_NEW)); /* ms */
	assert_string_equal(fleet_wire_type(&fleet_tables[FLEET_SAMPLES].columns[7], FLEET_OLD), "UInt16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_choose_a_dialect),
		cmocka_unit_test(the_old_server_gets_no_new_words),
		cmocka_unit_test(the_key_of_a_sample_has_its_millisecond),
		cmocka_unit_test(retention_is_a_ttl),
		cmocka_unit_test(text_is_never_sql),
		cmocka_unit_test(each_column_has_a_wire_type_where_it_exists),
	};

	return cmocka_run_group_tests_name("fleet_tables", tests, NULL, NULL);
}
