/* SPDX-License-Identifier: MIT */
/* test_trust.c - schemas that were made to hurt: what is refused, and what copies of them are made of. */
#include "tests/unit/store_fixture.h"

static void change(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	char *error = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail_msg("%s: %s", sql, error);
	sqlite3_close(db);
}

static int open_error(const char *path)
{
	sqlite3 *reader = NULL;
	int r = store_open_reader(path, &reader);

	sqlite3_close(reader);
	return r;
}

/* No recorder makes these schemas: they run expressions when read, or need modules that readers lack. */
static void test_schemas_that_are_refused(void **state)
{
	static const char *const cases[] = {
		"CREATE TABLE big(a, b AS (zeroblob(1000000000)))",
		"CREATE TABLE big(a, b AS (zeroblob(10)) STORED)",
		("CREATE TABLE other(x); UPDATE sqlite_schema SET sql = 'CREATE TABLE run(run, event AS (zeroblob(1e9)))'"
		 " WHERE name = 'run'"),
		"CREATE VIRTUAL TABLE words USING fts5(text)",
		"INSERT INTO sqlite_schema VALUES('table', 'strange', 'strange', 0, 'CREATE VIRTUAL TABLE strange USING sample')",
		"INSERT INTO sqlite_schema VALUES('view', printf('%0300d', 1), 'x', 0, 'CREATE VIEW x AS SELECT 1')",
	};
	const struct folder *f = *state;
	struct store *store = NULL;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		finish(new_store(f->file));
		change(f->file, cases[i]);
		if (open_error(f->file) != -EMEDIUMTYPE && open_error(f->file) != -EBADMSG)
			fail_msg("%s is opened: %d", cases[i], open_error(f->file));
		assert_true(store_open(f->file, &store) < 0);
	}
}

/* What users add by SQL stays readable. */
static void test_schemas_that_are_read(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	change(f->file,
	       "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT DEFAULT 'x' CHECK(length(text) < 100), \"a \"\"b\" REAL);"
	       "CREATE INDEX by_text ON note(text); CREATE VIEW notes AS SELECT * FROM note;"
	       "CREATE TRIGGER noted AFTER INSERT ON note BEGIN DELETE FROM run; END;"
	       "INSERT INTO note(text) VALUES('mine')");
	assert_int_equal(open_error(f->file), 0);
}

static void test_limits_of_what_is_asked(void **state)
{
	static const char *const refused[] = {
		"ATTACH '/etc/passwd' AS other",     "SELECT zeroblob(900000000)",
		"SELECT load_extension('x')",        "PRAGMA writable_schema = ON",
		"PRAGMA temp_store_directory = '/'", "PRAGMA journal_mode = DELETE",
		"PRAGMA mmap_size = 1000000",        "DETACH temp",
	};
	const struct folder *f = *state;
	sqlite3 *reader = NULL;
	char *attach;

	finish(new_store(f->file));
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (sqlite3_exec(reader, refused[i], NULL, NULL, NULL) == SQLITE_OK)
			fail_msg("%s is done", refused[i]);
	assert_int_equal(sqlite3_exec(reader, "ATTACH ':memory:' AS mine", NULL, NULL, NULL), SQLITE_OK);
	/* What its user attaches is read, not written. */
	store_permit_attach(reader);
	finish(new_store(f->old));
	attach = sqlite3_mprintf("ATTACH %Q AS other", f->old);
	assert_int_equal(sqlite3_exec(reader, attach, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_free(attach);
	assert_int_equal(ask(reader, "SELECT count(*) FROM other.run"), 1);
	assert_int_equal(sqlite3_exec(reader, "DELETE FROM other.run", NULL, NULL, NULL) & 0xff, SQLITE_READONLY);
	sqlite3_close(reader);
}

/* ---- Copies ---- */

/* Into a new file beside; its answer to a question. */
static const char *copy_and_ask(const struct folder *f, const char *const *tables, const char *sql)
{
	struct store *to = NULL;
	sqlite3 *from = NULL;

	assert_int_equal(sqlite3_open_v2(f->file, &from, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(store_create_plain(with(f->path, "/copy.db"), &to), 0);
	for (size_t i = 0; tables[i]; i++)
		assert_int_equal(store_copy_table(from, store_connection(to), tables[i], NULL, NULL), 0);
	assert_int_equal(store_copy_views(from, store_connection(to)), 0);
	store_close(to);
	sqlite3_close(from);
	return ask_samples(with(f->path, "/copy.db"), sql);
}

static void test_copies_are_made_by_our_own_words(void **state)
{
	const struct folder *f = *state;
	char sql[1200];
	const char *answer;

	finish(new_store(f->file));
	change(f->file,
	       "CREATE TABLE note(id INTEGER PRIMARY KEY, text VARCHAR(9) NOT NULL CHECK(abs(id) >= 0), \"a \"\"b\" REAL);"
	       "CREATE UNIQUE INDEX by_text ON note(text, \"a \"\"b\"); CREATE INDEX by_sum ON note(id + 1);"
	       "CREATE VIEW notes AS SELECT text FROM note; INSERT INTO note VALUES(3, 'mine', 0.5)");
	/* More than one statement, under the name of one: the second one made files. */
	snprintf(
		sql, sizeof sql,
		"UPDATE sqlite_schema SET sql = 'CREATE VIEW notes AS SELECT text FROM note; ATTACH ''%s/made'' AS made;"
		"CREATE TABLE made.x(y)' WHERE name = 'notes';"
		"UPDATE sqlite_schema SET sql = sql || '; ATTACH ''%s/made'' AS made; CREATE TABLE made.x(y)' WHERE name = 'note'",
		f->path, f->path);
	change(f->file, sql);
	answer = copy_and_ask(
		f, (const char *const[]){ "note", "run", NULL },
		"SELECT text, \"a \"\"b\" FROM note; SELECT text FROM notes; SELECT count(*) FROM run;"
		"SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE tbl_name LIKE 'note%' ORDER BY name);"
		"SELECT sql LIKE '%-- %' FROM sqlite_schema WHERE name = 'run'; SELECT sql LIKE '%CHECK%' OR sql LIKE '%ATTACH%'"
		" FROM sqlite_schema WHERE name = 'note'");
	assert_string_equal(answer, "mine|0.5\nmine\n1\nby_text,note,notes\n1\n0");
	assert_false(exists(with(f->path, "/made")));
}

/* Nothing but a view comes of a view's text. */
static void test_views_that_are_none(void **state)
{
	static const char *const texts[] = {
		"CREATE TABLE notes(x)",
		"CREATE VIEW main.other AS SELECT 1",
		"ATTACH 'made' AS made",
		"DELETE FROM run",
		"CREATE TEMP VIEW notes AS SELECT 1",
		"CREATE TRIGGER notes AFTER INSERT ON run BEGIN DELETE FROM run; END",
		"PRAGMA writable_schema = ON",
		"",
		"-- nothing",
	};
	const struct folder *f = *state;

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char *sql = sqlite3_mprintf("UPDATE sqlite_schema SET sql = %Q WHERE name = 'notes'", texts[i]);
		struct store *to = NULL;
		sqlite3 *from = NULL;

		finish(new_store(f->file));
		change(f->file, "CREATE VIEW notes AS SELECT 1");
		assert_int_equal(sqlite3_open(":memory:", &from), SQLITE_OK);
		/* SQLite itself refuses to read most of such schemas. */
		assert_int_equal(sqlite3_exec(from, "CREATE VIEW notes AS SELECT 1", NULL, NULL, NULL), SQLITE_OK);
		sqlite3_db_config(from, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
		assert_int_equal(sqlite3_exec(from, sql, NULL, NULL, NULL), SQLITE_OK);
		assert_int_equal(store_create_plain(with(f->path, "/copy.db"), &to), 0);
		assert_int_equal(store_copy_views(from, store_connection(to)), 0);
		assert_int_equal(ask(store_connection(to), "SELECT count(*) FROM sqlite_schema"), 0);
		store_close(to);
		sqlite3_close(from);
		sqlite3_free(sql);
		assert_int_equal(unlink(with(f->path, "/copy.db")), 0);
	}
	assert_false(exists("made"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_schemas_that_are_refused), FOLDER_TEST(test_schemas_that_are_read),
		FOLDER_TEST(test_limits_of_what_is_asked),  FOLDER_TEST(test_copies_are_made_by_our_own_words),
		FOLDER_TEST(test_views_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
