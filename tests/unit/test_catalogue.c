/* SPDX-License-Identifier: MIT */
/* Test the description of tables, and its use by connections, also read-only ones and with older files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/store.h"

static char path[64];

static sqlite3 *open_file(int flags)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_URI, NULL), SQLITE_OK);
	assert_int_equal(series_register(db), SQLITE_OK);
	return db;
}

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", sql, error);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t answer;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	answer = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return answer;
}

static int setup(void **state)
{
	sqlite3 *db;

	(void)state;
	snprintf(path, sizeof path, "/tmp/probing-catalogue-%d.db", (int)getpid());
	unlink(path);
	db = open_file(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	run(db, catalogue_schema_sql);
	return sqlite3_close(db) == SQLITE_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void tables_are_found(void **state)
{
	const struct catalogue_table *table = catalogue_find("main", "SAMPLE");

	(void)state;
	assert_non_null(table);
	assert_string_equal(catalogue_find_column(table, "weight")->unit, "ns");
	assert_null(catalogue_find_column(table, "nothing"));
	assert_null(catalogue_find("python", "sample"));
	assert_non_null(catalogue_find("python", "backtrace")->query);
	for (size_t i = 0; catalogue_tables[i]; i++)
		assert_true(catalogue_tables[i]->n_columns > 0 && catalogue_tables[i]->doc[0]);
}

/* The file alone contains the description of its tables. */
static void what_a_row_is_stands_in_the_file(void **state)
{
	sqlite3 *db = open_file(SQLITE_OPEN_READONLY);

	(void)state;
	assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema WHERE type IN ('table', 'view')"
				    " AND sql NOT LIKE '%(' || char(10) || '  -- %'"),
			 0);
	assert_int_equal(number(db, "SELECT count(*) FROM hot_function"), 0);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_reader_gets_schemas(void **state)
{
	sqlite3 *db = open_file(SQLITE_OPEN_READONLY);

	(void)state;
	run(db, "PRAGMA query_only = ON");
	assert_int_equal(catalogue_register(db), SQLITE_OK);
	assert_int_equal(number(db, "PRAGMA query_only"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM python.backtrace"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.tables WHERE remarks IS NULL"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.columns WHERE remarks IS NULL"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'stack_path'"),
			 3);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A file of before these views, and a missing column that one of them needs. */
static void an_older_file_gets_temporary_views(void **state)
{
	sqlite3 *db = open_file(SQLITE_OPEN_READWRITE);

	(void)state;
	run(db, "DROP VIEW thread_time; DROP VIEW timeline; DROP VIEW gil;"
		"CREATE TABLE sample(timestamp, pid, tid, cpu, weight, verdict, stack_end, stack, state);"
		"CREATE VIEW broken AS SELECT nowhere FROM sample");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	db = open_file(SQLITE_OPEN_READONLY);
	assert_int_equal(catalogue_register(db), SQLITE_OK);
	assert_int_equal(number(db, "SELECT count(*) FROM thread_time"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'main'"
				    " AND table_name = 'thread_time' AND remarks LIKE 'The time of each thread%'"),
			 1);
	assert_int_equal(
		number(db, "SELECT count(*) FROM information_schema.tables WHERE table_name IN ('gil', 'timeline')"),
		0);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'thread_time'"),
			 8);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'broken'"), 0);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A foreign database has the information schema only, and no views of a recording. */
static void another_database_gets_information_alone(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	run(db, "CREATE TABLE mine(x INTEGER NOT NULL, y)");
	assert_int_equal(catalogue_register(db), SQLITE_OK);
	assert_int_equal(
		number(db, "SELECT count(*) FROM information_schema.tables WHERE table_schema <> 'information_schema'"),
		1);
	assert_int_equal(number(db, "SELECT ordinal_position FROM information_schema.columns WHERE column_name = 'y'"),
			 2);
	assert_int_equal(
		number(db, "SELECT is_nullable = 'NO' FROM information_schema.columns WHERE column_name = 'x'"), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_found),
		cmocka_unit_test(what_a_row_is_stands_in_the_file),
		cmocka_unit_test(a_reader_gets_schemas),
		cmocka_unit_test(an_older_file_gets_temporary_views),
		cmocka_unit_test(another_database_gets_information_alone),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
