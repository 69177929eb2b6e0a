/* SPDX-License-Identifier: MIT */
/* test_profile_view.c - samples chosen by time, GIL and SQL, and one by one. */
#include "tests/unit/store_fixture.h"

#include "src/store/profile_private.h"

static const uint64_t second_ns = 1000000000, start_ns = 1700000000000000000;

enum { N_SAMPLES = 1000, FRAME = 1 };

/* A sample each 10 ms, of two threads in turn, the second without a row; every fifth one's time is of one before. */
static void put_all(struct store *store)
{
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(
		store_put_thread(store,
				 &(struct thread_row){ .pid = 42, .tid = 43, .name = "one", .started_ns = start_ns }),
		0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = FRAME, .kind = FRAME_KERNEL }), 0);
	for (int64_t i = 1; i <= 3; i++)
		assert_int_equal(store_put_stack(store, &(struct stack_row){ .stack = i,
									     .parent = i - 1,
									     .frame = FRAME,
									     .depth = (unsigned)i - 1 }),
				 0);
	for (uint64_t i = 0; i < N_SAMPLES; i++) {
		struct sample_row row = { .time_ns = start_ns + (i % 5 == 4 ? i - 2 : i) * second_ns / 100,
					  .pid = 42,
					  .tid = i % 2 ? 44 : 43,
					  .cpu = (unsigned)i % 4,
					  .weight = 1000 + i,
					  .verdict = (enum verdict)(i % VERDICT_N),
					  .stack = (int64_t)(i % 4),
					  .gil = (enum answer)(i % 3),
					  .gc = ANSWER_NO,
					  .state = (enum thread_state)(i % STATE_N) };
		struct total_row total = {
			.pid = 42, .tid = row.tid, .stack = row.stack, .samples = 1, .weight = row.weight
		};

		assert_int_equal(store_put_sample(store, &row), 0);
		assert_int_equal(store_put_total(store, &total), 0);
	}
	assert_int_equal(store_commit(store), 0);
}

static sqlite3 *open_made(const struct folder *folder)
{
	struct store *store = NULL;
	sqlite3 *db = NULL;

	assert_int_equal(store_create(folder->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	put_all(store);
	finish(store);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	return db;
}

/* Compute the same condition's sum in SQL; @ret_weight may be NULL. */
static int64_t count(sqlite3 *db, const char *condition, int64_t *ret_weight)
{
	char sql[512];

	if (ret_weight) {
		snprintf(sql, sizeof sql, "SELECT sum(weight) FROM sample WHERE %s", condition);
		*ret_weight = ask(db, sql);
	}
	snprintf(sql, sizeof sql, "SELECT count(*) FROM sample WHERE %s", condition);
	return ask(db, sql);
}

static void check(sqlite3 *db, struct profile_filter filter, const char *condition)
{
	uint64_t samples = 0, weight = 0, sample_weight = 0;
	struct profile *profile = NULL;
	int64_t wanted_weight, wanted = count(db, condition, &wanted_weight);

	filter.with_samples = true;
	assert_int_equal(profile_load_view(db, &filter, &profile), 0);
	for (size_t i = 0; i < profile->n_totals; i++) {
		samples += profile->totals[i].samples;
		weight += profile->totals[i].weight;
	}
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		sample_weight += sample->weight;
		assert_true(i == 0 || profile->samples[i - 1].time_ns <= sample->time_ns);
		assert_true((size_t)sample->thread < profile->n_threads);
		assert_true(sample->stack >= -1 && sample->stack < (int32_t)profile->n_stacks);
	}
	assert_true(wanted > 0 && wanted <= N_SAMPLES);
	assert_int_equal(samples, wanted);
	assert_int_equal(profile->n_samples, wanted);
	assert_int_equal(weight, wanted_weight);
	assert_int_equal(sample_weight, wanted_weight);
	profile_free(profile);
}

static void test_what_passes(void **state)
{
	sqlite3 *db = open_made(*state);
	double start = (double)start_ns / 1e9;

	check(db, (struct profile_filter){ 0 }, "1");
	check(db, (struct profile_filter){ .has_since = true, .since = start + 2 }, "timestamp >= 1700000002.0");
	check(db, (struct profile_filter){ .has_until = true, .until = start + 2 }, "timestamp < 1700000002.0");
	check(db,
	      (struct profile_filter){
		      .has_since = true, .since = start + 1.005, .has_until = true, .until = start + 2.5 },
	      "timestamp >= 1700000001.005 AND timestamp < 1700000002.5");
	check(db, (struct profile_filter){ .held = true }, "gil = 1");
	check(db, (struct profile_filter){ .held = true, .has_since = true, .since = start + 2 },
	      "gil = 1 AND timestamp >= 1700000002.0");
	check(db, (struct profile_filter){ .where = "cpu = 1 OR state = 'io'" }, "cpu = 1 OR state = 'io'");
	check(db,
	      (struct profile_filter){
		      .where = "tid = 44 -- the other", .held = true, .has_until = true, .until = start + 5 },
	      "tid = 44 AND gil = 1 AND timestamp < 1700000005.0");
	sqlite3_close(db);
}

static void test_a_sample(void **state)
{
	static const struct profile_filter one = { .where = "rowid = 8", .with_samples = true };
	sqlite3 *db = open_made(*state);
	struct profile *profile = NULL;
	const struct profile_sample *sample;

	assert_int_equal(profile_load_view(db, &one, &profile), 0);
	assert_int_equal(profile->n_samples, 1);
	sample = &profile->samples[0]; /* i is 7 */
	assert_int_equal(profile->threads[sample->thread].tid, 44);
	assert_string_equal(profile->threads[sample->thread].name, "");
	assert_int_equal(sample->weight, 1007);
	assert_int_equal(sample->cpu, 3);
	assert_int_equal(sample->verdict, 7 % VERDICT_N);
	assert_int_equal(sample->state, 7 % STATE_N);
	assert_int_equal(sample->gil, 1);
	assert_int_equal(sample->gc, ANSWER_NO);
	assert_int_equal(sample->stack, 2);
	assert_true(sample->time_ns > start_ns + 69999000 && sample->time_ns < start_ns + 70001000);
	profile_free(profile);
	sqlite3_close(db);
}

/* Without SQL they are the same samples. */
static void test_samples_by_block(void **state)
{
	static const struct profile_filter by_sql = { .with_samples = true },
					   by_block = { .with_samples = true, .by_block = true },
					   rest = { .with_samples = true, .by_block = true, .after = N_SAMPLES - 10 },
					   none = { .with_samples = true, .by_block = true, .after = N_SAMPLES };
	sqlite3 *db = open_made(*state);
	struct profile *wanted = NULL, *profile = NULL;

	assert_int_equal(profile_load_view(db, &by_sql, &wanted), 0);
	assert_int_equal(profile_load_view(db, &by_block, &profile), 0);
	profile_order_samples(profile);
	assert_int_equal(profile->n_samples, N_SAMPLES);
	assert_int_equal(profile->n_samples, wanted->n_samples);
	for (size_t i = 0; i < N_SAMPLES; i++) {
		const struct profile_sample *sample = &profile->samples[i], *other = &wanted->samples[i];

		assert_int_equal(sample->time_ns, other->time_ns);
		assert_int_equal(sample->weight, other->weight);
		assert_int_equal(sample->thread, other->thread);
		assert_int_equal(sample->stack, other->stack);
		assert_int_equal(sample->cpu, other->cpu);
		assert_true(sample->verdict == other->verdict && sample->state == other->state &&
			    sample->gil == other->gil && sample->gc == other->gc);
	}
	profile_free(profile);
	profile_free(wanted);
	assert_int_equal(profile_load_view(db, &rest, &profile), 0);
	assert_int_equal(profile->n_samples, 10);
	assert_int_equal(profile->samples[9].weight, 1000 + N_SAMPLES - 1);
	profile_free(profile);
	assert_int_equal(profile_load_view(db, &none, &profile), 0);
	assert_int_equal(profile->n_samples, 0);
	profile_free(profile);
	sqlite3_close(db);
}

static void test_run(void **state)
{
	sqlite3 *db = open_made(*state);
	struct profile *profile = NULL;

	assert_int_equal(profile_load(db, &profile), 0);
	assert_null(profile->samples);
	assert_string_equal(profile->run.command, "python3 train.py");
	assert_string_equal(profile->run.mode, "cpu");
	assert_true(profile->run.hz == 99);
	assert_int_equal(profile->run.started_ns, start_ns);
	assert_int_equal(profile->run.ended_ns, start_ns + 9 * second_ns);
	profile_free(profile);
	sqlite3_close(db);
}

static void test_where_that_is_none(void **state)
{
	static const char *const wrong[] = { "",   "colour", "1;", "1); SELECT (1", "1) GROUP BY (pid", "sum(cpu) > 1",
					     "(1", "'" };
	sqlite3 *db = open_made(*state);
	struct profile *profile = NULL;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct profile_filter filter = { .where = wrong[i] };
		int r = profile_load_view(db, &filter, &profile);

		if (r != -EINVAL && r != -EBADMSG)
			fail_msg("%s: %d", wrong[i], r);
		assert_null(profile);
	}
	sqlite3_close(db);
}

static void test_whether_there_are_any(void **state)
{
	const struct folder *folder = *state;
	sqlite3 *db = open_made(folder);

	assert_true(profile_has_samples(db));
	sqlite3_close(db);
	stock_shell(folder->file, "DELETE FROM sample_block");
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	assert_false(profile_has_samples(db));
	sqlite3_close(db);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_what_passes),        FOLDER_TEST(test_a_sample),
		FOLDER_TEST(test_samples_by_block),   FOLDER_TEST(test_run),
		FOLDER_TEST(test_where_that_is_none), FOLDER_TEST(test_whether_there_are_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
