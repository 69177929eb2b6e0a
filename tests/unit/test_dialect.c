/* SPDX-License-Identifier: MIT */
/* Test SQL as people type it: its translation, unchanged statements, and positions of mistakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/dialect.h"
#include "src/sql/interval.h"
#include "src/sql/sql.h"
#include "src/store/store.h"
#include "src/sql/tokens.h"

static void expect(const char *typed, const char *wanted)
{
	CLEANUP(dialect_done) struct dialect dialect = { 0 };

	assert_int_equal(sql_dialect_rewrite(typed, &dialect), 0);
	assert_false(dialect.has_mistake);
	assert_string_equal(dialect.text, wanted);
}

static void expect_mistake(const char *typed, size_t at, const char *part)
{
	CLEANUP(dialect_done) struct dialect dialect = { 0 };

	assert_int_equal(sql_dialect_rewrite(typed, &dialect), 0);
	assert_true(dialect.has_mistake);
	if (!strstr(dialect.mistake, part))
		fail_msg("%s: %s", typed, dialect.mistake);
	assert_int_equal(dialect.mistake_at, at);
}

static void tokens_are_those_of_sqlite(void **state)
{
	static const struct {
		const char *text;
		enum token_kind kind;
		size_t n;
	} cases[] = {
		{ "abc_1$ x", TOKEN_NAME, 6 },
		{ "\xc3\xa4x+", TOKEN_NAME, 3 },
		{ "'it''s' x", TOKEN_STRING, 7 },
		{ "X'00' x", TOKEN_STRING, 5 },
		{ "'open", TOKEN_STRING, 5 },
		{ "\"a\"\"b\" x", TOKEN_QUOTED, 6 },
		{ "[a]] x", TOKEN_QUOTED, 3 },
		{ "`a` x", TOKEN_QUOTED, 3 },
		{ "1.5e-3x", TOKEN_NUMBER, 6 },
		{ "0x1Fg", TOKEN_NUMBER, 4 },
		{ ".5.", TOKEN_NUMBER, 2 },
		{ "1e", TOKEN_NUMBER, 1 },
		{ "?12a", TOKEN_PARAMETER, 3 },
		{ ":name ", TOKEN_PARAMETER, 5 },
		{ "$a::b ", TOKEN_PARAMETER, 5 },
		{ "::int", TOKEN_CAST, 2 },
		{ ":::x", TOKEN_CAST, 2 },
		{ "<=", TOKEN_MARK, 1 },
		{ "-- x\n/* y */ z", TOKEN_NAME, 1 },
		{ "/* open", TOKEN_END, 0 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		CLEANUP(tokens_done) struct tokens tokens = { 0 };

		assert_int_equal(tokens_read(cases[i].text, &tokens), 0);
		if (token_at(&tokens, 0)->kind != cases[i].kind || token_at(&tokens, 0)->n != cases[i].n)
			fail_msg("%s: kind %d, %zu bytes", cases[i].text, token_at(&tokens, 0)->kind,
				 token_at(&tokens, 0)->n);
	}
}

static void intervals_are_seconds(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} cases[] = {
		{ "5 minutes", 300 },      { "5 min", 300 },  { "1 hour", 3600 },     { "1 day 2 hours", 93600 },
		{ "1.5h", 5400 },          { "90", 90 },      { "-30 s", -30 },       { "01:30:00", 5400 },
		{ "00:00:01.5", 1.5 },     { "250ms", 0.25 }, { "2 WEEKS", 1209600 }, { " 3 d ", 259200 },
		{ "1 hour, 1 sec", 3601 },
	};
	double seconds;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		if (interval_parse(cases[i].text, strlen(cases[i].text), &seconds) != 0)
			fail_msg("%s", cases[i].text);
		assert_true(seconds > cases[i].seconds - 1e-9 && seconds < cases[i].seconds + 1e-9);
	}
	assert_int_equal(interval_parse("5 minuts", 8, &seconds), -EINVAL);
	assert_int_equal(interval_parse("", 0, &seconds), -EINVAL);
	assert_int_equal(interval_parse("minutes", 7, &seconds), -EINVAL);
	assert_int_equal(interval_parse("1:2:3:4", 7, &seconds), -EINVAL);
	assert_int_equal(interval_parse("2 months", 8, &seconds), -ERANGE);
}

static void intervals_become_numbers(void **state)
{
	(void)state;
	expect("SELECT now() - interval '5 minutes'", "SELECT now() - 300");
	expect("SELECT now() - INTERVAL '5' minute", "SELECT now() - 300");
	expect("SELECT now() - interval 5 minutes", "SELECT now() - 300");
	expect("SELECT interval '-1 hour' + 1", "SELECT (-3600) + 1");
	expect("SELECT interval '0.5 s'::text", "SELECT CAST(0.5 AS TEXT)");
	expect_mistake("SELECT interval '5 minuts'", 16, "'5 minuts' is not a duration");
	expect_mistake("SELECT interval '2 months'", 16, "no fixed length");
	/* A column of that name, and its other name. */
	expect("SELECT interval FROM t", "SELECT interval FROM t");
	expect("SELECT interval 'length' FROM t", "SELECT interval 'length' FROM t");
}

static void ordered_sets_become_arguments(void **state)
{
	(void)state;
	expect("SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY x) FROM t",
	       "SELECT percentile_cont(0.99, x, 0) FROM t");
	expect("SELECT percentile_disc(0.5) within group (order by f(a, b) + 1 DESC) FILTER (WHERE y) FROM t",
	       "SELECT percentile_disc(0.5, f(a, b) + 1 , 1) FILTER (WHERE y) FROM t");
	expect("SELECT approx_percentile(0.5) WITHIN GROUP (ORDER BY x ASC NULLS LAST)::int",
	       "SELECT CAST(approx_percentile(0.5, x , 0) AS INTEGER)");
	expect("SELECT percentile_cont(x, 0.5)", "SELECT percentile_cont(x, 0.5)");
	expect_mistake("SELECT percentile_cont() WITHIN GROUP (ORDER BY x)", 23, "a share from 0 to 1");
	expect_mistake("SELECT percentile_cont(1) WITHIN GROUP (x)", 39, "(ORDER BY expression)");
	expect_mistake("SELECT percentile_cont(1) WITHIN GROUP (ORDER BY x, y)", 50, "one expression");
}

static void casts_take_their_operand(void **state)
{
	(void)state;
	expect("SELECT a::int", "SELECT CAST(a AS INTEGER)");
	expect("SELECT t.a::int::text", "SELECT CAST(CAST(t.a AS INTEGER) AS TEXT)");
	expect("SELECT main.t.\"a\"::real", "SELECT CAST(main.t.\"a\" AS REAL)");
	expect("SELECT count(*)::double precision / 2", "SELECT CAST(count(*) AS REAL) / 2");
	expect("SELECT (1 + 2)::varchar(10) || 'x'", "SELECT CAST((1 + 2) AS TEXT) || 'x'");
	expect("SELECT sum(x) FILTER (WHERE y > (1))::int", "SELECT CAST(sum(x) FILTER (WHERE y > (1)) AS INTEGER)");
	expect("SELECT CASE WHEN CASE 1 WHEN 1 THEN 1 END THEN 2 END::text",
	       "SELECT CAST(CASE WHEN CASE 1 WHEN 1 THEN 1 END THEN 2 END AS TEXT)");
	expect("SELECT '1'::boolean", "SELECT (CAST('1' AS INTEGER) <> 0)");
	expect("SELECT '2024-05-01'::timestamp", "SELECT to_timestamp('2024-05-01')");
	expect("SELECT '5 min'::interval", "SELECT interval_seconds('5 min')");
	expect("WHERE x IN (1)::int", "WHERE x IN CAST((1) AS INTEGER)");
	expect_mistake("SELECT a::integr", 10, "there is no type integr");
	expect("SELECT $a::b, '::int', \"::int\" -- ::int", "SELECT $a::b, '::int', \"::int\" -- ::int");
}

static void other_words(void **state)
{
	(void)state;
	expect("SELECT EXTRACT(HOUR FROM t)", "SELECT date_part('HOUR', t)");
	expect("SELECT EXTRACT(epoch FROM t)::int", "SELECT CAST(date_part('epoch', t) AS INTEGER)");
	expect("SELECT a NOT ILIKE 'x%'", "SELECT a NOT LIKE 'x%'");
	expect("SELECT a ilike FROM t", "SELECT a ilike FROM t");
	expect("SELECT ilike, ilike.x FROM ilike", "SELECT ilike, ilike.x FROM ilike");
	expect("SELECT TRUE, FALSE", "SELECT TRUE, FALSE");
	expect("", "");
	expect(" ; ;-- nothing", " ; ;-- nothing");
}

static void every_place_leads_back(void **state)
{
	static const char typed[] = "SELECT a::int + interval '5 minutes' + nmae FROM t";
	CLEANUP(dialect_done) struct dialect dialect = { 0 };

	(void)state;
	assert_int_equal(sql_dialect_rewrite(typed, &dialect), 0);
	assert_string_equal(dialect.text, "SELECT CAST(a AS INTEGER) + 300 + nmae FROM t");
	assert_int_equal(dialect_origin(&dialect, 0), 0);
	assert_int_equal(dialect_origin(&dialect, 9), 7);
	assert_int_equal(dialect_origin(&dialect, (size_t)(strstr(dialect.text, "nmae") - dialect.text)),
			 (size_t)(strstr(typed, "nmae") - typed));
	assert_int_equal(dialect_origin(&dialect, strlen(dialect.text)), strlen(typed));
}

/* ---- With a connection ---- */

static int setup(void **state)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    sqlite3_exec(db, catalogue_schema_sql, NULL, NULL, NULL) != SQLITE_OK || series_register(db) != SQLITE_OK ||
	    sql_attach(db) < 0)
		return -1;
	*state = db;
	return 0;
}

static int teardown(void **state)
{
	return sqlite3_close(*state) == SQLITE_OK ? 0 : -1;
}

static int ask(sqlite3 *db, const char *sql, char **ret, char *error, size_t n_bytes)
{
	size_t n;
	FILE *out = open_memstream(ret, &n);
	int r;

	assert_non_null(out);
	error[0] = '\0';
	r = sql_run(db, sql, SQL_CSV, 0, out, error, n_bytes);
	fclose(out);
	return r;
}

static void expect_answer(sqlite3 *db, const char *sql, const char *part)
{
	CLEANUP(freep) char *text = NULL;
	char error[1024];

	if (ask(db, sql, &text, error, sizeof error) != 0)
		fail_msg("%s: %s", sql, error);
	if (!strstr(text, part))
		fail_msg("%s: %s", sql, text);
}

static void expect_error(sqlite3 *db, const char *sql, const char *wanted)
{
	CLEANUP(freep) char *text = NULL;
	char error[1024];

	assert_int_equal(ask(db, sql, &text, error, sizeof error), -EINVAL);
	error[strcspn(error, "\n")] = '\0';
	assert_string_equal(error, wanted);
}

static void show_and_describe_answer(void **state)
{
	expect_answer(*state, "SHOW TABLES", "main,stack_total,BASE TABLE,\"All samples of a thread");
	expect_answer(*state, "SHOW TABLES FROM python", "python,backtrace,");
	expect_answer(*state, "show tables in main like 'hot%';", "main,hot_line,");
	expect_answer(*state, "SHOW SCHEMAS", "information_schema,");
	expect_answer(*state, "SHOW COLUMNS FROM sample", "weight,INTEGER,NO,ns,");
	expect_answer(*state, "DESCRIBE hot_function", "self_share,REAL,YES,percent,");
	expect_answer(*state, "DESC python.\"backtrace\"", "frame_type,TEXT,YES,,");
	expect_answer(*state, "DESCRIBE backtrace", "lineno,INTEGER,");
	expect_answer(*state, "SHOW FUNCTIONS LIKE 'date%'", "date_trunc,scalar,\"date_trunc('hour'");
	expect_answer(*state, "SELECT 1 AS a; DESCRIBE run; SELECT 2 AS b", "b\r\n2\r\n");
}

static void mistakes_are_shown_where_they_were_typed(void **state)
{
	expect_error(*state, "SELECT a::int,\n interval '5 minutes' + nmae FROM function",
		     "line 1, column 8: no such column: a");
	expect_error(*state, "SELECT name::int,\n interval '5 minutes' + nmae FROM function",
		     "line 2, column 25: no such column: nmae (did you mean name?)");
	expect_error(*state, "SELECT verdict FROM function",
		     "line 1, column 8: no such column: verdict (sample has one)");
	expect_error(*state, "DESCRIBE smaple", "line 1, column 10: no such table: smaple (did you mean sample?)");
	expect_error(*state, "SHOW TABLES FROM pyton",
		     "line 1, column 18: no such schema: pyton (did you mean python?)");
	expect_error(*state, "SELECT * FROM pythn.backtrace",
		     "line 1, column 15: no such table: pythn.backtrace (did you mean python.backtrace?)");
	expect_error(*state, "SELECT 1; SELECT interval '5 minuts'",
		     "line 1, column 27: '5 minuts' is not a duration: use '5 minutes', '1.5 hours', '1 day 2 hours'");
	expect_error(*state, "SELECT nowhere; SELECT interval '5 minuts'", "line 1, column 8: no such column: nowhere");
	expect_error(*state, "SELECT percentil_cont(name, 1) FROM function",
		     "line 1, column 8: no such function: percentil_cont (did you mean percentile_cont?)");
	expect_error(
		*state, "SHOW TABLE",
		"line 1, column 6: there are SHOW TABLES [FROM schema] [LIKE pattern], SHOW COLUMNS FROM table, SHOW SCHEMAS, "
		"SHOW FUNCTIONS [LIKE pattern] and DESCRIBE table");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_those_of_sqlite),
		cmocka_unit_test(intervals_are_seconds),
		cmocka_unit_test(intervals_become_numbers),
		cmocka_unit_test(ordered_sets_become_arguments),
		cmocka_unit_test(casts_take_their_operand),
		cmocka_unit_test(other_words),
		cmocka_unit_test(every_place_leads_back),
		cmocka_unit_test(show_and_describe_answer),
		cmocka_unit_test(mistakes_are_shown_where_they_were_typed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
