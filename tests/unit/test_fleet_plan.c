/* SPDX-License-Identifier: MIT */
/* The plan of a recording's shipments: what is sent next, and what a receiver has refused, over several processes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "src/fleet/plan.h"

enum { RUN = 7, N_SHIPMENTS = 4, N_SAMPLES = 10 };

static char folder[32];

static struct plan *open_plan(const char *target)
{
	struct plan *plan = NULL;

	assert_int_equal(plan_open(folder, RUN, target, &plan), 0);
	return plan;
}

static int begin(void **state)
{
	struct shipment shipments[N_SHIPMENTS];
	struct plan *plan;

	strcpy(folder, "/tmp/probing-test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (uint32_t i = 0; i < N_SHIPMENTS; i++)
		shipments[i] = (struct shipment){
			.block = i + 1, .first = i * N_SAMPLES + 1, .last = (i + 1) * N_SAMPLES, .n_samples = N_SAMPLES
		};
	plan = open_plan("here");
	assert_int_equal(plan_put(plan, shipments, N_SHIPMENTS), 0);
	plan_close(plan);
	plan = open_plan("there");
	assert_int_equal(plan_put(plan, shipments, N_SHIPMENTS), 0);
	*state = plan;
	return 0;
}

static int end(void **state)
{
	char path[64];

	plan_close(*state);
	snprintf(path, sizeof path, "%s/%016x.db", folder, RUN);
	return unlink(path) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

/* The block that is sent next; 0: none is. */
static uint32_t next_of(struct plan *plan)
{
	struct shipment shipment = { 0 };

	assert_true(plan_next(plan, &shipment) >= 0);
	return shipment.block;
}

static void expect(struct plan *plan, uint32_t next, uint64_t n_done, uint64_t n_open, uint64_t n_refused,
		   uint64_t n_in_row)
{
	struct plan_counts counts;

	assert_int_equal(plan_count(plan, &counts), 0);
	assert_int_equal(next_of(plan), next);
	assert_int_equal(counts.n_done, n_done);
	assert_int_equal(counts.n_samples, n_done * N_SAMPLES);
	assert_int_equal(counts.n_open, n_open);
	assert_int_equal(counts.n_refused, n_refused * N_SAMPLES);
	assert_int_equal(counts.n_in_row, n_in_row);
}

/* A process that is killed forgets nothing. */
static struct plan *open_again(void **state)
{
	plan_close(*state);
	*state = open_plan("there");
	return *state;
}

static void a_row_of_refusals_ends_with_a_shipment_that_is_taken(void **state)
{
	struct plan *plan = *state;

	assert_int_equal(plan_refuse(plan, 1), 0);
	assert_int_equal(plan_refuse(plan, 2), 0);
	expect(plan, 3, 0, 2, 2, 2);
	plan = open_again(state);
	expect(plan, 3, 0, 2, 2, 2);
	assert_int_equal(plan_finish(plan, 3), 0);
	assert_int_equal(plan_end_row(plan), 0);
	expect(plan, 4, 1, 1, 2, 0);
	assert_int_equal(plan_retry(plan), 0);
	expect(plan, 1, 1, 3, 0, 0);
}

static void a_receiver_that_refuses_everything_costs_no_shipment(void **state)
{
	struct plan *plan = *state;

	for (uint32_t block = 1; block <= 3; block++)
		assert_int_equal(plan_refuse(plan, block), 0);
	assert_int_equal(plan_reopen(plan), 0);
	expect(plan, 1, 0, 4, 0, 3);
	plan = open_again(state);
	expect(plan, 1, 0, 4, 0, 3);
	/* The next process tries one, and has the same row again. */
	assert_int_equal(plan_refuse(plan, 1), 0);
	assert_int_equal(plan_reopen(plan), 0);
	expect(plan, 1, 0, 4, 0, 3);
	assert_int_equal(plan_finish(plan, 1), 0);
	assert_int_equal(plan_end_row(plan), 0);
	expect(plan, 2, 1, 3, 0, 0);
}

static void a_shipment_that_is_taken_in_part_is_in_no_row(void **state)
{
	struct plan *plan = *state;

	assert_int_equal(plan_set_aside(plan, 1), 0);
	expect(plan, 2, 0, 3, 1, 0);
	assert_int_equal(plan_reopen(plan), 0);
	expect(plan, 2, 0, 3, 1, 0);
	assert_int_equal(plan_end_row(plan), 0);
	expect(plan, 2, 0, 3, 1, 0);
	assert_int_equal(plan_retry(plan), 0);
	expect(plan, 1, 0, 4, 0, 0);
}

static void another_target_is_left_alone(void **state)
{
	struct plan *plan = *state;

	assert_int_equal(plan_refuse(plan, 1), 0);
	assert_int_equal(plan_set_aside(plan, 2), 0);
	plan_close(plan);
	*state = plan = open_plan("here");
	expect(plan, 1, 0, 4, 0, 0);
	assert_int_equal(plan_end_row(plan), 0);
	assert_int_equal(plan_retry(plan), 0);
	plan = open_again(state);
	expect(plan, 3, 0, 2, 2, 1);
}

static void a_shipper_has_the_plan_alone(void **state)
{
	struct plan *other = NULL;

	(void)state;
	assert_int_equal(plan_open(folder, RUN, "here", &other), -EBUSY);
	assert_null(other);
}

static void a_job_without_text_is_none(void **state)
{
	struct plan *plan = *state;
	sqlite3 *db = NULL;
	char *job = NULL;

	assert_int_equal(plan_job(plan, NULL, &job), 0);
	assert_string_equal(job, "");
	assert_int_equal(plan_job(plan, "first", &job), 0);
	assert_string_equal(job, "first");
	assert_int_equal(sqlite3_open(plan_path(plan), &db), SQLITE_OK);
	plan_close(plan);
	*state = NULL;
	assert_int_equal(sqlite3_exec(db, "UPDATE job SET job = NULL", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	plan = open_again(state);
	assert_int_equal(plan_job(plan, "later", &job), 0);
	assert_string_equal(job, "");
	free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_row_of_refusals_ends_with_a_shipment_that_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(a_receiver_that_refuses_everything_costs_no_shipment, begin, end),
		cmocka_unit_test_setup_teardown(a_shipment_that_is_taken_in_part_is_in_no_row, begin, end),
		cmocka_unit_test_setup_teardown(another_target_is_left_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_shipper_has_the_plan_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_job_without_text_is_none, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
