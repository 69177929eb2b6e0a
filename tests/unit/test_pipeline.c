/* SPDX-License-Identifier: MIT */
/* test_pipeline.c - how a pipeline ends: which recordings are marked as clean. */
#include "tests/unit/pipeline_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "src/pipeline/retention.h"
#include "src/ring/layout.h"

static int64_t number(const char *path, const char *sql)
{
	sqlite3_stmt *statement;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(store_open_reader(path, &db), 0);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	n = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return n;
}

/* A failure of the pipeline's caller counts as its own: both lose samples. */
static void only_what_is_whole_is_clean(void **state)
{
	static const int errors[] = { 0, -ENOMEM, -EIO };
	static const struct pipeline_counter counters[] = { { "lost", 3 }, { 0 } };
	const struct folder *folder = *state;

	for (size_t i = 0; i < N_ELEMENTS(errors); i++) {
		struct pipeline *pipeline = new_pipeline(folder->file);

		assert_int_equal(pipeline_finish(pipeline, counters, errors[i]), errors[i]);
		pipeline_free(pipeline);
		assert_int_equal(number(folder->file, "SELECT clean FROM run"), errors[i] == 0);
		assert_int_equal(number(folder->file, "SELECT ended IS NOT NULL FROM run"), errors[i] == 0);
		assert_false(store_is_written(folder->file));
	}
}

/* Samples from before the failure stay. */
static void what_was_flushed_is_kept(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	char python[64];
	int python_error;

	assert_int_equal(pipeline_attach(pipeline, getpid(), python, sizeof python, &python_error), 0);
	assert_int_equal(pipeline_finish(pipeline, NULL, -ENOMEM), -ENOMEM);
	pipeline_free(pipeline);
	assert_int_equal(number(folder->file, "SELECT clean FROM run"), 0);
	assert_int_equal(number(folder->file, "SELECT count(*) FROM process"), 1);
}

/* Samples of ended threads have no number. They stay one thread, also when others are forgotten. */
static void threads_without_a_number_stay_one(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	const struct pipeline_counter no_counters[] = { { 0 } };
	uint32_t nameless, again, ended;

	assert_int_equal(pipeline_know_thread(pipeline, 1000, 1001, 1, &ended), 0);
	assert_int_equal(pipeline_know_thread(pipeline, 1000, 0, 1, &nameless), 0);
	for (int flush = 0; flush < 3; flush++) {
		pipeline->threads[0].ended_ns = 2;
		for (size_t i = 0; i < pipeline->n_threads; i++)
			pipeline->threads[i].is_new = false;
		assert_int_equal(pipeline_evict_ended(pipeline), 0);
		assert_int_equal(pipeline_know_thread(pipeline, 1000, 0, 3, &again), 0);
		assert_int_equal(again, 0);
		assert_int_equal(pipeline->n_threads, 1);
	}
	assert_int_equal(pipeline_finish(pipeline, no_counters, 0), 0);
	pipeline_free(pipeline);
}

/* A process without a fork event gets a row, since each sample refers to one. */
static void unsampled_time_has_a_process(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	const struct pipeline_counter no_counters[] = { { 0 } };
	struct capture_event event = {
		.type = CAPTURE_UNSAMPLED, .time_ns = 5000000000, .pid = 4000000, .tid = 4000001
	};

	event.unsampled.weight = 1000000;
	assert_int_equal(pipeline_take_event(pipeline, &event), 0);
	assert_int_equal(pipeline_finish(pipeline, no_counters, 0), 0);
	pipeline_free(pipeline);
	assert_int_equal(number(folder->file, "SELECT count(*) FROM process WHERE pid = 4000000"), 1);
}

/* At the end a process gets its time without samples. Its main thread keeps its end, though it was evicted. */
static void unsampled_time_leaves_the_end_of_a_thread(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	const struct pipeline_counter no_counters[] = { { 0 } };
	struct capture_event event = { .type = CAPTURE_UNSAMPLED, .time_ns = 5000000000, .pid = 1000, .tid = 1000 };
	uint32_t thread;

	event.unsampled.weight = 1000000;
	event.unsampled.is_of_process = true;
	assert_int_equal(pipeline_know_thread(pipeline, 1000, 1000, 1, &thread), 0);
	pipeline->threads[thread].ended_ns = 2;
	assert_int_equal(pipeline_flush(pipeline), 0);
	assert_int_equal(pipeline->n_threads, 0);
	assert_int_equal(pipeline_take_event(pipeline, &event), 0);
	assert_int_equal(pipeline_finish(pipeline, no_counters, 0), 0);
	pipeline_free(pipeline);
	assert_int_equal(number(folder->file, "SELECT count(*) FROM thread"), 1);
	assert_int_equal(number(folder->file, "SELECT ended IS NOT NULL FROM thread"), 1);
	assert_int_equal(number(folder->file, "SELECT sum(weight) FROM stack_total"), 1000000);
}

enum { N_RINGS = 10, N_SLOTS = 16 };

/* A ring with 4 MiB of rows, as a program leaves it. */
static void write_ring(int folder, const char *name)
{
	static char cells[N_SLOTS * RING_MAX_COLUMNS * RING_MAX_CELL_BYTES];
	struct ring_header header = {
		.magic = RING_MAGIC,
		.version = RING_VERSION,
		.n_columns = RING_MAX_COLUMNS,
		.file_bytes = RING_HEADER_BYTES + RING_N_FIXED * N_SLOTS * RING_WORD + sizeof cells,
		.n_rows = N_SLOTS,
		.pid = getpid(),
		.start_time = ring_start_time(getpid()),
		.name = "wide",
		.head = N_SLOTS,
	};
	uint64_t fixed[RING_N_FIXED * N_SLOTS] = { 0 };
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (uint64_t i = 0; i < N_SLOTS; i++)
		fixed[i] = 2 * i + 2;
	for (int i = 0; i < RING_MAX_COLUMNS; i++)
		header.columns[i] = (struct ring_header_column){ "c", RING_TEXT, RING_MAX_CELL_BYTES };
	memset(cells, 'x', sizeof cells);
	assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
	assert_int_equal(pwrite(fd, fixed, sizeof fixed, RING_HEADER_BYTES), sizeof fixed);
	assert_int_equal(pwrite(fd, cells, sizeof cells, RING_HEADER_BYTES + sizeof fixed), sizeof cells);
	close(fd);
}

/* All rows of a program with many full rings come, and no batch has more than fits. */
static void full_rings_do_not_fill_the_memory(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = pipeline_with(folder->file, &(struct pipeline_options){ .rows = true });
	const struct pipeline_counter no_counters[] = { { 0 } };
	struct process *process;
	size_t n_bytes = 0;
	char name[32];
	int rings_folder;

	assert_int_equal(ring_folder_make(RING_PARENT, NULL, &rings_folder), 0);
	for (int i = 1; i <= N_RINGS; i++) {
		snprintf(name, sizeof name, "%d.ring", i);
		write_ring(rings_folder, name);
	}
	assert_int_equal(pipeline_know_process(pipeline, getpid(), &process), 0);
	assert_int_equal(pipeline_take_rows(pipeline, monotonic_ns(), true), 1);
	for (size_t i = 0; i < pipeline->batch->n_rows; i++)
		n_bytes += pipeline->batch->rows[i].rows.n_bytes;
	assert_in_range(n_bytes, 32 << 20, 40 << 20);
	assert_int_equal(pipeline_finish(pipeline, no_counters, 0), 0);
	pipeline_free(pipeline);
	for (int i = 1; i <= N_RINGS; i++) {
		snprintf(name, sizeof name, "%d.ring", i);
		assert_int_equal(unlinkat(rings_folder, name, 0), 0);
	}
	close(rings_folder);
	assert_int_equal(number(folder->file, "SELECT sum(rows) FROM row_block"), N_RINGS * N_SLOTS);
}

static int64_t number_in(struct store *store, const char *sql)
{
	sqlite3_stmt *row;
	int64_t n;

	assert_int_equal(sqlite3_prepare_v2(store_connection(store), sql, -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	n = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return n;
}

/* A program that sleeps has metrics each second, and no sample: limits of time and size hold for them, too. */
static void metrics_go_without_samples(void **state)
{
	static const char fill[] =
		"WITH RECURSIVE t(s) AS (VALUES(1) UNION ALL SELECT s + 1 FROM t LIMIT 40000)"
		" INSERT INTO process_usage(pid, timestamp, rss, virtual, user_ns) SELECT 7, s, s << 40, s << 40, s << 40 FROM t";
	const struct store_limits limits = { .keep_ns = 30000 * UINT64_C(1000000000), .max_bytes = 1 << 20 };
	const struct folder *folder = *state;
	struct retention trim;
	struct store *store;

	assert_int_equal(store_create(folder->file, NULL, &store), 0);
	assert_int_equal(retention_init(&trim, store, &(struct store_limits){ .keep_ns = limits.keep_ns }), 0);
	assert_int_equal(sqlite3_exec(store_connection(store), fill, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(retention_after(&trim, store, NULL, 1 << 20, 40000 * UINT64_C(1000000000)), 0);
	assert_in_range(number_in(store, "SELECT min(timestamp) FROM process_usage"), 9000, 10000);
	assert_int_equal(retention_init(&trim, store, &limits), 0);
	assert_int_equal(retention_after(&trim, store, NULL, 1 << 20, 40000 * UINT64_C(1000000000)), 0);
	assert_int_equal(number_in(store, "SELECT max(timestamp) FROM process_usage"), 40000);
	assert_true(
		number_in(
			store,
			"SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count,"
			" pragma_page_size") < limits.max_bytes);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(only_what_is_whole_is_clean),
		FOLDER_TEST(what_was_flushed_is_kept),
		FOLDER_TEST(threads_without_a_number_stay_one),
		FOLDER_TEST(unsampled_time_has_a_process),
		FOLDER_TEST(unsampled_time_leaves_the_end_of_a_thread),
		FOLDER_TEST(full_rings_do_not_fill_the_memory),
		FOLDER_TEST(metrics_go_without_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
