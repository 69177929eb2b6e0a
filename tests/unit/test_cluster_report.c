/* SPDX-License-Identifier: MIT */
/* test_cluster_report.c - which rank is slow, since which step, and how sure that is; the times of steps as agents write them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/cluster/cluster.h"

enum { N_RANKS = 8, ODD = 5, FIRST_STEP = 1000, N_STEPS = 400 };

/* ---- A job whose ranks have a history ---- */

static uint64_t seed = 7;

/* 0 to 1, neither of them. */
static double uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(seed >> 33) + 0.5) / 2147483648.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static void put_list(FILE *out, const char *key, const double *values, size_t n)
{
	fprintf(out, "\"%s\":[", key);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%.0f", i > 0 ? "," : "", values[i]);
	fputs("]", out);
}

/* @ms: of rank and step. */
static void read_job(struct cluster *cluster, const char *kind, double (*ms)(size_t rank, size_t step))
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	fputs("{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\",\"ranks\":[", out);
	for (size_t rank = 0; rank < N_RANKS; rank++) {
		double steps[N_STEPS], us[N_STEPS];

		for (size_t i = 0; i < N_STEPS; i++) {
			steps[i] = (double)(FIRST_STEP + i);
			us[i] = 1e3 * ms(rank, i) * (1 + 0.05 * normal());
		}
		fprintf(out,
			"%s{\"rank\":%zu,\"pid\":1%zu,\"status\":\"read\",\"usage\":{\"seconds\":2},\"history\":{\"kind\":\"%s\",",
			rank > 0 ? "," : "", rank, rank, kind);
		put_list(out, "steps", steps, N_STEPS);
		fputc(',', out);
		put_list(out, "us", us, N_STEPS);
		fputs("}}", out);
	}
	fputs("]}]}", out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(cluster_read(cluster, text, n_bytes, NULL), 0);
	free(text);
	cluster_sort(cluster);
}

static char *report_of(const struct cluster *cluster,
		       int (*write)(const struct cluster *cluster, unsigned max, FILE *out))
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	assert_int_equal(write(cluster, 3, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *report(const char *kind, double (*ms)(size_t rank, size_t step))
{
	struct cluster cluster = { 0 };
	char *text;

	read_job(&cluster, kind, ms);
	text = report_of(&cluster, cluster_report);
	cluster_done(&cluster);
	return text;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void expect_alone(const char *text)
{
	static const char differs[] = " differs:\n";
	const char *first = strstr(text, differs);

	expect(text, "rank 5 (pid 15 on a) differs:\n");
	assert_non_null(first);
	assert_null(strstr(first + strlen(differs), differs));
}

/* Steps take longer for all, at times: that slows no rank. */
static double common(size_t step)
{
	return step / 50 % 2 ? 100 : 150;
}

static double slow_since(size_t rank, size_t step)
{
	return common(step) * (rank == ODD && step >= 204 ? 1.38 : 1);
}

static void a_rank_is_slow_since_a_step(void **state)
{
	CLEANUP(freep) char *text = report("outside communication", slow_since);
	int percent, step;

	(void)state;
	expect_alone(text);
	expect(text, "slower by");
	assert_int_equal(sscanf(strstr(text, "slower by"), "slower by %d %% since step %d (kept are 1000 to 1399)",
				&percent, &step),
			 2);
	assert_in_range(percent, 36, 40);
	assert_in_range(step, 1202, 1206);
	expect(text, " (kept are 1000 to 1399), in its steps without communication (p < 0.0001)\n");
}

static double slow_lately(size_t rank, size_t step)
{
	return common(step) * (rank == ODD && step >= 385 ? 1.38 : 1);
}

/* Fifteen of four hundred steps. */
static void also_for_a_short_time(void **state)
{
	CLEANUP(freep) char *text = report("step", slow_lately);

	(void)state;
	expect_alone(text);
	expect(text, " since step 138");
	expect(text, ", in its steps (p ");
}

static double slow_always(size_t rank, size_t step)
{
	return common(step) * (rank == ODD ? 1.2 : 1);
}

static void a_rank_is_slow_all_the_time(void **state)
{
	CLEANUP(freep) char *text = report("passes", slow_always);

	(void)state;
	expect_alone(text);
	expect(text, "slower by 2");
	expect(text, " % during all steps that are kept, 1000 to 1399, in its forward and backward passes and waits "
		     "for data (p < 0.0001)\n");
}

static double slow_for_a_while(size_t rank, size_t step)
{
	return common(step) * (rank == ODD && step >= 100 && step < 200 ? 1.5 : 1);
}

static void a_rank_was_slow(void **state)
{
	CLEANUP(freep) char *text = report("step", slow_for_a_while);
	int percent, first, last;

	(void)state;
	expect_alone(text);
	expect(text, "was slower by");
	assert_int_equal(sscanf(strstr(text, "was slower by"),
				"was slower by %d %% from step %d to %d, in its steps (p < 0.0001)", &percent, &first,
				&last),
			 3);
	assert_in_range(percent, 46, 54);
	assert_in_range(first, 1098, 1102);
	assert_in_range(last, 1197, 1201);
}

static double always_a_little(size_t rank, size_t step)
{
	return common(step) * (rank == ODD ? step >= 300 ? 2.0 : 1.2 : 1);
}

static void a_slow_rank_becomes_slower(void **state)
{
	CLEANUP(freep) char *text = report("step", always_a_little);

	(void)state;
	expect_alone(text);
	expect(text, " since step 130");
}

static double stops_once(size_t rank, size_t step)
{
	return common(step) * (rank == 0 && step == 250 ? 300 : 1);
}

static double differs_for_ever(size_t rank, size_t step)
{
	return common(step) * (1 + 0.03 * (double)rank);
}

static void ranks_that_are_not_slow(void **state)
{
	CLEANUP(freep) char *once = report("step", stops_once);
	CLEANUP(freep) char *a_little = report("step", differs_for_ever);
	unsigned n_wrong = 0;

	(void)state;
	expect(once, "No rank differs from the others by more than chance.\n");
	expect(a_little, "No rank differs from the others by more than chance.\n");
	for (unsigned i = 0; i < 30; i++) {
		CLEANUP(freep) char *text = report("step", stops_once);

		n_wrong += !strstr(text, "No rank differs");
	}
	assert_int_equal(n_wrong, 0);
}

/* A rank that writes checkpoints, and takes a little longer for ever. */
static double stops_and_differs(size_t rank, size_t step)
{
	return common(step) * (rank == 0 ? step % 150 == 149 ? 300 : 1.02 : 1);
}

static double slow_and_stops(size_t rank, size_t step)
{
	return slow_since(rank, step) * (rank == ODD && step % 150 == 149 ? 300 : 1);
}

static void steps_that_stop_make_no_rank_slow_and_hide_none(void **state)
{
	CLEANUP(freep) char *stops = report("step", stops_and_differs);
	CLEANUP(freep) char *is_slow = report("step", slow_and_stops);
	int percent, step;

	(void)state;
	expect(stops, "No rank differs from the others by more than chance.\n");
	expect_alone(is_slow);
	expect(is_slow, "slower by");
	assert_int_equal(sscanf(strstr(is_slow, "slower by"), "slower by %d %% since step %d", &percent, &step), 2);
	assert_in_range(percent, 36, 41);
	assert_in_range(step, 1202, 1206);
}

/* Each rank's steps are like the one before: it is a little slower or faster for some steps, again and again. */
static double correlation, spread;

static double wanders(size_t rank, size_t step)
{
	static double levels[N_RANKS];

	levels[rank] = step > 0 ? correlation * levels[rank] + sqrt(1 - correlation * correlation) * normal()
				: normal();
	return common(step) * exp(spread * levels[rank]);
}

static double wanders_and_is_slow(size_t rank, size_t step)
{
	return wanders(rank, step) * (rank == ODD && step >= 204 ? 1.38 : 1);
}

/* At most one of twenty jobs without a slow rank blames one, however alike the steps are. */
static void steps_that_are_alike_make_no_rank_slow(void **state)
{
	static const double correlations[] = { 0, 0.5, 0.7, 0.9, 0.95, 0.99 };
	enum { N_JOBS = 40 };

	(void)state;
	spread = 0.2;
	for (size_t i = 0; i < N_ELEMENTS(correlations); i++) {
		unsigned n_wrong = 0;

		seed = 7;
		correlation = correlations[i];
		for (unsigned k = 0; k < N_JOBS; k++) {
			CLEANUP(freep) char *text = report("step", wanders);

			n_wrong += !strstr(text, "No rank differs");
		}
		if (n_wrong > N_JOBS / 20)
			fail_msg("%u of %d jobs blame a rank at a correlation of %g", n_wrong, N_JOBS, correlation);
	}
}

/* One that is slow since a step is named all the same, as long as the steps before and behind are worth several. */
static void a_slow_rank_is_named_where_steps_are_alike(void **state)
{
	static const double correlations[] = { 0, 0.5, 0.7, 0.9, 0.95 };

	(void)state;
	spread = 0.05;
	seed = 7;
	for (size_t i = 0; i < N_ELEMENTS(correlations); i++) {
		CLEANUP(freep) char *text = NULL;
		int percent, step;

		correlation = correlations[i];
		text = report("step", wanders_and_is_slow);
		expect_alone(text);
		expect(text, "slower by");
		assert_int_equal(sscanf(strstr(text, "slower by"), "slower by %d %% since step %d", &percent, &step),
				 2);
		assert_in_range(percent, 30, 46);
		assert_in_range(step, 1200, 1208);
	}
}

static void programs_read_the_same(void **state)
{
	struct cluster cluster = { 0 }, again = { 0 };
	CLEANUP(freep) char *document = NULL, *one = NULL, *other = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&document, &n_bytes);

	(void)state;
	read_job(&cluster, "step", slow_since);
	one = report_of(&cluster, cluster_report_json);
	expect(one, "\"of\": \"step\"");
	expect(one, "\"first_step\": 1000");
	assert_non_null(out);
	assert_int_equal(cluster_write(&cluster, "1", NULL, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(cluster_read(&again, document, n_bytes, NULL), 0);
	other = report_of(&again, cluster_report_json);
	assert_string_equal(one, other);
	cluster_done(&cluster);
	cluster_done(&again);
}

static void a_history_has_steps_that_grow(void **state)
{
	static const char *const histories[] = { "{\"steps\":[2,1],\"us\":[1,1]}", "{\"steps\":[1,1],\"us\":[1,1]}",
						 "{\"steps\":[-1],\"us\":[1]}", "{\"steps\":[1],\"us\":[-1]}",
						 "{\"steps\":7}" };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(histories); i++) {
		CLEANUP(freep) char *text = NULL;
		struct cluster cluster = { 0 };

		assert_true(asprintf(&text,
				     "{\"probing_cluster\":1,\"hosts\":[{\"ranks\":[{\"rank\":0,\"history\":%s}]}]}",
				     histories[i]) > 0);
		assert_int_equal(cluster_read(&cluster, text, strlen(text), NULL), -EBADMSG);
		cluster_done(&cluster);
	}
}

/* ---- The tables of an agent ---- */

static void read_steps(struct cluster_rank *rank, const char *steps, const char *passes, const char *comm)
{
	CLEANUP(freep) char *text = NULL;

	assert_true(asprintf(&text, "{\"tables\":[{\"rows\":[%s]},{\"rows\":[%s]},{\"rows\":[%s]}]}", steps, passes,
			     comm) > 0);
	assert_int_equal(cluster_read_steps(rank, text, strlen(text)), 0);
}

static void steps_of_all_tables_are_joined(void **state)
{
	struct rank_identity identity = { .rank = 0, .local_rank = -1, .world_size = -1 };
	struct cluster cluster = { 0 };
	struct cluster_host *host;
	struct cluster_rank *rank;

	(void)state;
	assert_int_equal(cluster_add_host(&cluster, "a", NULL, NULL, &host), 0);
	assert_int_equal(cluster_add_rank(&cluster, 0, 1, &identity, &rank), 0);
	/* The newest first; that of passes and of communication may go on. */
	read_steps(rank, "[7,100],[6,80],[5,60]", "[7,1.5,1,null,null],[6,1.4,20,30,5],[5,1.3,10,20,null]",
		   "[7,3],[6,25],[5,15]");
	assert_int_equal(rank->usage.step_ms, 80);
	assert_int_equal(rank->usage.forward_ms, 15);
	assert_int_equal(rank->usage.backward_ms, 25);
	assert_int_equal(rank->usage.data_ms, 5);
	assert_int_equal(rank->usage.comm_ms, 20);
	assert_int_equal(rank->history.kind, HISTORY_OUTSIDE);
	assert_int_equal(rank->history.n, 2);
	assert_int_equal(rank->history.steps[0], 5);
	assert_int_equal(rank->history.ms[0], 45);
	assert_int_equal(rank->history.ms[1], 55);
	/* Passes alone, with a step between that was not traced. */
	read_steps(rank, "", "[9,2.0,1,1,1],[8,1.75,2,3,4],[6,1.5,1,1,1],[5,1.25,1,2,3]", "");
	assert_int_equal(rank->usage.step_ms, 250);
	assert_int_equal(rank->usage.comm_ms, -1);
	assert_int_equal(rank->history.kind, HISTORY_PASSES);
	assert_int_equal(rank->history.n, 3);
	assert_int_equal(rank->history.ms[2], 9);
	/* The program counts again from 0: what was before has other numbers. */
	read_steps(rank, "[1,30],[0,20],[99,10],[98,10]", "", "");
	assert_int_equal(rank->history.kind, HISTORY_STEP);
	assert_int_equal(rank->history.n, 2);
	assert_int_equal(rank->usage.step_ms, 25);
	/* None of it. */
	assert_int_equal(cluster_read_steps(rank, "{\"tables\":[{\"problem\":\"no such table\"}]}",
					    strlen("{\"tables\":[{\"problem\":\"no such table\"}]}")),
			 0);
	assert_int_equal(rank->history.n, 0);
	assert_int_equal(rank->usage.step_ms, -1);
	assert_int_equal(cluster_read_steps(rank, "[", 1), -EBADMSG);
	cluster_done(&cluster);
}

static double number(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_NULL ? -1 : sqlite3_column_double(row, column);
}

/* A pass in a pass counts once, and operations at the same time once. */
static void what_overlaps_counts_once(void **state)
{
	sqlite3_stmt *row;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"ATTACH ':memory:' AS python;"
			"CREATE TABLE python.steps(step, last_ms, time_ns);"
			"INSERT INTO steps VALUES(0, NULL, 10), (1, 50, 20), (2, 60, 30);"
			"CREATE TABLE python.torch_trace(step, stage, tid, began, host_ms, duration_ms);"
			/* a model with two modules; a pass of another thread; a batch; a pass that began within another */
			"INSERT INTO torch_trace VALUES(1, 'forward', 1, 100.0, 40, 40), (1, 'forward', 1, 100.0, 10, 10),"
			" (1, 'forward', 1, 100.02, 15, 15), (1, 'forward', 2, 100.0, 5, 5), (1, 'data', 1, 99.9, 7, 7),"
			" (1, 'backward', 1, 100.1, 10, 10), (1, 'backward', 1, 100.105, 10, 10),"
			" (1, 'step', 1, 100.2, 3, 3);"
			"CREATE TABLE python.comm_metrics(step, time_ns, latency_ms, backend);"
			"INSERT INTO comm_metrics VALUES(1, 20000000, 10, 'gloo'), (1, 22000000, 10, 'gloo'),"
			" (1, 21000000, 2, 'gloo'), (1, 40000000, 5, 'gloo'), (1, 60000000, 5, 'nccl'),"
			" (1, 60000000, 6, 'nccl'), (NULL, 99000000, 7, 'gloo');",
			NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, cluster_steps_sql[STEPS_OF_PROGRAM], -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_true(number(row, 0) == 1 && number(row, 1) == 60);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_true(number(row, 0) == 0 && number(row, 1) == 50);
	assert_int_equal(sqlite3_step(row), SQLITE_DONE);
	sqlite3_finalize(row);
	assert_int_equal(sqlite3_prepare_v2(db, cluster_steps_sql[STEPS_OF_PASSES], -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(row, 0), 1);
	assert_true(number(row, 1) == 99.9);
	assert_true(fabs(number(row, 2) - 45) < 1e-6);
	assert_true(fabs(number(row, 3) - 15) < 1e-6);
	assert_true(fabs(number(row, 4) - 7) < 1e-6);
	sqlite3_finalize(row);
	assert_int_equal(sqlite3_prepare_v2(db, cluster_steps_sql[STEPS_OF_COMM], -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(row, 0), 1);
	assert_true(fabs(number(row, 1) - (12 + 5 + 11)) < 1e-6);
	assert_int_equal(sqlite3_step(row), SQLITE_DONE);
	sqlite3_finalize(row);
	sqlite3_close(db);
}

/* ---- Pictures and causes ---- */

#define FRAME(name) "{\"kind\":\"python\",\"function\":\"" name "\",\"file\":\"/u/train.py\",\"line\":3}"
#define LOOK(name) "{\"frames\":[" FRAME(name) "," FRAME("main") "]}"
#define LOOKS(name) LOOK(name) "," LOOK(name) "," LOOK(name) "," LOOK(name) "," LOOK(name) "," LOOK(name)
#define RANK(number, name, usage)                                                                                      \
	"{\"rank\":" number ",\"pid\":1" number ",\"status\":\"read\",\"usage\":{" usage                               \
	"},\"threads\":[" LOOKS(name) "," LOOKS(name) "]}"
#define USUAL "\"seconds\":5,\"throttled_s\":0"

static const char throttled[] = "{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\",\"ranks\":[" RANK(
	"0", "wait",
	USUAL) "," RANK("1", "wait",
			USUAL) "," RANK("2", "compute",
					"\"seconds\":5,\"throttled_s\":4,\"limit_cpus\":0.2") "," RANK("3", "wait",
												       USUAL) "]}]}";

static void a_quota_is_named_as_the_cause(void **state)
{
	struct cluster cluster = { 0 };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	assert_int_equal(cluster_read(&cluster, throttled, strlen(throttled), NULL), 0);
	text = report_of(&cluster, cluster_report);
	expect(text, "rank 2 (pid 12 on a) differs:\n"
		     "  throttled by its control group: 80.00 %; the median of all is 0.00 (+80.0 deviations)\n");
	expect(text,
	       "\n  likely cause: the quota of its control group, 0.20 CPUs (cpu.max), is used up: raise it, or use fewer "
	       "threads\n");
	expect(text, "\n    +100  main > compute  (train.py): 100 % instead of 0 % (p < 0.0001)\n");
	cluster_done(&cluster);
}

static void a_rank_is_drawn_against_the_others(void **state)
{
	struct cluster cluster = { 0 };

	(void)state;
	assert_int_equal(cluster_read(&cluster, throttled, strlen(throttled), NULL), 0);
	for (int64_t rank = -1; rank < 5; rank++) {
		CLEANUP(freep) char *text = NULL;
		size_t n_bytes;
		FILE *out = open_memstream(&text, &n_bytes);
		int r;

		assert_non_null(out);
		r = cluster_report_picture(&cluster, rank, rank == 1, out);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(r, rank == 4 ? -ENOENT : 0);
		if (rank == -1 || rank == 2) {
			expect(text, "rank 2 against the others");
			expect(text, "compute");
		}
	}
	cluster_done(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_is_slow_since_a_step),
		cmocka_unit_test(also_for_a_short_time),
		cmocka_unit_test(a_rank_is_slow_all_the_time),
		cmocka_unit_test(a_rank_was_slow),
		cmocka_unit_test(a_slow_rank_becomes_slower),
		cmocka_unit_test(ranks_that_are_not_slow),
		cmocka_unit_test(programs_read_the_same),
		cmocka_unit_test(a_history_has_steps_that_grow),
		cmocka_unit_test(steps_of_all_tables_are_joined),
		cmocka_unit_test(what_overlaps_counts_once),
		cmocka_unit_test(steps_that_are_alike_make_no_rank_slow),
		cmocka_unit_test(a_slow_rank_is_named_where_steps_are_alike),
		cmocka_unit_test(steps_that_stop_make_no_rank_slow_and_hide_none),
		cmocka_unit_test(a_quota_is_named_as_the_cause),
		cmocka_unit_test(a_rank_is_drawn_against_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
