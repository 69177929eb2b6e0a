/* SPDX-License-Identifier: MIT */
/* test_store_reader.c - opening recordings in every state they are found in, and what is none. */
#include <signal.h>

#include "base/util.h"
#include "src/store/files.h"
#include "tests/unit/store_fixture.h"

static int open_error(const char *path)
{
	sqlite3 *reader = NULL;
	int r = store_open_reader(path, &reader);

	assert_true((r == 0) == (reader != NULL));
	sqlite3_close(reader);
	return r;
}

static void test_reads_and_does_not_write(void **state)
{
	const struct folder *f = *state;
	sqlite3 *reader = NULL;

	finish(new_store(f->file));
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	assert_int_equal(ask(reader, "SELECT count(*) FROM sample"), 100);
	assert_int_equal(ask(reader, "SELECT count(*) FROM named_frame"), 0);
	assert_int_equal(sqlite3_exec(reader, "DELETE FROM sample_block", NULL, NULL, NULL) & 0xff, SQLITE_READONLY);
	assert_int_equal(sqlite3_exec(reader, "DELETE FROM sample", NULL, NULL, NULL), SQLITE_ERROR);
	assert_int_equal(sqlite3_exec(reader, "PRAGMA user_version = 3", NULL, NULL, NULL) & 0xff, SQLITE_READONLY);
	sqlite3_close(reader);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample; PRAGMA user_version"), "100\n2");
}

static void test_what_is_no_recording(void **state)
{
	const struct folder *f = *state;
	FILE *file;

	assert_int_equal(open_error(f->file), -ENOENT);
	assert_int_equal(open_error(with(f->path, "/none/run.db")), -ENOENT);
	assert_int_equal(open_error(f->path), -EISDIR);
	assert_int_equal(open_error("/dev/null"), -ENXIO);
	write_text(f->file, "");
	assert_int_equal(open_error(f->file), -EMEDIUMTYPE);
	assert_int_equal(open_error(with(f->file, "/run.db")), -ENOTDIR);
	write_text(f->file, "a text that is long enough to be looked at, as SQLite reads a header "
			    "of 100 bytes; "
			    "a shorter one is refused as well");
	assert_int_equal(open_error(f->file), -EBADMSG);
	write_text(f->file, "short");
	assert_int_equal(open_error(f->file), -EBADMSG);
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(mkfifo(f->file, 0600), 0);
	assert_int_equal(open_error(f->file), -ENXIO);
	assert_int_equal(unlink(f->file), 0);
	stock_shell(f->file, "CREATE TABLE sample(a); INSERT INTO sample VALUES(1)");
	assert_int_equal(open_error(f->file), -EMEDIUMTYPE);
	file = fopen(f->file, "w");
	assert_non_null(file);
	assert_int_equal(fwrite("SQLite format 3", 1, 16, file), 16);
	fclose(file);
	assert_int_equal(open_error(f->file), -EBADMSG);
}

static void test_newer_schema(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	stock_shell(f->file, "PRAGMA user_version = 3");
	assert_int_equal(open_error(f->file), -EPROTONOSUPPORT);
	stock_shell(f->file, "PRAGMA user_version = 0");
	assert_int_equal(open_error(f->file), -EBADMSG);
}

static void test_tables_that_are_missing_or_fake(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	stock_shell(f->file, "CREATE TABLE mine(a); CREATE INDEX by_end ON sample_block(ended)");
	assert_int_equal(open_error(f->file), 0);
	stock_shell(f->file, "DROP TABLE stack_total");
	assert_int_equal(open_error(f->file), -EBADMSG);
	stock_shell(f->file, "CREATE VIEW stack_total AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT "
			     "x FROM c)"
			     " SELECT x AS pid, x AS tid, x AS stack, x AS samples, x AS weight FROM c");
	assert_int_equal(open_error(f->file), -EBADMSG);
}

static void overwrite(const char *path, off_t offset, const char *bytes, size_t n_bytes)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n_bytes, offset), n_bytes);
	close(fd);
}

static void test_damage(void **state)
{
	const struct folder *f = *state;
	struct stat st;

	finish(new_store(f->file));
	assert_int_equal(stat(f->file, &st), 0);
	assert_int_equal(truncate(f->file, st.st_size / 2), 0);
	assert_int_equal(open_error(f->file), -EBADMSG);

	finish(new_store(f->file));
	overwrite(f->file, 18, "\7\7", 2); /* unknown file format */
	assert_int_equal(open_error(f->file), -EBADMSG);

	finish(new_store(f->file));
	overwrite(f->file, 100, "\0\0\0\0\0\0\0\0", 8); /* root of the schema */
	assert_int_equal(open_error(f->file), -EBADMSG);
}

/* ---- How its writer ended ---- */

static int write_and_die(const struct folder *f)
{
	struct store *store = NULL;

	EXPECT(store_create(f->file, NULL, &store) == 0);
	EXPECT(put_run(store) == 0 && put_batch(store) == 0);
	raise(SIGKILL);
	return 1;
}

static int read_as_somebody_else(const struct folder *f)
{
	sqlite3 *reader = NULL;
	int r;

	EXPECT(become_ordinary() == 0);
	r = store_open_reader(f->file, &reader);
	if (r < 0)
		return -r;
	EXPECT(ask(reader, "SELECT count(*) FROM sample") == BATCH_SAMPLES);
	sqlite3_close(reader);
	return 0;
}

/* Recordings are private to their owner by default. */
static void show_to_all(const struct folder *f)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
		if (exists(with(f->file, suffixes[i])))
			assert_int_equal(chmod(with(f->file, suffixes[i]), 0644), 0);
}

static void test_is_its_owners_alone(void **state)
{
	const struct folder *f = *state;
	mode_t before = umask(0);
	struct store *store = new_store(f->file);
	struct stat st;

	umask(before);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(stat(with(f->file, (const char *const[]){ "", "-wal", "-shm" }[i]), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	finish(store);
	assert_int_equal(stat(f->file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	if (geteuid() == 0)
		assert_int_equal(in_child(read_as_somebody_else, f), EACCES);
}

static void test_finished_in_an_unwritable_folder(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	show_to_all(f);
	assert_int_equal(chmod(f->path, 0555), 0);
	assert_int_equal(in_child(read_as_somebody_else, f), 0);
}

/* In WAL mode, without a WAL: no reader can create one here, and none needs to. */
static void test_closed_in_an_unwritable_folder(void **state)
{
	const struct folder *f = *state;

	store_close(new_store(f->file));
	assert_false(exists(with(f->file, "-wal")));
	show_to_all(f);
	assert_int_equal(chmod(f->path, 0555), 0);
	assert_int_equal(in_child(read_as_somebody_else, f), 0);
	assert_false(exists(with(f->file, "-wal")));
}

static void test_killed_in_an_unwritable_folder(void **state)
{
	const struct folder *f = *state;

	assert_int_equal(in_child(write_and_die, f), 128 + SIGKILL);
	show_to_all(f);
	assert_int_equal(chmod(f->path, 0555), 0);
	assert_int_equal(in_child(read_as_somebody_else, f), 0);
	assert_int_equal(chmod(f->path, 0755), 0);
	assert_int_equal(unlink(with(f->file, "-shm")), 0);
	assert_int_equal(chmod(f->path, 0555), 0);
	/* The log has all data, and its index is in the reader's memory. */
	assert_int_equal(in_child(read_as_somebody_else, f), 0);
}

static void test_live_of_somebody_else(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	show_to_all(f);
	assert_int_equal(in_child(read_as_somebody_else, f), 0);
	finish(store);
}

static void test_unreadable(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	assert_int_equal(chmod(f->file, 0), 0);
	assert_int_equal(in_child(read_as_somebody_else, f), EACCES);
	assert_int_equal(chmod(f->file, 0600), 0);
	assert_int_equal(chmod(f->path, 0), 0);
	assert_int_equal(in_child(read_as_somebody_else, f), EACCES);
	assert_int_equal(chmod(f->path, 0755), 0);
}

static int die_in_a_transaction(const struct folder *f)
{
	sqlite3 *db = NULL;

	EXPECT(sqlite3_open(f->file, &db) == SQLITE_OK);
	EXPECT(sqlite3_exec(db,
			    "PRAGMA cache_size = 1; BEGIN; UPDATE sample_block SET data = zeroblob(400000);"
			    "DELETE FROM run; UPDATE sample_block SET samples = 99",
			    NULL, NULL, NULL) == SQLITE_OK);
	raise(SIGKILL);
	return 1;
}

static int read_copy_as_somebody_else(const struct folder *f)
{
	sqlite3 *reader = NULL;
	int r;

	EXPECT(become_ordinary() == 0);
	r = store_open_reader(f->file, &reader);
	if (r < 0)
		return -r;
	EXPECT(ask(reader, "SELECT count(*) FROM sample") == 21 * BATCH_SAMPLES);
	EXPECT(sqlite3_exec(reader, "DELETE FROM sample_block", NULL, NULL, NULL) == SQLITE_READONLY);
	sqlite3_close(reader);
	return 0;
}

/* A kill during a checkpoint leaves half a change, and a journal to undo it. */
static void test_hot_journal(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	sqlite3 *reader = NULL;

	for (int i = 0; i < 20; i++)
		assert_int_equal(put_batch(store), 0);
	finish(store);
	assert_int_equal(in_child(die_in_a_transaction, f), 128 + SIGKILL);
	assert_true(exists(with(f->file, "-journal")));
	/* It is undone in a copy. Who cannot read the journal must not take half a change for the truth. */
	show_to_all(f);
	assert_int_equal(chmod(f->path, 0555), 0);
	assert_int_equal(in_child(read_copy_as_somebody_else, f), 0);
	if (geteuid() == 0) {
		assert_int_equal(chmod(with(f->file, "-journal"), 0600), 0);
		assert_int_equal(in_child(read_copy_as_somebody_else, f), EACCES);
	}
	assert_int_equal(chmod(f->path, 0755), 0);
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	assert_int_equal(ask(reader, "SELECT count(*) FROM sample WHERE tid = 43 AND cpu = 1"), 2100);
	assert_int_equal(sqlite3_exec(reader, "DELETE FROM sample_block", NULL, NULL, NULL) & 0xff, SQLITE_READONLY);
	sqlite3_close(reader);
	assert_true(exists(with(f->file, "-journal")));
}

/* ---- Errors in words ---- */

static void test_sentences_name_the_file_and_what_to_do(void **state)
{
	static const struct {
		int error;
		const char *remedy;
	} cases[] = {
		{ -ENOENT, "probing record" },
		{ -EISDIR, "name a file in it" },
		{ -ENXIO, "name one" },
		{ -ENOTDIR, "check the path" },
		{ -EACCES, "folder of your own" },
		{ -EPERM, "folder of your own" },
		{ -EROFS, "-o" },
		{ -ENOSPC, "free some" },
		{ -EDQUOT, "free some" },
		{ -EFBIG, "ulimit -f" },
		{ -EBUSY, "another file" },
		{ -EBADMSG, ".recover" },
		{ -EMEDIUMTYPE, "'probing record' wrote" },
		{ -EPROTONOSUPPORT, "update probing" },
		{ -EIO, "dmesg" },
		{ -ENOMEM, "raise the limit" },
		{ -ESTALE, "after its recorder has ended" },
		{ -EMFILE, "ulimit -n" },
		{ -PLACE_EOTHERS_BESIDE, "remove that" },
		{ -PLACE_EOTHERS_LINK, "the file itself" },
		{ -PLACE_EOTHERS_FILE, "another file" },
		{ -ELOOP, "Too many levels" },
		{ -99999, "unknown error" },
	};
	char sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		store_explain(cases[i].error, "/data/run.db", sentence, sizeof sentence);
		assert_non_null(strstr(sentence, "/data/run.db"));
		assert_non_null(strstr(sentence, cases[i].remedy));
		assert_non_null(strchr(sentence, ':'));
		assert_null(strchr(sentence, '\n'));
	}
}

static void test_a_long_path_does_not_push_the_remedy_out(void **state)
{
	char path[1000], sentence[256], tiny[8];

	(void)state;
	memset(path, 'x', sizeof path);
	strcpy(path + sizeof path - 8, "/run.db");
	store_explain(-ENOSPC, path, sentence, sizeof sentence);
	assert_int_equal(strlen(sentence), sizeof sentence - 1);
	assert_non_null(strstr(sentence, "...xxx"));
	assert_non_null(strstr(sentence, "/run.db: free some"));
	assert_non_null(strstr(sentence, "is kept"));
	store_explain(-ENOSPC, path, tiny, sizeof tiny);
	assert_int_equal(strlen(tiny), sizeof tiny - 1);
}

static void test_codes_of_sqlite(void **state)
{
	(void)state;
	assert_int_equal(store_errno(NULL, SQLITE_OK), 0);
	assert_int_equal(store_errno(NULL, SQLITE_ROW), 0);
	assert_int_equal(store_errno(NULL, SQLITE_DONE), 0);
	assert_int_equal(store_errno(NULL, SQLITE_FULL), -ENOSPC);
	assert_int_equal(store_errno(NULL, SQLITE_CORRUPT_INDEX), -EBADMSG);
	assert_int_equal(store_errno(NULL, SQLITE_NOTADB), -EBADMSG);
	assert_int_equal(store_errno(NULL, SQLITE_IOERR_SHORT_READ), -EBADMSG);
	assert_int_equal(store_errno(NULL, SQLITE_IOERR_READ), -EIO);
	assert_int_equal(store_errno(NULL, SQLITE_IOERR_NOMEM), -ENOMEM);
	assert_int_equal(store_errno(NULL, SQLITE_BUSY_SNAPSHOT), -EBUSY);
	assert_int_equal(store_errno(NULL, SQLITE_READONLY), -EACCES);
	assert_int_equal(store_errno(NULL, SQLITE_READONLY_DBMOVED), -ESTALE);
	assert_int_equal(store_errno(NULL, SQLITE_CONSTRAINT_NOTNULL), -EINVAL);
	assert_int_equal(store_errno(NULL, SQLITE_INTERRUPT), -EINTR);
}

/* A file that is only read cannot be full, but our own temporary files can. */
static void test_full_by_damage(void **state)
{
	const struct folder *f = *state;
	sqlite3 *reader, *writer;

	finish(new_store(f->file));
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	errno = 0;
	assert_int_equal(store_errno(reader, SQLITE_FULL), -EBADMSG);
	errno = ENOSPC;
	assert_int_equal(store_errno(reader, SQLITE_FULL), -ENOSPC);
	sqlite3_close(reader);

	assert_int_equal(sqlite3_open(f->file, &writer), SQLITE_OK);
	errno = 0;
	assert_int_equal(store_errno(writer, SQLITE_FULL), -ENOSPC);
	sqlite3_close(writer);
}

/* The live view's files have no name that others can find. Its writer and reader still need each other's locks. */
static void test_files_without_names_are_locked(void **state)
{
	const struct folder *f = *state;
	const char *const endings[] = { "", "-wal", "-shm" };
	struct store *store = new_store(f->file);
	sqlite3 *reader, *writer;
	sqlite3_stmt *row;

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_put_counter(store, "lost", 1), 0);
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	assert_int_equal(sqlite3_open(f->file, &writer), SQLITE_OK);
	assert_int_equal(sqlite3_exec(writer, "INSERT INTO counter VALUES('more', 1)", NULL, NULL, NULL), SQLITE_OK);
	for (size_t i = 0; i < N_ELEMENTS(endings); i++) {
		CLEANUP(freep) char *path = NULL;

		assert_true(asprintf(&path, "%s%s", f->file, endings[i]) > 0);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM counter", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(writer, "PRAGMA wal_checkpoint(TRUNCATE)", -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(row, 0), 1); /* busy: the reader holds the log */
	sqlite3_finalize(row);
	sqlite3_close(reader);
	sqlite3_close(writer);
	store_close(store);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_reads_and_does_not_write),
		FOLDER_TEST(test_files_without_names_are_locked),
		FOLDER_TEST(test_what_is_no_recording),
		FOLDER_TEST(test_newer_schema),
		FOLDER_TEST(test_tables_that_are_missing_or_fake),
		FOLDER_TEST(test_damage),
		FOLDER_TEST(test_is_its_owners_alone),
		FOLDER_TEST(test_finished_in_an_unwritable_folder),
		FOLDER_TEST(test_closed_in_an_unwritable_folder),
		FOLDER_TEST(test_killed_in_an_unwritable_folder),
		FOLDER_TEST(test_live_of_somebody_else),
		FOLDER_TEST(test_unreadable),
		FOLDER_TEST(test_hot_journal),
		cmocka_unit_test(test_sentences_name_the_file_and_what_to_do),
		cmocka_unit_test(test_a_long_path_does_not_push_the_remedy_out),
		cmocka_unit_test(test_codes_of_sqlite),
		FOLDER_TEST(test_full_by_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
