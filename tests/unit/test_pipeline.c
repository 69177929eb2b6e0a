/* SPDX-License-Identifier: MIT */
/* test_pipeline.c - how a pipeline ends: which recordings are marked as clean. */
#include "tests/unit/pipeline_fixture.h"

#include <sqlite3.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(only_what_is_whole_is_clean),
		FOLDER_TEST(what_was_flushed_is_kept),
		FOLDER_TEST(threads_without_a_number_stay_one),
		FOLDER_TEST(unsampled_time_has_a_process),
		FOLDER_TEST(unsampled_time_leaves_the_end_of_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
