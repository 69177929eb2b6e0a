/* SPDX-License-Identifier: MIT */
/* test_store_writer.c - a recording file from its creation to its end, a crash included. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "tests/unit/store_fixture.h"

#include "base/rank.h"

static void test_every_row_arrives(void **state)
{
	const struct folder *f = *state;
	const struct rank_identity rank = { RANK_OF_WORKER, 3, 1, 8, "none:1", "" };
	struct store *store = NULL;
	bool kept = true;

	assert_int_equal(store_create(f->file, &kept, &store), 0);
	assert_false(kept);
	assert_int_equal(put_run(store), 0);
	assert_int_equal(store_set_run_python(store, "3.11.2"), 0);
	assert_int_equal(store_put_process(store, &(struct process_row){ .pid = 42,
									 .parent_pid = 1,
									 .name = "python3",
									 .command = "python3 train.py",
									 .rank = &rank,
									 .started_ns = 1500000000 }),
			 0);
	assert_int_equal(store_put_thread(store, &(struct thread_row){ .pid = 42,
								       .tid = 43,
								       .name = "worker",
								       .started_ns = 2000000000,
								       .ended_ns = 2500000000 }),
			 0);
	assert_int_equal(store_put_module(store, &(struct module_row){ .module = 1, .path = "/lib/libx.so" }), 0);
	assert_int_equal(store_put_function(store, &(struct function_row){ .function = 1,
									   .name = "x::f()",
									   .symbol = "_ZN1x1fEv",
									   .kind = FRAME_NATIVE,
									   .role = "builtin",
									   .file = "x.cc",
									   .first_line = 10,
									   .module = 1 }),
			 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 1,
								     .kind = FRAME_NATIVE,
								     .module = 1,
								     .has_address = true,
								     .address = 0x1234,
								     .is_eval = true,
								     .without_cfi = true }),
			 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 2, .kind = FRAME_KERNEL }), 0);
	assert_int_equal(store_name_frame(store, 2, 1, 12, 1), 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 3, .kind = FRAME_NATIVE }), 0);
	assert_int_equal(store_set_frame_kind(store, 3, FRAME_PYTHON), 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 4,
								     .kind = FRAME_PYTHON,
								     .line = 7,
								     .column = 5,
								     .end_line = 8,
								     .end_column = 9 }),
			 0);
	assert_int_equal(store_put_stack(store, &(struct stack_row){ .stack = 1, .frame = 1 }), 0);
	assert_int_equal(store_put_stack(store, &(struct stack_row){ .stack = 2, .parent = 1, .frame = 2, .depth = 1 }),
			 0);
	assert_int_equal(put_samples(store, 1), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			store_put_total(
				store,
				&(struct total_row){ .pid = 42, .tid = 43, .stack = 2, .samples = 5, .weight = 50 }),
			0);
	assert_int_equal(store_put_evaluation_place(store, &(struct evaluation_place_row){ .module = 1,
											   .address = 0x1200,
											   .holds = "anchor",
											   .below_cfa = 48,
											   .agreed = 3,
											   .tries = 4 }),
			 0);
	assert_int_equal(store_put_evaluation_place(store, &(struct evaluation_place_row){ .module = 1,
											   .address = 0x1200,
											   .holds = "bytecode",
											   .is_leaf = true,
											   .reg = 3,
											   .agreed = 9,
											   .tries = 9 }),
			 0);
	assert_int_equal(store_put_counter(store, "lost", 1), 0);
	assert_int_equal(store_put_counter(store, "lost", 3), 0);
	assert_int_equal(store_set_run_cpu(store, "Abacus 9"), 0);
	assert_int_equal(store_put_bench_run(store, &(struct bench_run_row){ .run = 1,
									     .command = "app",
									     .started_ns = 1700000000000000000,
									     .wall_s = 0.5,
									     .user_s = -1,
									     .sys_s = -1,
									     .max_rss_bytes = -1 }),
			 0);
	assert_int_equal(store_put_bench_run(store, &(struct bench_run_row){ .command = "app",
									     .started_ns = 1700000001000000000,
									     .wall_s = 0.25,
									     .user_s = 0.125,
									     .sys_s = 0,
									     .max_rss_bytes = 4096,
									     .exit_status = 3 }),
			 0);
	finish(store);

	assert_string_equal(
		stock_shell(f->file, "SELECT * FROM run"),
		"1|1700000000.0|1700000009.0|1|python3 train.py|42|cpu|99.0|wakeup|3.11.2|1|here|6.1|4|0.1|cpu-clock|ns||Abacus 9||");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM bench_run"),
			    "1|1|app|1700000000.0|0.5||||0\n2||app|1700000001.0|0.25|0.125|0.0|4096|3");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM process"),
			    "42|1|python3|python3 train.py||1.5||here|3|1|8|none:1");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM thread"), "42|43|worker|2.0|2.5");
	assert_string_equal(stock_shell(f->file, "SELECT module, path, build_id IS NULL FROM module"),
			    "1|/lib/libx.so|1");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM function"),
			    "1|x::f()|_ZN1x1fEv|native|builtin|x.cc|10|1");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM frame"),
			    "1|native||||||1|4660|1|1|\n2|kernel|1|12||||||0|0|1\n3|python||||||||0|0|\n"
			    "4|python||7|5|8|9|||0|0|");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM stack"), "1||1|0\n2|1|2|1");
	assert_string_equal(ask_samples(f->file, "SELECT * FROM sample"),
			    "1700000000.0|42|43|1|10101010|verified|complete|7||||cpu-clock|0||||||here|3|1");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM stack_total"), "42|43|2|10|100");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM anchor_location"),
			    "1|4608|anchor|0|48||3|4\n1|4608|bytecode|1||3|9|9");
	assert_string_equal(stock_shell(f->file, "SELECT * FROM counter WHERE name <> 'checksum'"), "lost|3");
	assert_string_equal(stock_shell(f->file, "PRAGMA integrity_check"), "ok");
}

static void test_a_second_row_replaces_process_and_thread(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	struct process_row process = { .pid = 7, .name = "sh", .command = "sh", .started_ns = 1000000000 };
	struct thread_row thread = { .pid = 7, .tid = 7, .name = "sh", .started_ns = 1000000000 };

	assert_int_equal(store_put_process(store, &process), 0);
	assert_int_equal(store_put_thread(store, &thread), 0);
	process.name = thread.name = "python3";
	process.ended_ns = thread.ended_ns = 3000000000;
	assert_int_equal(store_put_process(store, &process), 0);
	assert_int_equal(store_put_thread(store, &thread), 0);
	finish(store);
	assert_string_equal(
		stock_shell(f->file, "SELECT name, ended FROM process UNION ALL SELECT name, ended FROM thread"),
		"python3|3.0\npython3|3.0");
}

static void test_a_fallback_row_leaves_an_older_one(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	struct thread_row thread = {
		.pid = 7, .tid = 7, .name = "first", .started_ns = 1000000000, .ended_ns = 2000000000
	};

	assert_int_equal(store_put_thread(store, &thread), 0);
	thread = (struct thread_row){
		.pid = 7, .tid = 7, .name = "second", .started_ns = 3000000000, .is_fallback = true
	};
	assert_int_equal(store_put_thread(store, &thread), 0);
	thread.tid = 8;
	assert_int_equal(store_put_thread(store, &thread), 0);
	finish(store);
	assert_string_equal(stock_shell(f->file, "SELECT name, ended FROM thread ORDER BY tid"), "first|2.0\nsecond|");
}

static void test_what_a_tracepoint_tells(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	const struct field_column columns[] = {
		{ "fd", "INTEGER" }, { "Sample", "TEXT" }, { "FD", "BLOB" }, { "odd name", "TEXT" }
	};
	const struct field_value values[] = { { .type = FIELD_INTEGER, .integer = -3 },
					      { .type = FIELD_TEXT, .bytes = "abc", .n_bytes = 2 },
					      { .type = FIELD_BLOB, .bytes = "\0\1", .n_bytes = 2 },
					      { .type = FIELD_NULL } };

	assert_int_equal(store_put_fields(store, values, 4), -EINVAL); /* no table yet */
	assert_int_equal(store_set_run_event(store, "a:b", true, 1), 0);
	assert_int_equal(store_create_fields(store, "a:b", columns, 4), 0);
	assert_int_equal(put_samples(store, 2), 0);
	assert_int_equal(store_put_fields(store, values, 4), 0);
	assert_int_equal(store_put_fields(store, values, 3), -EINVAL);
	finish(store);
	assert_string_equal(stock_shell(f->file, "SELECT event, unit, period FROM run"), "a:b|count|1");
	assert_string_equal(
		ask_samples(f->file,
			    "SELECT sample.rowid, [a:b].fd, [a:b].Sample_, hex(sample.fd_), sample.[odd name] IS NULL"
			    " FROM [a:b] JOIN sample ON sample.rowid = [a:b].sample"),
		"102|-3|ab|0001|1");
}

static void test_a_forbidden_row_is_refused_alone(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_put_module(store, &(struct module_row){ .module = 1 }), -EINVAL);
	assert_int_equal(store_put_module(store, &(struct module_row){ .module = 1, .path = "/a" }), 0);
	assert_int_equal(store_put_module(store, &(struct module_row){ .module = 1, .path = "/b" }), -EINVAL);
	assert_int_equal(store_commit(store), 0);
	finish(store);
	assert_string_equal(stock_shell(f->file, "SELECT path FROM module"), "/a");
}

static void test_finished_file_stands_alone(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	assert_false(exists(with(f->file, "-wal")));
	assert_false(exists(with(f->file, "-shm")));
	assert_false(exists(with(f->file, "-journal")));
	assert_string_equal(stock_shell(f->file, "PRAGMA journal_mode"), "delete");
	assert_string_equal(stock_shell(f->file, "PRAGMA application_id"), "1349676898");
	assert_int_equal(STORE_APPLICATION_ID, 1349676898);
	assert_string_equal(stock_shell(f->file, "PRAGMA user_version"), "2");
}

static void test_finish_commits_an_open_batch(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(put_samples(store, 5), 0);
	finish(store);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "105");
}

static void test_rollback_leaves_nothing(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(put_samples(store, 5), 0);
	store_rollback(store);
	assert_int_equal(put_batch(store), 0);
	finish(store);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "200");
}

static void test_close_is_not_clean(void **state)
{
	const struct folder *f = *state;

	store_close(new_store(f->file));
	store_close(NULL);
	assert_string_equal(stock_shell(f->file, "SELECT clean, ended IS NULL FROM run"), "0|1");
}

static void test_bytes_include_the_log(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	struct stat database, log;

	assert_int_equal(stat(f->file, &database), 0);
	assert_int_equal(stat(with(f->file, "-wal"), &log), 0);
	assert_true(log.st_size > 0);
	assert_int_equal(store_bytes(store), database.st_size + log.st_size);
	finish(store);
}

static void test_others_can_read_while_it_is_written(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	sqlite3 *reader = NULL;

	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "100");
	assert_int_equal(store_open_reader(f->file, &reader), 0);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(put_samples(store, 50), 0);
	assert_int_equal(ask(reader, "SELECT count(*) FROM sample"), 100);
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(ask(reader, "SELECT count(*) FROM sample"), 150);
	sqlite3_close(reader);
	finish(store);
}

static void test_finish_beside_a_busy_reader(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	sqlite3 *reader = NULL;
	sqlite3_stmt *half_read = NULL;

	assert_int_equal(store_open_reader(f->file, &reader), 0);
	assert_int_equal(sqlite3_prepare_v2(reader, "SELECT * FROM sample", -1, &half_read, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(half_read), SQLITE_ROW);
	assert_int_equal(put_batch(store), 0);
	finish(store);
	assert_int_equal(sqlite3_step(half_read), SQLITE_ROW);
	sqlite3_finalize(half_read);
	assert_int_equal(ask(reader, "SELECT clean FROM run"), 1);
	sqlite3_close(reader);
	assert_string_equal(ask_samples(f->file, "SELECT clean, (SELECT count(*) FROM sample) FROM run"), "1|200");
}

/* ---- The previous file ---- */

static void test_old_file_is_kept(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;
	bool kept = false;

	write_text(f->old, "older");
	write_text(with(f->old, "-wal"), "older");
	finish(new_store(f->file));
	assert_int_equal(store_create(f->file, &kept, &store), 0);
	assert_true(kept);
	finish(store);
	assert_string_equal(ask_samples(f->old, "SELECT count(*) FROM sample"), "100");
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "0");
	assert_false(exists(with(f->old, "-wal")));
}

static int write_and_die(const struct folder *f)
{
	struct store *store = NULL;

	EXPECT(store_create(f->file, NULL, &store) == 0);
	EXPECT(put_run(store) == 0 && put_batch(store) == 0);
	raise(SIGKILL);
	return 1;
}

static void test_old_file_takes_its_log_along(void **state)
{
	const struct folder *f = *state;

	assert_int_equal(in_child(write_and_die, f), 128 + SIGKILL);
	assert_true(exists(with(f->file, "-wal")));
	finish(new_store(f->file));
	assert_true(exists(with(f->old, "-wal")));
	assert_string_equal(ask_samples(f->old, "SELECT count(*), (SELECT clean FROM run) FROM sample"), "100|0");
	assert_string_equal(stock_shell(f->file, "PRAGMA integrity_check"), "ok");
}

/* A log without its database must not be replayed into the new one. */
static void test_orphaned_log_is_not_replayed(void **state)
{
	const struct folder *f = *state;

	assert_int_equal(in_child(write_and_die, f), 128 + SIGKILL);
	assert_int_equal(unlink(f->file), 0);
	finish(new_store(f->file));
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "100");
	assert_string_equal(stock_shell(f->file, "PRAGMA integrity_check"), "ok");
	assert_false(exists(f->old));
}

static int expect_busy(const struct folder *f)
{
	struct store *store = NULL;
	bool kept = false;

	EXPECT(store_create(f->file, &kept, &store) == -EBUSY);
	EXPECT(!store && !kept);
	return 0;
}

static void test_a_live_recording_is_not_touched(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	assert_int_equal(in_child(expect_busy, f), 0);
	assert_false(exists(f->old));
	assert_int_equal(put_batch(store), 0);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "200");
	/* Stock tools that come and go do not free it either. */
	assert_int_equal(in_child(expect_busy, f), 0);
	finish(store);
	finish(new_store(f->file));
	assert_true(exists(f->old));
}

static void test_what_cannot_be_replaced(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;
	bool kept = false;

	assert_int_equal(store_create(f->path, &kept, &store), -EISDIR);
	assert_int_equal(store_create("/dev/null", &kept, &store), -ENXIO);
	assert_int_equal(mkfifo(f->file, 0600), 0);
	assert_int_equal(store_create(f->file, &kept, &store), -ENXIO);
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(store_create(with(f->path, "/none/run.db"), &kept, &store), -ENOENT);
	write_text(f->file, "text");
	assert_int_equal(store_create(with(f->file, "/run.db"), &kept, &store), -ENOTDIR);
	assert_int_equal(mkdir(f->old, 0700), 0);
	assert_int_equal(store_create(f->file, &kept, &store), -EISDIR);
	assert_null(store);
	assert_false(kept);
	assert_true(exists(f->file));
}

static int create_in_foreign_folder(const struct folder *f)
{
	struct store *store = NULL;
	char fresh[400];

	EXPECT(become_ordinary() == 0);
	snprintf(fresh, sizeof fresh, "%s/fresh.db", f->path);
	EXPECT(store_create(f->file, NULL, &store) == -EACCES);
	EXPECT(store_create(fresh, NULL, &store) == -EACCES);
	EXPECT(!store && exists(f->file) && !exists(f->old) && !exists(fresh));
	return 0;
}

static void test_unwritable_folder(void **state)
{
	const struct folder *f = *state;

	finish(new_store(f->file));
	assert_int_equal(chmod(f->path, 0555), 0);
	assert_int_equal(in_child(create_in_foreign_folder, f), 0);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "100");
}

static void test_names_that_sqlite_would_interpret(void **state)
{
	static const char *const names[] = { ":memory:", "file:x?mode=memory", "a b%41?#.db" };
	const struct folder *f = *state;
	char *before = getcwd(NULL, 0);

	assert_int_equal(chdir(f->path), 0);
	for (size_t i = 0; i < 3; i++) {
		sqlite3 *reader = NULL;

		finish(new_store(names[i]));
		assert_true(exists(names[i]));
		assert_int_equal(store_open_reader(names[i], &reader), 0);
		assert_int_equal(ask(reader, "SELECT count(*) FROM sample"), 100);
		sqlite3_close(reader);
	}
	assert_int_equal(chdir(before), 0);
	free(before);
}

/* ---- Death and full disks ---- */

static int write_until_killed(const char *path, int out)
{
	struct store *store = NULL;

	if (store_create(path, NULL, &store) < 0 || put_run(store) < 0)
		return 1;
	while (put_batch(store) == 0)
		if (write(out, "+", 1) != 1)
			return 1;
	return 1;
}

/* The child reports each batch with a byte; return how many were certainly committed. */
static unsigned record_and_kill(const char *path, unsigned n_batches)
{
	char bytes[256];
	unsigned n = 0;
	ssize_t got;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(write_until_killed(path, ends[1]));
	close(ends[1]);
	while ((got = read(ends[0], bytes, sizeof bytes)) > 0) {
		n += (unsigned)got;
		if (n >= n_batches)
			kill(pid, SIGKILL);
	}
	close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return n;
}

static void test_killed_recorder_loses_nothing_flushed(void **state)
{
	/* Before the log is first moved into the file, and after several times. */
	static const unsigned sizes[] = { 1, 20, 700 };
	const struct folder *f = *state;

	for (size_t i = 0; i < 3; i++) {
		unsigned n = record_and_kill(f->file, sizes[i]);
		sqlite3 *reader = NULL;
		int64_t n_samples;

		assert_true(n >= sizes[i]);
		assert_int_equal(store_open_reader(f->file, &reader), 0);
		n_samples = ask(reader, "SELECT count(*) FROM sample");
		assert_int_equal(n_samples % BATCH_SAMPLES, 0);
		/* The last one may have been committed without an answer. */
		assert_in_range(n_samples / BATCH_SAMPLES, n, n + 1);
		assert_int_equal(ask(reader, "SELECT clean FROM run"), 0);
		sqlite3_close(reader);
		assert_string_equal(stock_shell(f->file, "PRAGMA integrity_check"), "ok");
		assert_int_equal(atoll(ask_samples(f->file, "SELECT count(*) FROM sample")), n_samples);
	}
}

static int check_samples(const char *path, int64_t n_expected, int64_t clean)
{
	sqlite3 *reader = NULL;

	EXPECT(store_open_reader(path, &reader) == 0);
	EXPECT(ask(reader, "SELECT count(*) FROM sample") == n_expected);
	EXPECT(ask(reader, "SELECT clean FROM run") == clean);
	sqlite3_close(reader);
	EXPECT(strcmp(stock_shell(path, "PRAGMA integrity_check"), "ok") == 0);
	return 0;
}

/* Batches until one fails; *ret_error is why. */
static unsigned fill(struct store *store, int *ret_error)
{
	unsigned n = 0;

	while ((*ret_error = put_batch(store)) == 0)
		n++;
	return n;
}

static int take_space(const char *path, off_t n_bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = posix_fallocate(fd, 0, n_bytes);
	close(fd);
	return -r;
}

static int small_disk(const struct folder *f)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	return mount("none", f->path, "tmpfs", 0, "size=2m,mode=755") < 0 ? -errno : 0;
}

static int fill_disk_and_go_on(const struct folder *f)
{
	struct store *store = NULL;
	char filler[400];
	unsigned n;
	int error;

	EXPECT(small_disk(f) == 0);
	snprintf(filler, sizeof filler, "%s/filler", f->path);
	/* The disk fills after the block of the first 82 batches is written, which takes more room than a batch. */
	EXPECT(take_space(filler, 900 << 10) == 0);
	EXPECT(store_create(f->file, NULL, &store) == 0 && put_run(store) == 0);
	n = fill(store, &error);
	EXPECT(error == -ENOSPC && n > 10);
	EXPECT(put_batch(store) == -ENOSPC);
	EXPECT(unlink(filler) == 0);
	EXPECT(put_batch(store) == 0);
	EXPECT(store_finish(store, 1) == 0);
	return check_samples(f->file, (int64_t)(n + 1) * BATCH_SAMPLES, 1);
}

static int fill_disk_and_finish(const struct folder *f)
{
	struct store *store = NULL;
	char filler[400];
	unsigned n;
	int error, r;

	EXPECT(small_disk(f) == 0);
	snprintf(filler, sizeof filler, "%s/filler", f->path);
	EXPECT(take_space(filler, 64 << 10) == 0);
	EXPECT(store_create(f->file, NULL, &store) == 0 && put_run(store) == 0);
	n = fill(store, &error);
	EXPECT(error == -ENOSPC && n > 10);
	/* Room for the mark, however much of the last batch fitted, and not for the log's pages. */
	EXPECT(unlink(filler) == 0);
	r = store_finish(store, 1);
	EXPECT(r == -ENOSPC); /* it is marked clean, but stays two files */
	return check_samples(f->file, (int64_t)n * BATCH_SAMPLES, 1);
}

static int create_on_full_disk(const struct folder *f)
{
	struct store *store = NULL;
	char filler[400];
	struct stat st;

	EXPECT(small_disk(f) == 0);
	snprintf(filler, sizeof filler, "%s/filler", f->path);
	EXPECT(store_create(f->file, NULL, &store) == 0);
	EXPECT(put_run(store) == 0 && put_batch(store) == 0);
	EXPECT(store_finish(store, 1) == 0);
	EXPECT(take_space(filler, 2 << 20) == -ENOSPC);
	for (off_t n = 2 << 20; n > 0; n -= 4096)
		if (take_space(filler, n) == 0)
			break;
	EXPECT(stat(filler, &st) == 0 && st.st_size > 0);
	store = NULL;
	EXPECT(store_create(f->file, NULL, &store) == -ENOSPC);
	EXPECT(!store && !exists(f->old) && !exists(with(f->file, "-wal")) && !exists(with(f->file, "-shm")));
	EXPECT(unlink(filler) == 0);
	return check_samples(f->file, BATCH_SAMPLES, 1);
}

static int try_small_disk(const struct folder *f)
{
	return small_disk(f) < 0;
}

static void on_small_disk(const struct folder *f, int (*scenario)(const struct folder *f))
{
	if (in_child(try_small_disk, f) != 0) {
		print_message("skipped: mounting a small tmpfs takes CAP_SYS_ADMIN\n");
		skip();
	}
	assert_int_equal(in_child(scenario, f), 0);
}

static void test_full_disk_then_space_again(void **state)
{
	on_small_disk(*state, fill_disk_and_go_on);
}

static void test_full_disk_to_the_end(void **state)
{
	on_small_disk(*state, fill_disk_and_finish);
}

static void test_full_disk_from_the_start(void **state)
{
	on_small_disk(*state, create_on_full_disk);
}

/* What every user can have: a limit on the size of files. */
static int reach_size_limit(const struct folder *f)
{
	struct rlimit limit;
	struct store *store = NULL;
	unsigned n;
	int error;

	EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 600 << 10;
	EXPECT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(store_create(f->file, NULL, &store) == 0 && put_run(store) == 0);
	n = fill(store, &error);
	EXPECT(error == -EFBIG && n > 10);
	EXPECT(store_finish(store, 1) == 0);
	return check_samples(f->file, (int64_t)n * BATCH_SAMPLES, 1);
}

static void test_file_size_limit(void **state)
{
	assert_int_equal(in_child(reach_size_limit, *state), 0);
}

/*
 * SQLite rolls back a batch whose pages fit neither in memory nor on disk. The rest of that batch must not become
 * separate transactions.
 */
static int overflow_within_a_batch(const struct folder *f)
{
	struct rlimit limit;
	struct store *store = NULL;
	int r;

	EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 1 << 20;
	EXPECT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(store_create(f->file, NULL, &store) == 0 && put_run(store) == 0 && put_batch(store) == 0);
	EXPECT(store_begin(store) == 0);
	for (int i = 0; (r = put_samples(store, 1000)) == 0; i++)
		EXPECT(i < 10000);
	EXPECT(r == -EFBIG);
	EXPECT(put_samples(store, 1) == -EFBIG);
	EXPECT(store_commit(store) == -EFBIG);
	EXPECT(put_batch(store) == 0);
	EXPECT(store_finish(store, 1) == 0);
	return check_samples(f->file, 2 * BATCH_SAMPLES, 1);
}

static void test_batch_is_whole_or_absent(void **state)
{
	assert_int_equal(in_child(overflow_within_a_batch, *state), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_every_row_arrives),
		FOLDER_TEST(test_a_second_row_replaces_process_and_thread),
		FOLDER_TEST(test_a_fallback_row_leaves_an_older_one),
		FOLDER_TEST(test_what_a_tracepoint_tells),
		FOLDER_TEST(test_a_forbidden_row_is_refused_alone),
		FOLDER_TEST(test_finished_file_stands_alone),
		FOLDER_TEST(test_finish_commits_an_open_batch),
		FOLDER_TEST(test_rollback_leaves_nothing),
		FOLDER_TEST(test_close_is_not_clean),
		FOLDER_TEST(test_bytes_include_the_log),
		FOLDER_TEST(test_others_can_read_while_it_is_written),
		FOLDER_TEST(test_finish_beside_a_busy_reader),
		FOLDER_TEST(test_old_file_is_kept),
		FOLDER_TEST(test_old_file_takes_its_log_along),
		FOLDER_TEST(test_orphaned_log_is_not_replayed),
		FOLDER_TEST(test_a_live_recording_is_not_touched),
		FOLDER_TEST(test_what_cannot_be_replaced),
		FOLDER_TEST(test_unwritable_folder),
		FOLDER_TEST(test_names_that_sqlite_would_interpret),
		FOLDER_TEST(test_killed_recorder_loses_nothing_flushed),
		FOLDER_TEST(test_full_disk_then_space_again),
		FOLDER_TEST(test_full_disk_to_the_end),
		FOLDER_TEST(test_full_disk_from_the_start),
		FOLDER_TEST(test_file_size_limit),
		FOLDER_TEST(test_batch_is_whole_or_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
