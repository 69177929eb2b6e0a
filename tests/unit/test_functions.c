/* SPDX-License-Identifier: MIT */
/* Functions of SQL against values known from elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/sql.h"

static int setup(void **state)
{
	static const char rows[] =
		"CREATE TABLE n(x); INSERT INTO n VALUES (1), (2), (3), (4), (NULL), ('none');"
		"INSERT INTO function VALUES(1, 'main', NULL, 'python', NULL, '/a/b/m.py', 1, NULL),"
		" (2, 'eval', NULL, 'native', 'internal', NULL, NULL, NULL), (3, 'a;b', NULL, 'native', NULL, NULL, NULL, NULL),"
		" (4, 'sys', NULL, 'kernel', NULL, NULL, NULL, NULL), (5, 'outer', NULL, 'native', NULL, NULL, NULL, NULL);"
		"INSERT INTO frame(frame, kind, function, line, is_eval, inlined_into) VALUES(1, 'python', 1, 7, 0, NULL),"
		" (2, 'native', 2, NULL, 1, NULL), (3, 'native', 3, NULL, 0, 5), (4, 'kernel', 4, NULL, 0, NULL),"
		" (5, 'native', 5, NULL, 0, NULL);"
		"INSERT INTO stack VALUES(1, NULL, 1, 0), (2, 1, 2, 1), (3, 2, 3, 2), (4, 3, 4, 3);";
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    sqlite3_exec(db, catalogue_schema_sql, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, rows, NULL, NULL, NULL) != SQLITE_OK || sql_attach(db) < 0)
		return -1;
	*state = db;
	return 0;
}

static int teardown(void **state)
{
	return sqlite3_close(*state) == SQLITE_OK ? 0 : -1;
}

/* The one value of a query, as SQLite's text; NULL: "NULL"; a mistake: its message. */
static void expect(sqlite3 *db, const char *sql, const char *wanted)
{
	sqlite3_stmt *statement = NULL;
	const char *text;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	if (sqlite3_step(statement) != SQLITE_ROW)
		text = sqlite3_errmsg(db);
	else
		text = (const char *)sqlite3_column_text(statement, 0);
	if (strcmp(text ? text : "NULL", wanted) != 0)
		fail_msg("%s: %s, not %s", sql, text ? text : "NULL", wanted);
	sqlite3_finalize(statement);
}

static void times_have_parts(void **state)
{
	/* date -u -d @1714566645.25: Wed May 1 12:30:45 2024, ISO week 18 */
	expect(*state, "SELECT year(1714566645.25)", "2024");
	expect(*state, "SELECT quarter(1714566645.25)", "2");
	expect(*state, "SELECT month(1714566645.25)", "5");
	expect(*state, "SELECT week(1714566645.25)", "18");
	expect(*state, "SELECT day(1714566645.25)", "1");
	expect(*state, "SELECT dayofweek(1714566645.25)", "3");
	expect(*state, "SELECT dayofyear(1714566645.25)", "122");
	expect(*state, "SELECT hour(1714566645.25)", "12");
	expect(*state, "SELECT minute(1714566645.25)", "30");
	expect(*state, "SELECT second(1714566645.25)", "45.25");
	expect(*state, "SELECT date_part('hours', '2024-05-01T12:30:45Z')", "12");
	expect(*state, "SELECT hour(-1)", "23");
	expect(*state, "SELECT hour(NULL)", "NULL");
	expect(*state, "SELECT hour('nonsense')", "NULL");
	expect(*state, "SELECT hour(1e300)", "NULL");
	expect(*state, "SELECT to_timestamp('2024-05-01 12:30:45.25')", "1714566645.25");
	expect(*state, "SELECT to_timestamp('2024-05-01 14:30:45+02:00')", "1714566645.0");
	expect(*state, "SELECT to_timestamp('2024-05-01')", "1714521600.0");
	expect(*state, "SELECT to_timestamp('soon')",
	       "a time is seconds since 1970, or a text like 2024-05-01 12:30:00");
	expect(*state, "SELECT time_text(1714566645.25)", "2024-05-01 12:30:45.250");
	expect(*state, "SELECT time_text(1714566645.9999)", "2024-05-01 12:30:46.000");
	expect(*state, "SELECT interval_seconds('1 day 2 hours')", "93600.0");
	expect(*state, "SELECT abs(now() - unixepoch()) < 2", "1");
	expect(*state, "SELECT count(DISTINCT now()) FROM n", "1");
}

static void times_are_cut(void **state)
{
	expect(*state, "SELECT time_text(date_trunc('year', 1714566645.25))", "2024-01-01 00:00:00.000");
	expect(*state, "SELECT time_text(date_trunc('quarter', 1714566645.25))", "2024-04-01 00:00:00.000");
	expect(*state, "SELECT time_text(date_trunc('month', 1714566645.25))", "2024-05-01 00:00:00.000");
	expect(*state, "SELECT time_text(date_trunc('week', 1714566645.25))", "2024-04-29 00:00:00.000");
	expect(*state, "SELECT time_text(date_trunc('day', 1714566645.25))", "2024-05-01 00:00:00.000");
	expect(*state, "SELECT time_text(date_trunc('minute', 1714566645.25))", "2024-05-01 12:30:00.000");
	expect(*state, "SELECT date_trunc('second', -0.5)", "-1.0");
	expect(*state, "SELECT time_bucket('15 min', 1714566645.25)", "1714566600.0");
	expect(*state, "SELECT time_bucket(60, 1714566645.25)", "1714566600.0");
	expect(*state, "SELECT date_trunc('dow', 0)",
	       "a time is cut to year, quarter, month, week, day, hour, minute, second, millisecond");
}

/* Answers of PostgreSQL 15 to the same. */
static void percentiles_are_those_of_the_standard(void **state)
{
	expect(*state, "SELECT percentile_cont(x, 0.5) FROM n", "2.5");
	expect(*state, "SELECT percentile_cont(x, 0.9) FROM n", "3.7");
	expect(*state, "SELECT percentile_cont(0.9, x, 1) FROM n", "1.3");
	expect(*state, "SELECT percentile_disc(x, 0.5) FROM n", "2.0");
	expect(*state, "SELECT percentile_disc(0.5, x, 1) FROM n", "3.0");
	expect(*state, "SELECT percentile_disc(x, 0) FROM n", "1.0");
	expect(*state, "SELECT percentile_disc(x, 1) FROM n", "4.0");
	expect(*state, "SELECT median(x) FROM n", "2.5");
	expect(*state, "SELECT median(x) FILTER (WHERE x > 2) FROM n WHERE typeof(x) = 'integer'", "3.5");
	expect(*state, "SELECT median(x) FROM n WHERE 0", "NULL");
	expect(*state, "SELECT percentile_cont(x, 99) FROM n", "a percentile's share is a number from 0 to 1: 0.99");
	expect(*state, "SELECT percentile_cont(x, NULL) FROM n", "a percentile's share is a number from 0 to 1: 0.99");
}

/* Within 1 %, also of large, small and negative numbers. */
static void an_approximate_percentile_is_near(void **state)
{
	expect(*state,
	       "WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i LIMIT 10000),"
	       " v(x) AS (SELECT (x - 2000) * (x - 2000.0) * (x - 2000) FROM i), p(p) AS (VALUES (0), (0.01), (0.5), (0.99), (1))"
	       " SELECT count(*) FROM (SELECT p, approx_percentile(x, p) AS a, percentile_disc(x, p) AS e FROM v, p GROUP BY p)"
	       " WHERE abs(a - e) > abs(e) * 0.012",
	       "0");
	expect(*state, "SELECT approx_percentile(x, 0.5) FROM (SELECT 0 AS x UNION ALL SELECT 0)", "0.0");
	expect(*state,
	       "SELECT approx_percentile(x, 0.5) BETWEEN 0.99e300 AND 1.01e300 FROM (SELECT 1e-290 AS x UNION ALL SELECT 1e300"
	       " UNION ALL SELECT 9e999)",
	       "1");
}

static void spreads(void **state)
{
	expect(*state, "SELECT round(variance(x), 6) FROM n", "1.666667");
	expect(*state, "SELECT var_pop(x) FROM n", "1.25");
	expect(*state, "SELECT round(stddev(x + 1e9), 6) FROM n WHERE x IS NOT NULL AND typeof(x) = 'integer'",
	       "1.290994");
	expect(*state, "SELECT stddev_pop(5)", "0.0");
	expect(*state, "SELECT stddev(5)", "NULL");
}

static void regular_expressions(void **state)
{
	expect(*state, "SELECT 'torch.nn.linear' REGEXP '^torch\\.(nn|optim)\\.'", "1");
	expect(*state, "SELECT 'Torch' REGEXP 'torch'", "0");
	expect(*state, "SELECT regexpi('torch', 'Torch')", "1");
	expect(*state, "SELECT NULL REGEXP 'x'", "NULL");
	expect(*state, "SELECT count(*) FROM n WHERE x REGEXP '[12]'", "2");
	expect(*state, "SELECT 'x' REGEXP '('", "'(' is not a regular expression: Unmatched ( or \\(");
}

static void a_series_is_a_table(void **state)
{
	expect(*state, "SELECT group_concat(value) FROM generate_series(1, 5)", "1,2,3,4,5");
	expect(*state, "SELECT group_concat(value) FROM generate_series(5, 1, -2)", "5,3,1");
	expect(*state, "SELECT count(*) FROM generate_series(1, 0)", "0");
	expect(*state, "SELECT count(*) FROM generate_series(1, 9, 0)", "0");
	expect(*state, "SELECT count(*) FROM generate_series(9223372036854775806, 9223372036854775807)", "2");
	expect(*state, "SELECT count(*) FROM generate_series(NULL, 3)", "0");
	expect(*state, "SELECT sum(s.value) FROM generate_series(1, 3) AS r, generate_series(1, r.value) AS s", "10");
}

static void stacks_are_texts(void **state)
{
	expect(*state, "SELECT folded(4)", "main (m.py);outer;a:b;sys_[k]");
	expect(*state, "SELECT stack_text(4)", "sys\na;b\nouter\nmain (m.py:7)");
	expect(*state, "SELECT folded(2)", "main (m.py)");
	expect(*state, "SELECT folded(NULL)", "[no stack]");
	expect(*state, "SELECT folded(99)", "NULL");
	/* Many at once are the same texts. */
	expect(*state,
	       "SELECT count(DISTINCT folded(1 + value - value)) || folded(4) || ifnull(folded(98), '-') || stack_text(4)"
	       " FROM generate_series(1, 100)",
	       "1main (m.py);outer;a:b;sys_[k]-sys\na;b\nouter\nmain (m.py:7)");
	expect(*state, "SELECT count(folded(100 + value)) FROM generate_series(1, 100)", "0");
	expect(*state, "SELECT folded(4) || ifnull(folded(98), '-') || stack_text(4)",
	       "main (m.py);outer;a:b;sys_[k]-sys\na;b\nouter\nmain (m.py:7)");
	expect(*state, "SELECT folded(3)", "main (m.py);outer;a:b");
	/* A name that comes later is seen. */
	assert_int_equal(sqlite3_exec(*state, "UPDATE function SET name = 'late' WHERE function = 1", NULL, NULL, NULL),
			 SQLITE_OK);
	expect(*state, "SELECT folded(2)", "late (m.py)");
	/* A file of another's making: a stack before its parent, and one in a circle. */
	assert_int_equal(sqlite3_exec(*state, "INSERT INTO stack VALUES(5, 6, 4, 1), (6, NULL, 1, 0), (7, 7, 1, 0)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	expect(*state, "SELECT count(folded(100 + value)) || folded(5) FROM generate_series(1, 100)",
	       "0late (m.py);sys_[k]");
	expect(*state, "SELECT folded(7) LIKE 'late (m.py);late (m.py);%'", "1");
	assert_int_equal(
		sqlite3_exec(*state,
			     "DELETE FROM stack WHERE stack > 4; UPDATE frame SET inlined_into = 3 WHERE frame = 5",
			     NULL, NULL, NULL),
		SQLITE_OK);
	expect(*state, "SELECT count(folded(100 + value)) || (folded(3) LIKE '%a:b') FROM generate_series(1, 100)",
	       "01");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_have_parts),
		cmocka_unit_test(times_are_cut),
		cmocka_unit_test(percentiles_are_those_of_the_standard),
		cmocka_unit_test(an_approximate_percentile_is_near),
		cmocka_unit_test(spreads),
		cmocka_unit_test(regular_expressions),
		cmocka_unit_test(a_series_is_a_table),
		cmocka_unit_test(stacks_are_texts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
