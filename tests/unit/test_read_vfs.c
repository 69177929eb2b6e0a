/* SPDX-License-Identifier: MIT */
/* test_read_vfs.c - readers beside files that others have planted, and beside a recorder at work. */
#include <sched.h>
#include <signal.h>

#include "tests/unit/store_fixture.h"

enum { OTHER_UID = 65533, N_BATCHES = 300 };

static char heard[2048];

static void hear(const char *sentence)
{
	snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", sentence);
}

/* Name, bytes, owner and times of a file. */
struct state {
	struct stat st;
	char bytes[1 << 16];
	ssize_t n;
};

static void take(const char *path, struct state *to)
{
	int fd;

	memset(to, 0, sizeof *to);
	assert_int_equal(lstat(path, &to->st), 0);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && S_ISREG(to->st.st_mode))
		to->n = read(fd, to->bytes, sizeof to->bytes);
	if (fd >= 0)
		close(fd);
}

static void expect_untouched(const char *path, const struct state *before)
{
	struct state now;

	take(path, &now);
	assert_int_equal(now.st.st_ino, before->st.st_ino);
	assert_int_equal(now.st.st_uid, before->st.st_uid);
	assert_int_equal(now.st.st_size, before->st.st_size);
	assert_int_equal(now.st.st_mtim.tv_nsec, before->st.st_mtim.tv_nsec);
	assert_int_equal(now.n, before->n);
	assert_memory_equal(now.bytes, before->bytes, sizeof now.bytes);
}

/* A journal that is to be rolled back, of no page, and that names a super-journal. */
static void plant_journal(const char *path, const char *super)
{
	static const unsigned char magic[] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };
	unsigned char header[512] = { 0 };
	unsigned sum = 0;
	uint32_t n = (uint32_t)strlen(super);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	memcpy(header, magic, sizeof magic);
	header[19] = 1;  /* pages in the database at first */
	header[22] = 2;  /* bytes of a sector: 512 */
	header[26] = 16; /* of a page: 4096 */
	assert_int_equal(fwrite(header, 1, sizeof header, file), sizeof header);
	for (uint32_t i = 0; i < n; i++)
		sum += (unsigned char)super[i];
	const unsigned char before[] = { 0, 4, 0, 1 };
	const unsigned char after[] = { (unsigned char)(n >> 24),   (unsigned char)(n >> 16),
					(unsigned char)(n >> 8),    (unsigned char)n,
					(unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
					(unsigned char)(sum >> 8),  (unsigned char)sum };
	fwrite(before, 1, sizeof before, file);
	fwrite(super, 1, n, file);
	fwrite(after, 1, sizeof after, file);
	fwrite(magic, 1, sizeof magic, file);
	assert_int_equal(fclose(file), 0);
}

static int64_t count_samples(const char *path)
{
	sqlite3 *reader = NULL;
	int64_t n;

	heard[0] = '\0';
	assert_int_equal(store_open_reader(path, &reader), 0);
	n = ask(reader, "SELECT count(*) FROM sample");
	sqlite3_close(reader);
	return n;
}

static void needs_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("needs root: files of another user\n");
	skip();
}

/* Another user's files beside a finished recording are not read or changed, nor is a file that they name. */
static void test_planted_files_are_ignored(void **state)
{
	static const char *const suffixes[] = { "-journal", "-wal", "-shm" };
	const struct folder *f = *state;
	struct state recording, planted, precious;

	needs_root();
	finish(new_store(f->file));
	write_text(with(f->path, "/precious"), "precious");
	take(with(f->path, "/precious"), &precious);
	take(f->file, &recording);
	for (size_t i = 0; i < 3; i++) {
		const char *name = with(f->file, suffixes[i]);

		plant_journal(name, with(f->path, "/precious"));
		assert_int_equal(lchown(name, OTHER_UID, OTHER_UID), 0);
		take(name, &planted);
		assert_int_equal(count_samples(f->file), BATCH_SAMPLES);
		assert_non_null(strstr(heard, name));
		expect_untouched(with(f->file, suffixes[i]), &planted);
		expect_untouched(f->file, &recording);
		expect_untouched(with(f->path, "/precious"), &precious);
		assert_int_equal(unlink(with(f->file, suffixes[i])), 0);
	}
}

/* The same for links, FIFOs and folders. */
static void test_planted_links_and_pipes_are_ignored(void **state)
{
	static const char *const suffixes[] = { "-journal", "-wal", "-shm" };
	const struct folder *f = *state;
	struct state recording, precious;

	finish(new_store(f->file));
	write_text(with(f->path, "/precious"), "precious");
	take(with(f->path, "/precious"), &precious);
	take(f->file, &recording);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(symlink(with(f->path, "/precious"), with(f->file, suffixes[i])), 0);
		assert_int_equal(count_samples(f->file), BATCH_SAMPLES);
		assert_int_equal(unlink(with(f->file, suffixes[i])), 0);
		assert_int_equal(mkfifo(with(f->file, suffixes[i]), 0666), 0);
		assert_int_equal(count_samples(f->file), BATCH_SAMPLES);
		assert_int_equal(unlink(with(f->file, suffixes[i])), 0);
		assert_int_equal(mkdir(with(f->file, suffixes[i]), 0777), 0);
		assert_int_equal(count_samples(f->file), BATCH_SAMPLES);
		assert_int_equal(rmdir(with(f->file, suffixes[i])), 0);
	}
	expect_untouched(f->file, &recording);
	expect_untouched(with(f->path, "/precious"), &precious);
}

/* A journal of the recording's owner is used, except its claim to be part of another file's transaction. */
static void test_a_journal_of_the_owner_names_no_other_file(void **state)
{
	const struct folder *f = *state;
	struct state recording, planted, precious;
	sqlite3 *reader = NULL;
	int r;

	finish(new_store(f->file));
	write_text(with(f->path, "/precious"), "precious");
	take(with(f->path, "/precious"), &precious);
	take(f->file, &recording);
	plant_journal(with(f->file, "-journal"), with(f->path, "/precious"));
	take(with(f->file, "-journal"), &planted);
	r = store_open_reader(f->file, &reader);
	assert_int_equal(r, -EBADMSG);
	expect_untouched(f->file, &recording);
	expect_untouched(with(f->file, "-journal"), &planted);
	expect_untouched(with(f->path, "/precious"), &precious);
}

static void test_nothing_is_made_beside_a_log(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	char copy[1200];
	struct state recording, log;

	/* As a killed recorder leaves it, without the index. */
	snprintf(copy, sizeof copy, "cp %s %s/copy.db && cp %s-wal %s/copy.db-wal", f->file, f->path, f->file, f->path);
	assert_int_equal(system(copy), 0);
	finish(store);
	take(with(f->path, "/copy.db"), &recording);
	take(with(f->path, "/copy.db-wal"), &log);
	assert_int_equal(count_samples(with(f->path, "/copy.db")), BATCH_SAMPLES);
	assert_false(exists(with(f->path, "/copy.db-shm")));
	expect_untouched(with(f->path, "/copy.db"), &recording);
	expect_untouched(with(f->path, "/copy.db-wal"), &log);
}

/* ---- Beside a recorder ---- */

/* Writes batches, and moves its log into the file and begins it again as often as it can. */
static int record_busily(const struct folder *f)
{
	struct store *store = NULL;

	EXPECT(store_create(f->file, NULL, &store) == 0);
	EXPECT(put_run(store) == 0);
	EXPECT(sqlite3_exec(store_connection(store), "PRAGMA wal_autocheckpoint = 3", NULL, NULL, NULL) == SQLITE_OK);
	for (unsigned i = 0; i < N_BATCHES; i++) {
		EXPECT(put_batch(store) == 0);
		if (i % 7 == 0)
			sqlite3_wal_checkpoint_v2(store_connection(store), NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	}
	return store_finish(store, 1700000009u * UINT64_C(1000000000)) == 0 ? 0 : 1;
}

static void expect_whole_batches(sqlite3 *reader, int64_t *n)
{
	int64_t now;

	assert_int_equal(sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	now = ask(reader, "SELECT count(*) FROM sample");
	assert_int_equal(now % BATCH_SAMPLES, 0);
	assert_true(now >= *n);
	/* A transaction's view does not change during later writes. */
	for (unsigned i = 0; i < 5; i++)
		sched_yield();
	assert_int_equal(ask(reader, "SELECT sum(samples) FROM sample_block"), now);
	assert_int_equal(ask(reader, "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'"), 0);
	assert_int_equal(ask(reader, "SELECT count(*) FROM sample WHERE tid = 43"), now);
	assert_int_equal(sqlite3_exec(reader, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	*n = now;
}

static void read_head(const char *log, uint8_t head[32])
{
	FILE *file = fopen(log, "r");

	assert_non_null(file);
	assert_int_equal(fread(head, 1, 32, file), 32);
	fclose(file);
}

/* A log that begins again: a first transaction of which a part is in it, as it did not fit into memory. */
static void test_a_transaction_that_is_not_complete(void **state)
{
	static const char many[] = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
				   " INSERT INTO counter(name, value) SELECT 'counter ' || i, i FROM n";
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	sqlite3 *db = store_connection(store), *reader = NULL, *first = NULL;
	uint8_t before[32], now[32];

	/* Closing any descriptor of a file releases all POSIX locks of the process: this one stays open to the end. */
	assert_int_equal(store_open_reader(f->file, &first), 0);
	assert_int_equal(ask(first, "SELECT count(*) FROM counter WHERE name LIKE 'counter %'"), 0);
	read_head(with(f->file, "-wal"), before);
	assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA cache_size = 4; BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, many, NULL, NULL, NULL), SQLITE_OK);
	read_head(with(f->file, "-wal"), now);
	assert_memory_not_equal(before, now, sizeof now);
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(first, "SELECT count(*) FROM counter WHERE name LIKE 'counter %'"), 0);
		assert_int_equal(ask(reader, "SELECT count(*) FROM counter WHERE name LIKE 'counter %'"), 0);
	}
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(ask(first, "SELECT count(*) FROM counter WHERE name LIKE 'counter %'"), 3000);
	assert_int_equal(ask(reader, "SELECT count(*) FROM counter WHERE name LIKE 'counter %'"), 3000);
	assert_int_equal(ask(reader, "SELECT count(*) FROM sample"), BATCH_SAMPLES);
	sqlite3_close(reader);
	sqlite3_close(first);
	finish(store);
}

/* As a killed recorder leaves the files: with the index, and without. @log_bytes: of the log; 0: all. */
static void expect_copy(const struct folder *f, off_t log_bytes, int64_t n_counters)
{
	char path[600], command[8192];
	sqlite3 *reader = NULL;

	snprintf(path, sizeof path, "%s/killed.db", f->path);
	for (int with_index = 0; with_index < 2; with_index++) {
		snprintf(command, sizeof command,
			 "cp %s %s && cp %s-wal %s-wal && rm -f %s-shm && { [ %d = 0 ] || cp %s-shm %s-shm; }", f->file,
			 path, f->file, path, path, with_index, f->file, path);
		assert_int_equal(system(command), 0);
		snprintf(command, sizeof command, "%s-wal", path);
		if (log_bytes > 0)
			assert_int_equal(truncate(command, log_bytes), 0);
		assert_int_equal(store_open_reader(path, &reader), 0);
		assert_int_equal(ask(reader, "SELECT count(*) FROM counter WHERE name LIKE 'counter %'"), n_counters);
		assert_int_equal(ask(reader, "SELECT count(*) FROM sample"), BATCH_SAMPLES);
		sqlite3_close(reader);
	}
}

/* Its log began again, and has no complete transaction since: only a header, or a part of one. */
static void test_killed_in_a_first_transaction(void **state)
{
	static const char many[] = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
				   " INSERT INTO counter(name, value) SELECT 'counter ' || i, i FROM n";
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	sqlite3 *db = store_connection(store);

	assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA cache_size = 4; BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, many, NULL, NULL, NULL), SQLITE_OK);
	expect_copy(f, 0, 0);
	expect_copy(f, 32, 0);
	expect_copy(f, 32 + 100, 0);
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	expect_copy(f, 0, 3000);
	finish(store);
}

/* The log of a killed recorder gets older, then another one, for the same connection. */
static void test_a_log_is_read_again_if_it_changes(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	sqlite3 *db = store_connection(store), *reader = NULL;
	char command[4096];

	assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "INSERT INTO counter(name, value) VALUES('counter', 1)", NULL, NULL, NULL),
			 SQLITE_OK);
	snprintf(
		command, sizeof command,
		"cd %s && cp %s killed.db && cp %s-wal whole && head -c 100 whole >killed.db-wal && touch -d @1000 killed.db-wal",
		f->path, f->file, f->file);
	assert_int_equal(system(command), 0);
	assert_int_equal(store_open_reader(with(f->path, "/killed.db"), &reader), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ask(reader, "SELECT count(*) FROM counter WHERE name = 'counter'"), 0);
	snprintf(command, sizeof command, "cd %s && cat whole >killed.db-wal && touch -d @1000 killed.db-wal", f->path);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ask(reader, "SELECT count(*) FROM counter WHERE name = 'counter'"), 1);
	snprintf(command, sizeof command, "cd %s && head -c 40 whole >killed.db-wal && touch -d @1001 killed.db-wal",
		 f->path);
	assert_int_equal(system(command), 0);
	assert_int_equal(ask(reader, "SELECT count(*) FROM counter WHERE name = 'counter'"), 0);
	sqlite3_close(reader);
	finish(store);
}

static void test_beside_a_recorder(void **state)
{
	const struct folder *f = *state;
	sqlite3 *reader = NULL;
	int64_t n = 0, n_of_others = 0, n_looks = 0;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(record_busily(f));
	while (store_open_reader(f->file, &reader) < 0 || ask(reader, "SELECT count(*) FROM run") == 0) {
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		sqlite3_close(reader);
		reader = NULL;
	}
	/* One connection that stays, and new ones. */
	while (waitpid(pid, &status, WNOHANG) == 0) {
		sqlite3 *other = NULL;

		expect_whole_batches(reader, &n);
		if (store_open_reader(f->file, &other) == 0)
			expect_whole_batches(other, &n_of_others);
		sqlite3_close(other);
		n_looks++;
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(n_looks > 3);
	expect_whole_batches(reader, &n);
	assert_int_equal(n, N_BATCHES * BATCH_SAMPLES);
	sqlite3_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_planted_files_are_ignored),
		FOLDER_TEST(test_planted_links_and_pipes_are_ignored),
		FOLDER_TEST(test_a_journal_of_the_owner_names_no_other_file),
		FOLDER_TEST(test_nothing_is_made_beside_a_log),
		FOLDER_TEST(test_a_transaction_that_is_not_complete),
		FOLDER_TEST(test_killed_in_a_first_transaction),
		FOLDER_TEST(test_a_log_is_read_again_if_it_changes),
		FOLDER_TEST(test_beside_a_recorder),
	};

	store_on_notice(hear);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
