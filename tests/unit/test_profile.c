/* SPDX-License-Identifier: MIT */
/* test_profile.c - a recording's tree in memory: what is in it, and what is not let in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/catalogue/catalogue.h"
#include "src/profile/profile.h"
#include "src/profile/strings.h"
#include "src/store/profile_private.h"
#include "src/store/store_private.h"

/* Two threads of a Python program: main -> eval -> train (python) -> sorted, and a kernel leaf. */
static const char rows_sql[] =
	"INSERT INTO process(pid, parent_pid, name, command, python, started, ended) VALUES(42, 1, 'python3', 'python3 train.py', NULL, 1.0, NULL);"
	"INSERT INTO thread VALUES(42, 42, 'main', 1.0, NULL), (42, 43, 'worker', 1.0, NULL), (7, 7, 'lost', 1.0, NULL);"
	"INSERT INTO module VALUES(1, '/usr/bin/python3.11', NULL), (2, '/lib/libc.so.6', 'abcd'), (3, 'relative.so', NULL);"
	"INSERT INTO function VALUES"
	" (1, '_PyEval_EvalFrameDefault', NULL, 'native', 'internal', NULL, NULL, 1),"
	" (2, 'train', NULL, 'python', NULL, 'train.py', 10, NULL),"
	" (3, 'sorted', 'builtin_sorted', 'native', 'builtin', 'bltinmodule.c', 2300, 1),"
	" (4, 'do_futex', NULL, 'kernel', NULL, NULL, NULL, NULL);"
	"INSERT INTO frame(frame, kind, function, line, module, address, is_eval, inlined_into) VALUES"
	" (1, 'native', 1, NULL, 1, 4096, 1, NULL),"
	" (2, 'python', 2, 12, NULL, 30, 0, NULL),"
	" (3, 'native', 3, 2310, NULL, 8192, 0, NULL),"
	" (4, 'kernel', 4, NULL, NULL, NULL, 0, NULL),"
	" (5, 'native', NULL, NULL, 2, 4660, 0, NULL),"
	" (6, 'native', NULL, NULL, NULL, 99, 0, NULL),"
	" (7, 'kernel', NULL, NULL, NULL, NULL, 0, NULL),"
	" (8, 'python', NULL, NULL, NULL, 2, 0, NULL),"
	" (9, 'native', NULL, NULL, 3, NULL, 0, NULL),"
	" (10, 'native', NULL, NULL, 1, -1, 0, 3);"
	"INSERT INTO stack VALUES(1, NULL, 1, 0), (2, 1, 2, 1), (3, 2, 3, 2), (4, 3, 4, 3);"
	"INSERT INTO stack_total VALUES(42, 42, 4, 3, 30), (42, 43, 2, 1, 10), (42, 43, 0, 2, 20);";

static int database_setup(void **state)
{
	sqlite3 *db = NULL;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK || store_exec(db, catalogue_schema_sql) < 0 ||
	    store_exec(db, rows_sql) < 0) {
		sqlite3_close(db);
		return -1;
	}
	*state = db;
	return 0;
}

static int database_teardown(void **state)
{
	return sqlite3_close(*state) == SQLITE_OK ? 0 : -1;
}

#define DATABASE_TEST(f) cmocka_unit_test_setup_teardown(f, database_setup, database_teardown)

/* Time that was not sampled: a frame alone in its stack. */
static const char unsampled_sql[] =
	"INSERT INTO function VALUES(5, '[not sampled]', NULL, 'unsampled', NULL, NULL, NULL, NULL);"
	"INSERT INTO frame(frame, kind, function, line, module, address, is_eval, inlined_into) VALUES"
	" (11, 'unsampled', 5, NULL, NULL, NULL, 0, NULL);"
	"INSERT INTO stack VALUES(5, NULL, 11, 0);"
	"INSERT INTO stack_total VALUES(42, 42, 5, 2, 7);";

static struct profile *load(sqlite3 *db)
{
	struct profile *profile = NULL;

	assert_int_equal(profile_load(db, &profile), 0);
	assert_non_null(profile);
	return profile;
}

static void test_all_of_it_is_there(void **state)
{
	struct profile *profile = load(*state);
	const struct profile_frame *frames = profile->frames;

	assert_int_equal(profile->n_frames, 10);
	assert_true(frames[0].is_eval);
	assert_int_equal(frames[0].role, ROLE_INTERNAL);
	assert_int_equal(frames[1].kind, FRAME_PYTHON);
	assert_string_equal(frames[1].name, "train");
	assert_string_equal(frames[1].file, "train.py");
	assert_int_equal(frames[1].line, 12);
	assert_int_equal(frames[1].function, 2);
	assert_null(frames[1].module);
	assert_int_equal(frames[2].role, ROLE_BUILTIN);
	assert_string_equal(frames[2].module, "/usr/bin/python3.11"); /* the function's, where the frame has none */
	assert_int_equal(frames[2].inlined_into, -1);
	assert_int_equal(frames[9].inlined_into, 2);
	assert_int_equal(frames[4].function, 0);

	assert_int_equal(profile->n_stacks, 4);
	assert_int_equal(profile->stacks[0].parent, -1);
	assert_int_equal(profile->stacks[3].parent, 2);
	assert_int_equal(profile->stacks[3].frame, 3);

	assert_int_equal(profile->n_totals, 3);
	assert_int_equal(profile->totals[0].stack, 3);
	assert_int_equal(profile->totals[0].samples, 3);
	assert_int_equal(profile->totals[0].weight, 30);
	assert_int_equal(profile->totals[1].stack, -1); /* nothing could be read */
	assert_int_equal(profile->totals[1].samples, 2);

	assert_int_equal(profile->n_threads, 3);
	assert_int_equal(profile->threads[0].tid, 7);
	assert_string_equal(profile->threads[0].process, "");
	assert_string_equal(profile->threads[2].name, "worker");
	assert_string_equal(profile->threads[2].process, "python3");
	profile_free(profile);
}

static void test_names_are_those_of_the_view(void **state)
{
	struct profile *profile = load(*state);
	sqlite3_stmt *view = NULL;
	size_t n = 0;

	assert_int_equal(
		sqlite3_prepare_v2(*state, "SELECT name, module FROM named_frame ORDER BY frame", -1, &view, NULL),
		SQLITE_OK);
	for (; sqlite3_step(view) == SQLITE_ROW; n++) {
		const char *module = (const char *)sqlite3_column_text(view, 1);

		assert_string_equal(profile->frames[n].name, (const char *)sqlite3_column_text(view, 0));
		if (module)
			assert_string_equal(profile->frames[n].module, module);
		else
			assert_null(profile->frames[n].module);
	}
	assert_int_equal(n, 10);
	assert_string_equal(profile->frames[4].name, "libc.so.6+0x1234");
	assert_string_equal(profile->frames[5].name, "[anonymous]");
	assert_string_equal(profile->frames[8].name, "relative.so+0x0");
	sqlite3_finalize(view);
	profile_free(profile);
}

static void test_an_empty_recording(void **state)
{
	struct profile *profile;

	assert_int_equal(store_exec(*state, "DELETE FROM stack_total; DELETE FROM stack; DELETE FROM frame;"
					    "DELETE FROM thread"),
			 0);
	profile = load(*state);
	assert_int_equal(profile->n_frames + profile->n_stacks + profile->n_totals + profile->n_threads, 0);
	profile_free(profile);
	profile_free(NULL);
}

static void test_sparse_ids(void **state)
{
	struct profile *profile;

	assert_int_equal(store_exec(*state, "UPDATE stack SET stack = stack * 1000, parent = parent * 1000;"
					    "UPDATE stack_total SET stack = stack * 1000;"
					    "UPDATE frame SET frame = frame * frame - 50;"
					    "UPDATE frame SET inlined_into = -41 WHERE inlined_into;"
					    "UPDATE stack SET frame = frame * frame - 50"),
			 0);
	profile = load(*state);
	assert_int_equal(profile->stacks[3].parent, 2);
	assert_string_equal(profile->frames[profile->stacks[3].frame].name, "do_futex");
	assert_int_equal(profile->totals[0].stack, 3);
	assert_int_equal(profile->frames[9].inlined_into, 2);
	profile_free(profile);
}

/* The same tree with ids that grow towards the root. */
static void test_parents_come_first(void **state)
{
	struct profile *profile;
	int32_t path[8];

	assert_int_equal(store_exec(*state, "UPDATE stack SET stack = 100 - stack, parent = 100 - parent;"
					    "UPDATE stack_total SET stack = 100 - stack WHERE stack;"
					    "INSERT INTO stack VALUES(50, 98, 5, 2)"),
			 0);
	profile = load(*state);
	assert_int_equal(profile->n_stacks, 5);
	for (size_t i = 0; i < profile->n_stacks; i++)
		assert_true(profile->stacks[i].parent < (int32_t)i);
	for (size_t i = 0; i < profile->n_totals; i++) {
		if (profile->totals[i].samples != 3)
			continue;
		assert_int_equal(profile_path(profile, profile->totals[i].stack, true, path, 8), 4);
		for (int32_t k = 0; k < 4; k++)
			assert_int_equal(path[k], k);
	}
	profile_free(profile);
}

/* SQLite changes no table under a view. */
static void drop_views(sqlite3 *db)
{
	for (size_t i = 0; catalogue_tables[i]; i++) {
		char sql[128];

		if (catalogue_tables[i]->kind != CATALOGUE_VIEW || strcmp(catalogue_tables[i]->schema, "main") != 0)
			continue;
		snprintf(sql, sizeof sql, "DROP VIEW IF EXISTS %s", catalogue_tables[i]->name);
		assert_int_equal(store_exec(db, sql), 0);
	}
}

static void test_what_is_not_let_in(void **state)
{
	static const char *const damages[] = {
		"UPDATE stack SET parent = 4 WHERE stack = 2",  /* a cycle */
		"UPDATE stack SET parent = 2 WHERE stack = 2",  /* of one */
		"UPDATE stack SET parent = 77 WHERE stack = 3", /* no such parent */
		"UPDATE stack SET frame = 77 WHERE stack = 3",
		"UPDATE stack SET frame = 0 WHERE stack = 3",
		"UPDATE stack SET frame = -9223372036854775808 WHERE stack = 3",
		"UPDATE frame SET function = 77 WHERE frame = 2",
		"UPDATE frame SET module = 77 WHERE frame = 5",
		"UPDATE frame SET kind = 'ruby' WHERE frame = 5",
		"UPDATE frame SET kind = x'00' WHERE frame = 5",
		"UPDATE frame SET line = -1 WHERE frame = 2",
		"UPDATE frame SET line = 2147483648 WHERE frame = 2",
		"UPDATE frame SET inlined_into = 77 WHERE frame = 5",
		"UPDATE frame SET inlined_into = 5 WHERE frame = 5",
		"UPDATE frame SET inlined_into = 10 WHERE frame = 3", /* 10 -> 3 -> 10 */
		"UPDATE function SET module = 77 WHERE function = 1",
		"UPDATE stack_total SET stack = 77 WHERE stack = 4",
		"UPDATE stack_total SET samples = -1",
		"UPDATE stack_total SET weight = -1",
		"UPDATE stack_total SET weight = 4611686018427387904", /* three of them overflow */
		"UPDATE stack_total SET pid = 2147483648",
		"UPDATE thread SET tid = -5 WHERE tid = 43",
		"ALTER TABLE frame RENAME COLUMN is_eval TO eval",
		"DROP TABLE function",
	};

	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		struct profile *profile = NULL;

		drop_views(*state);
		assert_int_equal(store_exec(*state, "SAVEPOINT sound"), 0);
		assert_int_equal(store_exec(*state, damages[i]), 0);
		if (profile_load(*state, &profile) != -EBADMSG)
			fail_msg("let in: %s", damages[i]);
		assert_null(profile);
		assert_int_equal(store_exec(*state, "ROLLBACK TO sound; RELEASE sound"), 0);
	}
	profile_free(load(*state));
}

/* A program may make code that says it begins anywhere. */
static void test_first_lines_of_any_size(void **state)
{
	static const struct {
		const char *sql;
		int expected;
	} cases[] = {
		{ "UPDATE function SET first_line = -5", 0 },
		{ "UPDATE function SET first_line = -1244136272", 0 },
		{ "UPDATE function SET first_line = NULL", 0 },
		{ "UPDATE function SET first_line = 2147483647", INT32_MAX },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct profile *profile;

		assert_int_equal(store_exec(*state, cases[i].sql), 0);
		profile = load(*state);
		for (size_t at = 0; at < profile->n_frames; at++)
			assert_true(profile->frames[at].function == 0 ||
				    profile->frames[at].first_line == cases[i].expected);
		profile_free(profile);
	}
}

static void test_inlined_chains_have_a_limit(void **state)
{
	struct profile *profile = NULL;
	char sql[256];

	for (int i = 0; i <= PROFILE_MAX_INLINED; i++) {
		snprintf(sql, sizeof sql, "INSERT INTO frame(frame, kind, inlined_into) VALUES(%d, 'native', %d)",
			 101 + i, i == 0 ? 1 : 100 + i);
		assert_int_equal(store_exec(*state, sql), 0);
		if (i < PROFILE_MAX_INLINED)
			profile_free(load(*state));
	}
	assert_int_equal(profile_load(*state, &profile), -EBADMSG);
}

/* A load sees one moment, also within the caller's transaction. */
static void test_within_a_transaction(void **state)
{
	struct profile *profile;

	assert_int_equal(store_exec(*state, "BEGIN; DELETE FROM thread"), 0);
	profile = load(*state);
	assert_int_equal(profile->n_threads, 0);
	profile_free(profile);
	assert_false(sqlite3_get_autocommit(*state));
	assert_int_equal(store_exec(*state, "ROLLBACK"), 0);
	profile = load(*state);
	assert_int_equal(profile->n_threads, 3);
	assert_true(sqlite3_get_autocommit(*state));
	profile_free(profile);
}

/* A long list in random order, one child each: as deep as it has rows. */
static void test_a_deep_tree_in_disorder(void **state)
{
	enum { N = 50000 };
	struct profile *profile;
	static int32_t path[N + 4];

	assert_int_equal(
		store_exec(
			*state,
			"WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 49999)"
			"INSERT INTO stack SELECT 1000 + (i * 7919) % 50000, CASE i WHEN 0 THEN 4 ELSE 1000 + ((i - 1) * 7919) % 50000"
			" END, 2, i FROM c"),
		0);
	profile = load(*state);
	for (size_t i = 0; i < profile->n_stacks; i++)
		assert_true(profile->stacks[i].parent < (int32_t)i);
	assert_int_equal(profile_path(profile, (int32_t)profile->n_stacks - 1, true, path, N + 4), N + 4);
	assert_int_equal(profile_path(profile, (int32_t)profile->n_stacks - 1, true, path, 5), 5);
	assert_int_equal(path[3], 3);
	assert_int_equal(path[4], 1);
	profile_free(profile);
}

static void test_strings_stay_where_they_are(void **state)
{
	enum { N = 3000, BIG = 100000 };
	const char *kept[N], *big;
	struct strings *strings;
	char text[64], *long_text = malloc(BIG);

	(void)state;
	assert_non_null(long_text);
	memset(long_text, 'b', BIG);
	assert_int_equal(strings_new(&strings), 0);
	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof text, "a name that takes some room: %d", i);
		assert_int_equal(strings_add(strings, text, strlen(text), &kept[i]), 0);
		if (i % 1000 == 0) {
			assert_int_equal(strings_add(strings, long_text, BIG, &big), 0);
			assert_int_equal(strlen(big), BIG);
		}
	}
	for (int i = 0; i < N; i++) {
		snprintf(text, sizeof text, "a name that takes some room: %d", i);
		assert_string_equal(kept[i], text);
	}
	assert_int_equal(strings_add(strings, "", 0, &kept[0]), 0);
	assert_string_equal(kept[0], "");
	strings_free(strings);
	strings_free(NULL);
	free(long_text);
}

static uint64_t count_samples(const struct profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_totals; i++)
		n += profile->totals[i].samples;
	return n;
}

/* It has a weight, and is no sample. */
static void test_time_that_was_not_sampled(void **state)
{
	struct profile *profile;
	uint64_t weight = 0;

	assert_int_equal(store_exec(*state, unsampled_sql), 0);
	profile = load(*state);
	assert_int_equal(profile->n_totals, 4);
	assert_int_equal(count_samples(profile), 6);
	for (size_t i = 0; i < profile->n_totals; i++)
		weight += profile->totals[i].weight;
	assert_int_equal(weight, 67);
	profile_drop_weights(profile);
	assert_int_equal(count_samples(profile), 6);
	profile_free(profile);
}

static void test_nothing_but_time_that_was_not_sampled(void **state)
{
	struct profile *profile;

	assert_int_equal(store_exec(*state, "DELETE FROM stack_total;"), 0);
	assert_int_equal(store_exec(*state, unsampled_sql), 0);
	profile = load(*state);
	assert_int_equal(count_samples(profile), 0);
	assert_false(profile_is_empty(profile));
	profile_drop_weights(profile);
	assert_true(profile_is_empty(profile));
	profile_free(profile);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DATABASE_TEST(test_time_that_was_not_sampled),
		DATABASE_TEST(test_nothing_but_time_that_was_not_sampled),
		DATABASE_TEST(test_all_of_it_is_there),
		DATABASE_TEST(test_names_are_those_of_the_view),
		DATABASE_TEST(test_an_empty_recording),
		DATABASE_TEST(test_sparse_ids),
		DATABASE_TEST(test_parents_come_first),
		DATABASE_TEST(test_what_is_not_let_in),
		DATABASE_TEST(test_first_lines_of_any_size),
		DATABASE_TEST(test_inlined_chains_have_a_limit),
		DATABASE_TEST(test_within_a_transaction),
		DATABASE_TEST(test_a_deep_tree_in_disorder),
		cmocka_unit_test(test_strings_stay_where_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
