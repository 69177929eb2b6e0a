/* SPDX-License-Identifier: MIT */
/* The views of the file and the tables in front of them: the same rows, of stacks made at random. */
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

enum { N_FUNCTIONS = 12, N_FRAMES = 60, N_STACKS = 400 };

/* Numbers that look random and are the same each time. */
static unsigned draw(uint64_t *seed, unsigned below)
{
	*seed = mix64(*seed + 0x9e3779b97f4a7c15ULL);
	return (unsigned)(*seed % below);
}

static void run(sqlite3 *db, char *sql)
{
	char *error = NULL;

	assert_non_null(sql);
	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", sql, error);
	sqlite3_free(sql);
}

/* Recursion, inlined functions, evaluations, internal, nameless places, stacks of nothing but internal functions. */
static void fill(sqlite3 *db, uint64_t seed)
{
	run(db,
	    sqlite3_mprintf("INSERT INTO module VALUES(1, '/usr/lib/liba.so', NULL), (2, '/usr/lib/libb.so', NULL)"));
	for (int i = 1; i <= N_FUNCTIONS; i++)
		run(db, sqlite3_mprintf("INSERT INTO function VALUES(%d, 'f%d', NULL, %Q, %Q, %Q, %d, NULL)", i, i % 10,
					i % 2 ? "python" : "native", i % 5 == 0 ? "internal" : NULL,
					i % 3 ? "/x/a.py" : NULL, i));
	for (int i = 1; i <= N_FRAMES; i++)
		run(db,
		    sqlite3_mprintf(
			    "INSERT INTO frame(frame, kind, function, line, module, address, is_eval, inlined_into)"
			    " VALUES(%d, 'native', nullif(%u, 0), nullif(%u, 0), nullif(%u, 0), %u, %d, nullif(%u, 0))",
			    i, draw(&seed, N_FUNCTIONS + 1), draw(&seed, 3), draw(&seed, 3), draw(&seed, 2) * 16,
			    draw(&seed, 6) == 0, draw(&seed, 4) == 0 ? draw(&seed, (unsigned)i) : 0));
	for (int i = 1; i <= N_STACKS; i++) {
		unsigned parent = draw(&seed, (unsigned)i);

		run(db, sqlite3_mprintf("INSERT INTO stack VALUES(%d, nullif(%u, 0), %u, 0)", i, parent,
					1 + draw(&seed, N_FRAMES)));
		if (draw(&seed, 2))
			run(db, sqlite3_mprintf("INSERT INTO stack_total VALUES(1, %u, %d, %u, %u)", draw(&seed, 3), i,
						1 + draw(&seed, 9), 1000 + draw(&seed, 9000)));
	}
	run(db, sqlite3_mprintf("INSERT INTO stack_total VALUES(1, 1, 0, 5, 777)"));
}

static int setup(void **state)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    sqlite3_exec(db, catalogue_schema_sql, NULL, NULL, NULL) != SQLITE_OK || sql_attach(db) < 0)
		return -1;
	*state = db;
	return 0;
}

static int teardown(void **state)
{
	return sqlite3_close(*state) == SQLITE_OK ? 0 : -1;
}

static int64_t number(sqlite3 *db, char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t answer;

	assert_non_null(sql);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	answer = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_free(sql);
	return answer;
}

static void check_same(sqlite3 *db, const char *table, const char *columns)
{
	assert_true(number(db, sqlite3_mprintf("SELECT count(*) FROM main.%s", table)) > 5);
	assert_int_equal(number(db, sqlite3_mprintf("SELECT count(*) FROM main.%s", table)),
			 number(db, sqlite3_mprintf("SELECT count(*) FROM temp.%s", table)));
	assert_int_equal(
		number(db,
		       sqlite3_mprintf("SELECT count(*) FROM (SELECT %s FROM main.%s EXCEPT SELECT %s FROM temp.%s)",
				       columns, table, columns, table)),
		0);
	assert_int_equal(
		number(db,
		       sqlite3_mprintf("SELECT count(*) FROM (SELECT %s FROM temp.%s EXCEPT SELECT %s FROM main.%s)",
				       columns, table, columns, table)),
		0);
}

static void both_say_the_same(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		fill(*state, seed);
		check_same(*state, "hot_function",
			   "function, name, file, self_samples, self_weight, total_samples, total_weight,"
			   " round(self_share, 9), round(total_share, 9)");
		check_same(*state, "hot_line",
			   "file, line, function, name, module, self_samples, self_weight, total_samples, total_weight,"
			   " round(self_share, 9), round(total_share, 9)");
		check_same(*state, "caller_callee",
			   "caller, callee, caller_function, callee_function, samples, weight");
		assert_int_equal(number(*state, sqlite3_mprintf("SELECT sum(self_weight) FROM hot_function")),
				 number(*state, sqlite3_mprintf("SELECT sum(weight) FROM stack_total")));
		assert_int_equal(number(*state, sqlite3_mprintf("SELECT sum(self_samples) FROM main.hot_line")),
				 number(*state, sqlite3_mprintf("SELECT sum(samples) FROM stack_total")));
		run(*state,
		    sqlite3_mprintf(
			    "DELETE FROM stack_total; DELETE FROM stack; DELETE FROM frame; DELETE FROM function;"
			    "DELETE FROM module"));
	}
}

/* f calls itself, and g: its total is each sample once. */
static void recursion_counts_once(void **state)
{
	sqlite3 *db = *state;

	run(db, sqlite3_mprintf(
			"INSERT INTO function(function, name, kind) VALUES(1, 'f', 'python'), (2, 'g', 'python');"
			"INSERT INTO frame(frame, kind, function, line) VALUES(1, 'python', 1, 1), (2, 'python', 2, 5);"
			"INSERT INTO stack VALUES(1, NULL, 1, 0), (2, 1, 1, 1), (3, 2, 1, 2), (4, 3, 2, 3);"
			"INSERT INTO stack_total VALUES(1, 1, 3, 2, 20), (1, 1, 4, 3, 30)"));
	assert_int_equal(number(db, sqlite3_mprintf("SELECT total_weight FROM hot_function WHERE name = 'f'")), 50);
	assert_int_equal(number(db, sqlite3_mprintf("SELECT self_weight FROM hot_function WHERE name = 'f'")), 20);
	assert_int_equal(number(db, sqlite3_mprintf("SELECT total_weight FROM main.hot_function WHERE name = 'f'")),
			 50);
	assert_int_equal(
		number(db, sqlite3_mprintf("SELECT weight FROM caller_callee WHERE caller = 'f' AND callee = 'f'")),
		50);
	assert_int_equal(number(db, sqlite3_mprintf("SELECT weight FROM caller_callee WHERE caller IS NULL")), 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_say_the_same),
		cmocka_unit_test(recursion_counts_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
