/* SPDX-License-Identifier: MIT */
/* test_sql_split.c - statements in parts: the parts of three databases, put together, against the answer of all rows. */
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/sql/dialect.h"
#include "src/sql/sql.h"

enum { N_RANKS = 3 };

/* Ranks have unequal numbers of rows: an average of averages would be wrong. The last one has none. */
static const char fill[] =
	"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	"INSERT INTO t SELECT %s CASE i %% 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE NULL END, i * 7919 %% 101 - 20, "
	"CASE WHEN i %% 5 = 0 THEN NULL ELSE i * 0.5 + %d END FROM n WHERE i > 0";

static void run(sqlite3 *db, char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", sql, error);
	sqlite3_free(sql);
}

static sqlite3 *open_rank(int rank)
{
	static const int n_rows[N_RANKS] = { 40, 7, 0 };
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sql_attach(db), 0);
	run(db, sqlite3_mprintf("CREATE TABLE t(name TEXT, x INTEGER, y REAL)"));
	run(db, sqlite3_mprintf(fill, n_rows[rank], "", rank));
	return db;
}

static sqlite3 *open_all(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sql_attach(db), 0);
	run(db, sqlite3_mprintf(
			"CREATE TABLE t(host TEXT, rank INTEGER, local_rank INTEGER, name TEXT, x INTEGER, y REAL)"));
	run(db, sqlite3_mprintf(fill, 40, "'h', 0, 0,", 0));
	run(db, sqlite3_mprintf(fill, 7, "'h', 1, 1,", 1));
	return db;
}

/* Answers of all ranks in the table "answer". */
static sqlite3 *gather(const char *part)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sql_attach(db), 0);
	for (int rank = 0; rank < N_RANKS; rank++) {
		sqlite3 *one = open_rank(rank);
		sqlite3_stmt *from, *to;
		sqlite3_str *sql = sqlite3_str_new(NULL);
		char *text;

		if (sqlite3_prepare_v2(one, part, -1, &from, NULL) != SQLITE_OK)
			fail_msg("%s: %s", part, sqlite3_errmsg(one));
		sqlite3_str_appendall(sql,
				      "CREATE TABLE IF NOT EXISTS answer(host TEXT, rank INTEGER, local_rank INTEGER");
		for (int i = 0; i < sqlite3_column_count(from); i++)
			sqlite3_str_appendf(sql, ", \"%w\"", sqlite3_column_name(from, i));
		sqlite3_str_appendall(sql, ")");
		run(db, sqlite3_str_finish(sql));
		sql = sqlite3_str_new(NULL);
		sqlite3_str_appendf(sql, "INSERT INTO answer VALUES('h', %d, %d", rank, rank);
		for (int i = 0; i < sqlite3_column_count(from); i++)
			sqlite3_str_appendall(sql, ", ?");
		sqlite3_str_appendall(sql, ")");
		text = sqlite3_str_finish(sql);
		assert_int_equal(sqlite3_prepare_v2(db, text, -1, &to, NULL), SQLITE_OK);
		sqlite3_free(text);
		while (sqlite3_step(from) == SQLITE_ROW) {
			for (int i = 0; i < sqlite3_column_count(from); i++)
				sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
			assert_int_equal(sqlite3_step(to), SQLITE_DONE);
			sqlite3_reset(to);
		}
		sqlite3_finalize(from);
		sqlite3_finalize(to);
		sqlite3_close(one);
	}
	return db;
}

/* Equal names, values and order; numbers may differ by @error of their size. */
static void compare(sqlite3 *expected_db, const char *sql, sqlite3 *db, const char *whole, double error)
{
	sqlite3_stmt *expected, *found;
	int code, n_rows = 0;

	if (sqlite3_prepare_v2(expected_db, sql, -1, &expected, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(expected_db));
	if (sqlite3_prepare_v2(db, whole, -1, &found, NULL) != SQLITE_OK)
		fail_msg("%s: %s", whole, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_column_count(expected), sqlite3_column_count(found));
	while ((code = sqlite3_step(expected)) == SQLITE_ROW) {
		if (sqlite3_step(found) != SQLITE_ROW)
			fail_msg("%s: row %d is missing", whole, n_rows);
		for (int i = 0; i < sqlite3_column_count(expected); i++) {
			double wanted = sqlite3_column_double(expected, i);

			assert_string_equal(sqlite3_column_name(expected, i), sqlite3_column_name(found, i));
			if (sqlite3_column_type(expected, i) != sqlite3_column_type(found, i))
				fail_msg("%s: row %d column %d: another type", whole, n_rows, i);
			if (sqlite3_column_type(expected, i) == SQLITE_TEXT)
				assert_string_equal(sqlite3_column_text(expected, i), sqlite3_column_text(found, i));
			else if (fabs(sqlite3_column_double(found, i) - wanted) > error * fabs(wanted))
				fail_msg("%s: row %d column %d: %g, not %g", whole, n_rows, i,
					 sqlite3_column_double(found, i), wanted);
		}
		n_rows++;
	}
	assert_int_equal(code, SQLITE_DONE);
	assert_int_equal(sqlite3_step(found), SQLITE_DONE);
	sqlite3_finalize(expected);
	sqlite3_finalize(found);
}

static void check(const char *typed, double error)
{
	struct dialect dialect;
	struct sql_split split;
	sqlite3 *all = open_all(), *db;

	assert_int_equal(sql_split(typed, false, &split), 0);
	if (!split.part)
		fail_msg("%s: %s", typed, split.reason);
	assert_int_equal(sql_dialect_rewrite(typed, &dialect), 0);
	db = gather(split.part);
	compare(all, dialect.text, db, split.whole, error);
	dialect_done(&dialect);
	sql_split_done(&split);
	sqlite3_close(all);
	sqlite3_close(db);
}

static void the_answer_is_that_of_all_rows(void **state)
{
	static const char *const statements[] = {
		"SELECT count(*), count(y), sum(x), min(x), max(y), avg(y) FROM t",
		"SELECT total(x) AS total, avg(x) mean FROM t WHERE x > 3",
		"SELECT count(*), sum(x), avg(x) FROM t WHERE x > 1000",
		"SELECT name, count(*), avg(y) FROM t GROUP BY name ORDER BY name",
		"SELECT name, count(*) AS n FROM t GROUP BY 1 HAVING count(*) > 2 ORDER BY n DESC, name LIMIT 2",
		"SELECT rank, avg(x), sum(x) * 1.0 / count(*) FROM t GROUP BY rank ORDER BY rank",
		"SELECT host, name, max(x) - min(x) AS spread FROM t GROUP BY host, name ORDER BY spread DESC, 2",
		"SELECT x % 4 AS rest, round(avg(y), 3) FROM t GROUP BY x % 4 ORDER BY x % 4",
		"SELECT rank, name, x FROM t ORDER BY x DESC, y LIMIT 5",
		"SELECT name AS label, x FROM t WHERE y IS NOT NULL ORDER BY y * -1 LIMIT 3;",
		"SELECT x, x ISNULL, y IS NULL FROM t WHERE x > 70 ORDER BY x, rank",
		"SELECT t.name, max(t.x) FROM t GROUP BY t.name ORDER BY t.name DESC",
		"SELECT u.name, count(*) FROM t AS u GROUP BY u.name ORDER BY 1",
		"SELECT coalesce(name, 'none'), sum(max(x, 0)) FROM t GROUP BY coalesce(name, 'none') ORDER BY 1",
		"SELECT 1 + (x % 4), count(*) FROM t GROUP BY (x % 4) ORDER BY 0 - (x % 4)",
		"SELECT 1 + abs(x), count(*) FROM t GROUP BY abs(x) ORDER BY 0 - abs(x)",
		"SELECT CASE WHEN x % 4 THEN round(x % 4, 1) ELSE x % 4 END, count(*) FROM t GROUP BY x % 4 ORDER BY x % 4",
		"SELECT name, count(*) FROM t GROUP BY name HAVING count(*) >= 15 OR sum(x)<>0 AND max(x)==79 ORDER BY name",
		"SELECT name || '-' || count(*) label, max(name) LIKE 'a%' alike FROM t GROUP BY name ORDER BY name||'-'||count(*)",
		"SELECT count(y) IS NULL none, max(x)!=min(x) FROM t",
		"SELECT rank, name, x FROM t ORDER BY (3) DESC, y LIMIT 2",
		"SELECT x AS y, name FROM t ORDER BY ((y)) LIMIT 7",
		"SELECT avg(x) AS x FROM t WHERE x > 3",
		"SELECT CASE WHEN avg(x) > 0 THEN 'plus' ELSE 'minus' END AS sign FROM t",
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(statements); i++)
		check(statements[i], 1e-12);
}

static void percentiles_are_within_one_percent(void **state)
{
	(void)state;
	check("SELECT approx_percentile(x, 0.9), approx_percentile(y, 0.1) FROM t", 1e-12); /* the same sketch */
	check("SELECT percentile_disc(x, 0.99), percentile_disc(x, 0) FROM t", 0.01);
	check("SELECT name, percentile_disc(0.75) WITHIN GROUP (ORDER BY y DESC) FROM t WHERE name IS NOT NULL GROUP BY name "
	      "ORDER BY name",
	      0.01);
	check("SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY y DESC), percentile_cont(y, 0.3) FROM t", 0.01);
	/* Few and distant values: the one between 1.5 and 1000000 000 is none of them. */
	check("SELECT median(CASE WHEN x > 30 THEN 1e9 + x ELSE 1.5 END), name FROM t WHERE x IN (-20, 81, 62) GROUP BY name "
	      "ORDER BY name",
	      0.01);
	check("SELECT median(CASE WHEN x % 2 THEN x * 1e6 ELSE 1.5 END) FROM t WHERE x IN (23, 12, 1, 42)", 0.01);
	check("SELECT percentile_disc(exp(x), 0.5), percentile_disc(exp(x), 0.51), percentile_disc(exp(x), 0.77) FROM t",
	      0.01);
	check("SELECT median(y) FROM t WHERE x > 1000", 0);
}

static void what_is_not_understood_is_not_split(void **state)
{
	static const char *const statements[] = {
		"SELECT * FROM t",
		"SELECT name, max(x) FROM t",
		"SELECT count(DISTINCT name) FROM t",
		"SELECT group_concat(name) FROM t",
		"SELECT count(*) FROM t WHERE rank = 1",
		"SELECT rank % 2, count(*) FROM t GROUP BY rank % 2",
		"SELECT sum(rank) FROM t",
		"SELECT sum(x) FILTER (WHERE x > 3) FROM t",
		"SELECT sum(x) OVER () FROM t",
		"SELECT row_number() OVER (ORDER BY x) FROM t",
		"SELECT count(*) FROM t a, t b",
		"SELECT count(*) FROM t JOIN u USING(x)",
		"SELECT count(*) FROM (SELECT x FROM t LIMIT 3)",
		"SELECT x FROM t WHERE x = (SELECT max(x) FROM t)",
		"SELECT x FROM t UNION SELECT y FROM t",
		"WITH c AS (SELECT 1) SELECT * FROM c",
		"SELECT DISTINCT name FROM t",
		"SELECT name COLLATE NOCASE, count(*) FROM t GROUP BY name COLLATE NOCASE",
		"SELECT upper(name) AS name, count(*) FROM t GROUP BY name",
		"SELECT x FROM t ORDER BY rank * x LIMIT 3",
		"SELECT x FROM t LIMIT 3 OFFSET 2",
		"SELECT x FROM t; SELECT y FROM t",
		"SELECT count(*) FROM cluster.nodes",
		"SELECT rank_, count(*) FROM t GROUP BY rank_",
		"SELECT sum(sum(x)) FROM t",
		"SELECT 2 * x + y, count(*) FROM t GROUP BY x + y",
		"SELECT x + y > 3, count(*) FROM t GROUP BY x + y",
		"SELECT abs(x), count(*) FROM t GROUP BY (x)",
		"SELECT CAST(x AS TEXT) = count(*) FROM t GROUP BY CAST(x AS TEXT)",
		"SELECT 3 IN (x), count(*) FROM t GROUP BY (x)",
		"SELECT x, count(*) FROM t GROUP BY 1.5",
		"SELECT 2, count(*) FROM t GROUP BY 1",
		"SELECT x, count(*) FROM t GROUP BY (1)",
		"SELECT y AS o0, x FROM t ORDER BY x * -1",
		"SELECT x AS a, name AS k0, count(*) FROM t GROUP BY x, name ORDER BY x",
		"SELECT x, count(*) AS \"k0\" FROM t GROUP BY x ORDER BY x",
		"SELECT x FROM t ORDER BY max(x) LIMIT 3",
		"SELECT x AS v FROM t WHERE v > 3",
		"SELECT x AS v FROM t ORDER BY v + 1",
		"SELECT upper(name) AS v, count(*) FROM t GROUP BY lower(v)",
		"SHOW TABLES",
		"SELECT",
		"SELECT FROM",
		"SELECT (",
		"",
	};
	struct sql_split split;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(statements); i++) {
		assert_int_equal(sql_split(statements[i], false, &split), 0);
		if (split.part)
			fail_msg("%s: %s; %s", statements[i], split.part, split.whole);
		assert_non_null(split.reason);
		sql_split_done(&split);
	}
	assert_int_equal(sql_split("SELECT median(x) FROM t", true, &split), 0);
	assert_null(split.part);
	sql_split_done(&split);
}

static void a_foreign_sketch_is_checked(void **state)
{
	static const char *const texts[] = { "",
					     "z",
					     "z -1",
					     "z 1 + 2",
					     "z 1 ? 2 3",
					     "z 1 + 99999999 1",
					     "z 1 + 1 -3",
					     "z 99999999999999999999",
					     "z 1 + 35821 1",
					     "z 9223372036854775807" };
	sqlite3 *db = open_all();

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		char *sql = sqlite3_mprintf("SELECT percentile_cont_of_sketches(%Q, 0.5)", texts[i]);

		if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
			fail_msg("%s is taken", texts[i]);
		sqlite3_free(sql);
	}
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_is_that_of_all_rows),
		cmocka_unit_test(percentiles_are_within_one_percent),
		cmocka_unit_test(what_is_not_understood_is_not_split),
		cmocka_unit_test(a_foreign_sketch_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
