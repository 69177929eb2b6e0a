/* SPDX-License-Identifier: MIT */
/* test_collectives_summary.c - what a report of many process groups asks of SQLite; tests/e2e/test_flight.py has what it says. */
#include "src/cli/report/report.h"

#include "base/util.h"
#include "src/store/flight.h"
#include "tests/unit/store_fixture.h"

enum { RANKS = 2, EACH = 20 };

/* A dump of each rank, and as many older ones: EACH operations of each group, the last of which only rank 0 has called. */
static void put_dumps(struct flight_writer *writer, int n_groups, int n_dumps)
{
	char group[16], dump[32];

	for (int i = 0; i < n_groups * RANKS * EACH * n_dumps; i++) {
		int rank = i / EACH % RANKS, seq = i % EACH + 1, of_dump = i / (n_groups * RANKS * EACH);
		bool is_last = seq == EACH;

		snprintf(group, sizeof group, "%d", i / (RANKS * EACH) % n_groups);
		snprintf(dump, sizeof dump, "dump_%d_%d", of_dump, rank);
		if (rank == 1 && is_last)
			continue;
		assert_int_equal(
			flight_put(writer, &(struct flight_row){ .dump = dump,
								 .rank = rank,
								 .record = seq,
								 .op = "all_reduce",
								 .group = group,
								 .seq = seq,
								 .state = is_last ? "started" : "completed",
								 .is_ended = !is_last,
								 .created_ns = (uint64_t)(i + 1) * 1000000000 }),
			0);
	}
}

static void make_recording(const char *path, int n_groups, int n_dumps)
{
	struct store *store = new_store(path);
	struct flight_writer *writer = NULL;

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(flight_writer_new(store, &writer), 0);
	put_dumps(writer, n_groups, n_dumps);
	flight_writer_free(writer);
	assert_int_equal(store_commit(store), 0);
	finish(store);
}

static int count(void *n)
{
	++*(int64_t *)n;
	return 0;
}

/* How many hundreds of SQLite's instructions the summary takes. */
static int64_t work_of(const char *path, int n_groups, int n_dumps)
{
	CLEANUP(report_collectives_done) struct report_collectives found = { 0 };
	sqlite3 *db = NULL;
	int64_t n = 0;

	make_recording(path, n_groups, n_dumps);
	assert_int_equal(store_open_reader(path, &db), 0);
	sqlite3_progress_handler(db, 100, count, &n);
	assert_int_equal(collectives_summary(db, &found), 1);
	sqlite3_close(db);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(found.n_groups, n_groups);
	assert_int_equal(found.n_older, RANKS * (n_dumps - 1));
	for (int i = 0; i < n_groups; i++) {
		assert_int_equal(found.groups[i].state, GROUP_BEHIND);
		assert_int_equal(found.groups[i].seq, EACH);
		assert_int_equal(found.groups[i].n_parts, RANKS);
	}
	return n;
}

/* Twice the groups, with twice the rows: a question that reads all rows for each group would take four times as much. */
static void the_work_grows_as_the_rows_do(void **state)
{
	const struct folder *f = *state;

	for (int n_dumps = 1; n_dumps <= 2; n_dumps++) {
		int64_t few = work_of(f->file, 40, n_dumps), many = work_of(f->file, 80, n_dumps);

		assert_true(few > 100);
		assert_true(many < 3 * few);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(the_work_grows_as_the_rows_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
