/* SPDX-License-Identifier: MIT */
/* test_compare.c - which functions are the same, which runs a sample is of, what rules say, and what is written of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above. */
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "src/compare/compare.h"
#include "tests/unit/made_profile.h"

/* ---- Recordings by hand ---- */

static sqlite3 *make_db(const char *more)
{
	static const char sql[] =
		"CREATE TABLE run(run INTEGER PRIMARY KEY, started REAL, ended REAL, command TEXT, pid INTEGER, mode TEXT, hz REAL,"
		" host TEXT, kernel TEXT, python TEXT, cpus INTEGER);"
		"CREATE TABLE process(pid INTEGER PRIMARY KEY, started REAL, ended REAL);"
		"CREATE TABLE pause(started REAL PRIMARY KEY, ended REAL);"
		"CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER);"
		"INSERT INTO run VALUES(1, 100, 102, 'app', 7, 'cpu', 99, 'here', '6.1', '3.11.2', 4);"
		"INSERT INTO counter VALUES('lost', 3), ('requests', 50);";
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, more, NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static int32_t python(struct made_profile *made, const char *name, const char *file, int line)
{
	return made_frame(made,
			  (struct profile_frame){ .kind = FRAME_PYTHON, .name = name, .file = file, .line = line });
}

static int add(struct compare *compare, enum side side, const struct made_profile *made, const char *more, char *why)
{
	sqlite3 *db = make_db(more);
	int r = compare_add(compare, side, side == SIDE_BASE ? "base.db" : "head.db", db, &made->profile, why);

	sqlite3_close(db);
	return r;
}

static struct compare *new_compare(const struct compare_options *options)
{
	struct compare *compare = NULL;

	assert_int_equal(compare_new(options, &compare), 0);
	return compare;
}

/* main calls work, which calls itself; samples of 10 ms. */
static void make_program(struct made_profile *made, const char *folder, int shift, uint64_t n_main, uint64_t n_work)
{
	static char file[2][64];
	char *path = file[shift > 0];
	int32_t in_main, in_work;

	snprintf(path, sizeof file[0], "%s/app.py", folder);
	in_main = made_stack(made, -1, python(made, "main", path, 10 + shift));
	in_work = made_stack(made, in_main, python(made, "work", path, 20 + shift));
	in_work = made_stack(made, in_work, python(made, "work", path, 21 + shift));
	made_total(made, 7, 7, in_main, n_main);
	made_total(made, 7, 7, in_work, n_work);
}

static const struct compare_row *row_of(const struct compare *compare, const char *name)
{
	for (size_t i = 0; i < compare->n_rows; i++)
		if (strcmp(compare->functions[compare->rows[i].function].name, name) == 0)
			return &compare->rows[i];
	fail_msg("no function %s", name);
	return NULL;
}

static const struct compare_function *function_of(const struct compare *compare, const char *name)
{
	return &compare->functions[row_of(compare, name)->function];
}

static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9))
		fail_msg("%.9g, not %.9g", value, expected);
}

/* ---- Functions ---- */

static void test_folders_and_lines_do_not_matter(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ 0 });
	struct made_profile base = { 0 }, head = { 0 };
	char why[256];

	(void)state;
	make_program(&base, "/old/checkout", 0, 100, 300);
	make_program(&head, "/new", 7, 100, 600);
	assert_int_equal(add(compare, SIDE_BASE, &base, "", why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &head, "", why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_int_equal(compare->n_rows, 2);
	assert_near(row_of(compare, "work")->self.base, 3);
	assert_near(row_of(compare, "work")->self.head, 6);
	assert_near(row_of(compare, "work")->total.head, 6); /* it calls itself, and counts once */
	assert_near(row_of(compare, "main")->self.head, 1);
	assert_near(row_of(compare, "main")->total.base, 4);
	assert_near(row_of(compare, "work")->self.change, 1);
	assert_true(row_of(compare, "work")->self.is_known);
	assert_false(row_of(compare, "main")->self.is_known);
	assert_string_equal(compare->functions[compare->rows[0].function].name, "work"); /* what changed comes first */
	assert_false(function_of(compare, "work")->is_ambiguous);
	assert_null(function_of(compare, "work")->was_place);
	assert_int_equal(compare->runs[0].lost, 3);
	made_done(&base);
	made_done(&head);
}

static void one_function(struct made_profile *made, const char *name, const char *file, uint64_t n)
{
	made_total(made, 7, 7, made_stack(made, -1, python(made, name, file, 1)), n);
}

static void test_moved_files(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ .stacks = true });
	struct made_profile base = { 0 }, head = { 0 };
	char why[256];

	(void)state;
	one_function(&base, "Trainer.step", "/a/train.py", 50);
	one_function(&base, "<lambda>", "/a/train.py", 50); /* follows */
	one_function(&base, "helper", "/a/one.py", 50);     /* either of two */
	one_function(&head, "Trainer.step", "/a/trainer.py", 50);
	one_function(&head, "<lambda>", "/a/trainer.py", 50);
	one_function(&head, "<lambda>", "/a/elsewhere.py", 50);
	one_function(&head, "helper", "/a/two.py", 50);
	one_function(&head, "helper", "/a/three.py", 50);
	assert_int_equal(add(compare, SIDE_BASE, &base, "", why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &head, "", why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_near(row_of(compare, "Trainer.step")->self.base, 0.5);
	assert_near(row_of(compare, "Trainer.step")->self.head, 0.5);
	assert_string_equal(function_of(compare, "Trainer.step")->place, "trainer.py");
	assert_string_equal(function_of(compare, "Trainer.step")->was_place, "train.py");
	assert_int_equal(compare->n_unmatched, 3);
	assert_int_equal(compare->n_rows, 6); /* step, two lambdas, three helpers */
	assert_int_equal(compare->n_stacks, 6);
	for (size_t i = 0; i < compare->n_rows; i++) {
		const struct compare_function *function = &compare->functions[compare->rows[i].function];

		if (strcmp(function->name, "<lambda>") == 0 && strcmp(function->place, "trainer.py") == 0)
			assert_near(compare->rows[i].self.base, 0.5);
	}
	made_done(&base);
	made_done(&head);
}

static void test_two_files_of_one_name(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ 0 });
	struct made_profile base = { 0 };
	char why[256];

	(void)state;
	one_function(&base, "load", "/a/util.py", 50);
	one_function(&base, "load", "/b/util.py", 30);
	assert_int_equal(add(compare, SIDE_BASE, &base, "", why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &base, "", why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_true(function_of(compare, "load")->is_ambiguous);
	assert_near(row_of(compare, "load")->self.base, 0.8);
	made_done(&base);
}

/* Versions of modules, and offsets in them, are of one build. */
static void test_native_names(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ 0 });
	struct made_profile base = { 0 }, head = { 0 };
	char why[256];

	(void)state;
	made_total(&base, 7, 7,
		   made_stack(&base, -1,
			      made_frame(&base, (struct profile_frame){ .kind = FRAME_NATIVE,
									.name = "libx.so.1+0x12a0",
									.module = "/lib/libx.so.1" })),
		   50);
	made_total(&head, 7, 7,
		   made_stack(&head, -1,
			      made_frame(&head, (struct profile_frame){ .kind = FRAME_NATIVE,
									.name = "libx.so.2+0x77",
									.module = "/usr/lib/libx.so.2" })),
		   50);
	assert_int_equal(add(compare, SIDE_BASE, &base, "", why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &head, "", why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_int_equal(compare->n_rows, 1);
	assert_near(row_of(compare, "[no name]")->self.change, 0);
	assert_string_equal(function_of(compare, "[no name]")->place, "libx");
	made_done(&base);
	made_done(&head);
}

/* ---- Runs ---- */

/* clang-format off */
#define BENCH_RUN_TABLE \
	"CREATE TABLE bench_run(bench_run INTEGER PRIMARY KEY, run INTEGER, command TEXT, started REAL, wall REAL, user REAL," \
	" sys REAL, max_rss INTEGER, exit_status INTEGER);"
/* clang-format on */

static const char two_runs[] =
	"INSERT INTO run VALUES(2, 110, 114, 'app', 8, 'cpu', 99, 'here', '6.1', '3.11.2', 4);"
	"CREATE TABLE run_process(run INTEGER, pid INTEGER, was INTEGER);"
	"INSERT INTO run_process VALUES(1, 7, 7), (2, 8, 8);" BENCH_RUN_TABLE
	"INSERT INTO bench_run VALUES(1, 1, 'app', 100, 1.5, NULL, NULL, NULL, 0), (2, NULL, 'app', 103, 1.25, 1, 0.1, 4096, 0),"
	" (3, 2, 'app', 110, 3, NULL, NULL, NULL, 0);";

static const char timed_run[] = BENCH_RUN_TABLE
	"INSERT INTO bench_run VALUES(1, 1, 'app', 100, 1.5, NULL, NULL, NULL, 0), (2, NULL, 'app', 103, 1.5, 1, 0.1, 4096, 0);";

static const char slower_run[] = BENCH_RUN_TABLE
	"INSERT INTO bench_run VALUES(1, 1, 'app', 100, 9, NULL, NULL, NULL, 0), (2, NULL, 'app', 109, 9, 1, 0.1, 4096, 0);";

static void test_runs_of_one_file(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ .per = PER_WALL });
	struct made_profile made = { 0 };
	int32_t stack;
	char why[256];

	(void)state;
	stack = made_stack(&made, -1, python(&made, "f", "f.py", 1));
	made_total(&made, 7, 7, stack, 60);
	made_total(&made, 8, 8, stack, 90);
	assert_int_equal(add(compare, SIDE_BASE, &made, two_runs, why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &made, two_runs, why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_int_equal(compare->n_side[SIDE_BASE], 2);
	assert_int_equal(compare->n_timed[SIDE_HEAD], 1);
	assert_string_equal(compare->runs[1].name, "base.db#2");
	assert_int_equal(compare->runs[0].samples, 60);
	assert_int_equal(compare->runs[1].samples, 90);
	assert_near(row_of(compare, "f")->self.base, (0.6 / 1.5 + 0.9 / 3) / 2);
	assert_near(compare->wall.base, 1.25);
	assert_true(isnan(compare->wall.low) && isnan(compare->wall.high) && !compare->wall.is_known);
	assert_near(compare->self_values[0], 0.4);
	made_done(&made);
}

static void test_what_cannot_be_compared(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ 0 });
	CLEANUP(compare_freep)
	struct compare *counted = new_compare(&(struct compare_options){ .per = PER_COUNTER, .counter = "requests" });
	struct made_profile made = { 0 };
	char why[256];

	(void)state;
	one_function(&made, "f", "f.py", 10);
	assert_int_equal(add(compare, SIDE_BASE, &made, "DELETE FROM run", why), -EBADMSG);
	assert_int_equal(add(compare, SIDE_BASE, &made, "INSERT INTO run(run) VALUES(2)", why), -EBADMSG);
	assert_int_equal(add(compare, SIDE_BASE, &made,
			     "INSERT INTO run(run) VALUES(2);"
			     "CREATE TABLE run_process(run INTEGER, pid INTEGER, was INTEGER);"
			     "INSERT INTO run_process VALUES(1, 7, 7), (2, 7, 7);",
			     why),
			 -EDOM);
	assert_non_null(strstr(why, "process 7"));
	assert_int_equal(add(counted, SIDE_BASE, &made, two_runs, why), -EDOM);
	assert_non_null(strstr(why, "requests"));
	assert_int_equal(add(counted, SIDE_BASE, &made, "DELETE FROM counter", why), -EDOM);
	made.profile.unit = "page-faults";
	assert_int_equal(add(compare, SIDE_HEAD, &made, "", why), -EDOM);
	assert_int_equal(compare_compute(compare), -ENODATA);
	made_done(&made);
}

static void test_by_a_counter(void **state)
{
	CLEANUP(compare_freep)
	struct compare *compare = new_compare(&(struct compare_options){ .per = PER_COUNTER, .counter = "requests" });
	struct made_profile made = { 0 };
	char why[256], text[32];

	(void)state;
	one_function(&made, "f", "f.py", 10); /* 100 ms of 50 requests */
	assert_int_equal(add(compare, SIDE_BASE, &made, "", why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &made, "UPDATE counter SET value = 25 WHERE name = 'requests'", why),
			 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_near(row_of(compare, "f")->self.base, 0.002);
	assert_near(row_of(compare, "f")->self.head, 0.004);
	compare_format(compare, row_of(compare, "f")->self.base, text, sizeof text);
	assert_string_equal(text, "2.00 ms");
	made_done(&made);
}

/* ---- Many runs ---- */

/* n runs a side; f has about 100 samples, and more in head; g always has 100. */
static struct compare *many_runs(unsigned n, int more, const char *head_sql)
{
	struct compare *compare = new_compare(&(struct compare_options){ 0 });
	char why[256];

	for (unsigned i = 0; i < 2 * n; i++) {
		struct made_profile made = { 0 };
		enum side side = i < n ? SIDE_BASE : SIDE_HEAD;

		one_function(&made, "f", "f.py", 100 + i % 3 + (unsigned)(side == SIDE_HEAD ? more : 0));
		one_function(&made, "g", "g.py", 100 + (i * 7) % 3);
		if (side == SIDE_HEAD && more > 15)
			one_function(&made, "fresh", "n.py", 20);
		assert_int_equal(add(compare, side, &made, side == SIDE_HEAD ? head_sql : "", why), 0);
		made_done(&made);
	}
	assert_int_equal(compare_compute(compare), 0);
	return compare;
}

static bool allow_list(const void *data, const char *what)
{
	return data && strstr(data, what) != NULL;
}

static enum outcome judge(const struct compare *compare, const char *text, const char *allowed,
			  struct compare_verdict *ret)
{
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };
	struct compare_rule rule;
	enum outcome outcome;
	char why[256];

	assert_int_equal(compare_rule_parse(text, &rule, why), 0);
	assert_int_equal(compare_judge(compare, &rule, 1, allow_list, allowed, &verdict), 0);
	outcome = verdict.outcome;
	if (ret) {
		*ret = verdict;
		verdict = (struct compare_verdict){ 0 };
		for (size_t i = 0; i < ret->n_findings; i++)
			ret->findings[i].rule = NULL;
	}
	compare_rule_done(&rule);
	return outcome;
}

static void test_rules(void **state)
{
	CLEANUP(compare_freep) struct compare *slower = many_runs(6, 20, "");
	CLEANUP(compare_freep) struct compare *same = many_runs(6, 0, "");

	(void)state;
	assert_int_equal(judge(slower, "self(func=f)>+5%", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "self(func=f,file=f.py)>+5%", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "self(func=f)>+50%", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(slower, "self(func=g)>+5%", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(slower, "self(func=*)>+5%", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "total(func=f)>+5%", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "total>+5%", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "any", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "new-hot", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(slower, "new-hot>50%", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(slower, "lost", NULL, NULL), OUTCOME_REGRESSED); /* 3 of some 240 */
	assert_int_equal(judge(slower, "lost>2%", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(slower, "wall>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
	assert_int_equal(judge(slower, "self(func=nobody)>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
	assert_int_equal(judge(slower, "self(func=f,file=other.py)>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
	assert_int_equal(judge(same, "self(func=f)>+5%", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(same, "any", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(same, "new-hot", NULL, NULL), OUTCOME_PASSED);
}

/* A clock is not a count: the variation of a single run is unknown, for any limit. */
static void test_one_timed_run_tells_nothing(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ 0 });
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };
	struct made_profile made = { 0 };
	char why[256];

	(void)state;
	one_function(&made, "f", "f.py", 60);
	assert_int_equal(add(compare, SIDE_BASE, &made, timed_run, why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &made, slower_run, why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_near(compare->wall.change, 5);
	assert_true(isnan(compare->wall.low) && isnan(compare->wall.high) && !compare->wall.is_known);
	assert_int_equal(judge(compare, "wall>+5%", "runs", &verdict), OUTCOME_CANNOT_TELL);
	assert_non_null(strstr(verdict.findings[0].why, "one timed run"));
	made_done(&made);
}

/* A comment does not say less than the job's end. */
static void test_comment_has_the_answers(void **state)
{
	CLEANUP(compare_freep) struct compare *slower = many_runs(6, 20, "");
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	(void)state;
	judge(slower, "self(func=f)>+5%", NULL, &verdict);
	assert_int_equal(compare_write_markdown(slower, &verdict, &(struct compare_look){ 0 }, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(strncmp(text, "### Profile: REGRESSED\n\n- REGRESSED f (f.py)&#58; ", 48), 0);
	assert_non_null(strstr(text, "| total |"));
}

/* All shares add up to one, so no limit on their sum is ever exceeded. */
static void test_shares_of_all(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ .per = PER_SAMPLES });
	struct made_profile made = { 0 };
	char why[256];

	(void)state;
	one_function(&made, "f", "f.py", 30);
	one_function(&made, "g", "g.py", 10);
	assert_int_equal(add(compare, SIDE_BASE, &made, "", why), 0);
	assert_int_equal(add(compare, SIDE_HEAD, &made, "", why), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_near(row_of(compare, "f")->self.base, 0.75);
	assert_int_equal(judge(compare, "total>+5%", "runs", NULL), OUTCOME_CANNOT_TELL);
	made_done(&made);
}

/* One that does nothing else differs from others that never do it. */
static void test_a_rank_that_does_one_thing(void **state)
{
	static const struct compare_rank ranks[] = {
		{ SIDE_BASE, "rank 0" }, { SIDE_BASE, "rank 1" }, { SIDE_BASE, "rank 1" }, { SIDE_HEAD, "rank 2" }
	};
	static const int32_t ranks_of[] = { 0, 1, 2, 3 };
	struct compare_options options = { .per = PER_SAMPLES, .ranks = true, .stacks = true };
	CLEANUP(compare_freep) struct compare *compare = new_compare(&options);
	struct made_profile made = { 0 };
	CLEANUP(freep) char *title = NULL;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(ranks); i++)
		one_function(&made, ranks[i].side == SIDE_HEAD ? "f" : "g", "f.py", 30);
	assert_int_equal(compare_add_ranks(compare, &made.profile, ranks, N_ELEMENTS(ranks), ranks_of), 0);
	assert_int_equal(compare_compute(compare), 0);
	assert_near(row_of(compare, "f")->self.base, 0);
	assert_near(row_of(compare, "f")->self.head, 1);
	assert_true(row_of(compare, "f")->self.is_known);
	assert_int_equal(compare->n_stacks, 2);
	for (size_t i = 0; i < 2; i++) {
		free(title);
		title = compare_stack_title(compare, compare->stacks[i].node);
		assert_string_equal(title, compare->stacks[i].total.head > 0 ? "f  (f.py)" : "g  (f.py)");
	}
	made_done(&made);
}

/* ---- By the rest ---- */

/* Samples of f, g and of main, which calls them, in a run on a machine that is slower by a factor. */
struct made_run {
	unsigned f, g, main, times;
};

static void add_made(struct compare *compare, enum side side, const struct made_run *run)
{
	struct made_profile made = { 0 };
	int32_t in_main = made_stack(&made, -1, python(&made, "main", "m.py", 1));
	char why[256];

	made_total(&made, 7, 7, made_stack(&made, in_main, python(&made, "f", "f.py", 1)),
		   (uint64_t)run->f * run->times);
	made_total(&made, 7, 7, made_stack(&made, in_main, python(&made, "g", "g.py", 1)),
		   (uint64_t)run->g * run->times);
	made_total(&made, 7, 7, in_main, (uint64_t)run->main * run->times);
	assert_int_equal(add(compare, side, &made, "", why), 0);
	made_done(&made);
}

/* Six runs a side that vary a little. */
static struct compare *six_runs(enum compare_per per, struct made_run base, struct made_run head, bool varies)
{
	struct compare *compare = new_compare(&(struct compare_options){ .per = per, .stacks = true });

	for (unsigned i = 0; i < 12; i++) {
		struct made_run run = i < 6 ? base : head;

		run.g += i % 3;
		run.times *= varies ? 1 + i * 5 % 4 : 1;
		add_made(compare, i < 6 ? SIDE_BASE : SIDE_HEAD, &run);
	}
	assert_int_equal(compare_compute(compare), 0);
	return compare;
}

static void assert_same_estimate(const struct estimate *one, const struct estimate *other)
{
	assert_near(one->base, other->base);
	assert_near(one->head, other->head);
	assert_near(one->change, other->change);
	assert_near(one->low, other->low);
	assert_near(one->high, other->high);
	assert_int_equal(one->is_known, other->is_known);
}

/* The speed of the machine in a run scales all of its counts: it changes nothing. */
static void test_speed_cancels(void **state)
{
	static const struct made_run base = { 400, 500, 100, 1 }, slower = { 500, 500, 100, 1 };
	CLEANUP(compare_freep) struct compare *plain = six_runs(PER_REST, base, slower, false);
	CLEANUP(compare_freep) struct compare *scaled = six_runs(PER_REST, base, slower, true);
	CLEANUP(compare_freep) struct compare *by_run = six_runs(PER_RUN, base, slower, true);
	static const char *const names[] = { "f", "g", "main" };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		assert_same_estimate(&row_of(plain, names[i])->self, &row_of(scaled, names[i])->self);
	assert_true(row_of(scaled, "f")->self.is_known);
	assert_false(row_of(by_run, "f")->self.is_known);
}

/* Runs whose speeds differ by more than f has slowed down: the rule passes, and names f as one that may have. */
static void test_a_pass_names_the_doubtful(void **state)
{
	static const struct made_run base = { 400, 500, 100, 1 }, slower = { 500, 500, 100, 1 };
	CLEANUP(compare_freep) struct compare *varying = six_runs(PER_RUN, base, slower, true);
	CLEANUP(compare_freep) struct compare *same = six_runs(PER_RUN, base, base, false);
	CLEANUP(compare_verdict_done) struct compare_verdict doubtful = { 0 };
	CLEANUP(compare_verdict_done) struct compare_verdict certain = { 0 };

	(void)state;
	assert_int_equal(judge(varying, "any>+5%", NULL, &doubtful), OUTCOME_PASSED);
	assert_string_equal(doubtful.findings[0].subject, "every function");
	assert_non_null(strstr(doubtful.findings[0].why,
			       "not certain of 3 functions, for the runs vary too much: above all f (f.py), +63."));
	assert_int_equal(judge(same, "any>+5%", NULL, &certain), OUTCOME_PASSED);
	assert_null(certain.findings[0].why);
}

/* One sample a run proves nothing of any function. */
static void test_hardly_a_sample(void **state)
{
	static const struct made_run one = { 0, 0, 1, 1 };
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ .per = PER_RUN });
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		add_made(compare, i < 4 ? SIDE_BASE : SIDE_HEAD, &one);
	assert_int_equal(compare_compute(compare), 0);
	assert_int_equal(judge(compare, "any>+5%", NULL, &verdict), OUTCOME_CANNOT_TELL);
	assert_non_null(strstr(verdict.findings[0].why, "no function has enough samples"));
}

static void test_slow_machine_is_no_change(void **state)
{
	static const struct made_run base = { 400, 500, 100, 1 }, head = { 400, 500, 100, 2 };
	CLEANUP(compare_freep) struct compare *by_rest = six_runs(PER_REST, base, head, false);
	CLEANUP(compare_freep) struct compare *by_run = six_runs(PER_RUN, base, head, false);

	(void)state;
	assert_near(row_of(by_rest, "f")->self.change, 0);
	assert_near(row_of(by_run, "f")->self.change, 1);
	assert_int_equal(judge(by_rest, "any>+5%", NULL, NULL), OUTCOME_PASSED);
	assert_int_equal(judge(by_run, "any>+5%", NULL, NULL), OUTCOME_REGRESSED);
}

/* 400 of 1000 and 500 of 1100: 2/3 and 5/6 of the remaining samples, a quarter more by f itself. */
static void test_change_is_the_functions_own(void **state)
{
	static const struct made_run base = { 400, 599, 0, 1 }, head = { 500, 599, 0, 1 };
	CLEANUP(compare_freep) struct compare *compare = six_runs(PER_REST, base, head, false);
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };
	const struct estimate *f = &row_of(compare, "f")->self, *g = &row_of(compare, "g")->self;

	(void)state;
	assert_true(fabs(f->base - 2.0 / 3) < 1e-3 && fabs(f->head - 5.0 / 6) < 1e-3);
	assert_true(fabs(f->change - 0.25) < 1e-3);
	assert_true(f->is_known && f->low < 0.25 && f->high > 0.25 - 1e-3);
	assert_true(g->is_known && g->change < 0); /* seems to take less: it is no false alarm */
	assert_int_equal(judge(compare, "any>+5%", NULL, &verdict), OUTCOME_REGRESSED);
	assert_int_equal(verdict.n_findings, 1);
	assert_string_equal(verdict.findings[0].subject, "f (f.py)");
	assert_int_equal(judge(compare, "self(func=f)>+30%", NULL, NULL), OUTCOME_PASSED);
}

/* A function on all stacks has no remaining samples: no result, and no limit passes for it. */
static void test_no_rest(void **state)
{
	static const struct made_run both = { 300, 400, 0, 1 }, one = { 300, 0, 0, 1 };
	CLEANUP(compare_freep) struct compare *compare = six_runs(PER_REST, both, both, false);
	CLEANUP(compare_freep) struct compare *alone = six_runs(PER_REST, one, one, false);
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };

	(void)state;
	assert_true(row_of(compare, "main")->total.has_no_rest);
	assert_false(row_of(compare, "main")->total.is_known);
	assert_false(row_of(compare, "f")->total.has_no_rest);
	assert_int_equal(judge(compare, "total(func=main)>+5%", NULL, &verdict), OUTCOME_CANNOT_TELL);
	assert_non_null(strstr(verdict.findings[0].why, "nothing else ran"));
	assert_int_equal(judge(compare, "total>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
	assert_int_equal(judge(compare, "any>+5%", NULL, NULL), OUTCOME_PASSED);
	assert_true(row_of(alone, "f")->self.has_no_rest); /* g has a dozen samples in all, six a side */
	assert_int_equal(judge(alone, "any>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
	assert_int_equal(judge(alone, "self(func=f)>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
}

/* The share of the total, for any unit. */
static void test_new_by_the_rest(void **state)
{
	static const struct made_run base = { 0, 600, 300, 1 }, head = { 100, 600, 300, 1 };
	CLEANUP(compare_freep) struct compare *compare = six_runs(PER_REST, base, head, false);

	(void)state;
	assert_int_equal(judge(compare, "new-hot>9.5%", NULL, NULL), OUTCOME_REGRESSED);
	assert_int_equal(judge(compare, "new-hot>10.5%", NULL, NULL), OUTCOME_PASSED); /* of the rest it is 11 % */
}

static void test_another_machine(void **state)
{
	CLEANUP(compare_freep)
	struct compare *compare = many_runs(6, 20, "UPDATE run SET cpus = 8, host = 'there'");
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };

	(void)state;
	assert_int_equal(judge(compare, "total>+5%", NULL, &verdict), OUTCOME_CANNOT_TELL);
	assert_string_equal(verdict.findings[0].subject, "number of CPUs");
	assert_int_equal(judge(compare, "total>+5%", "cpus", NULL), OUTCOME_REGRESSED);
}

static void test_too_few_runs(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = many_runs(2, 20, "");

	(void)state;
	assert_true(compare->by_count);
	assert_int_equal(judge(compare, "self(func=f)>+5%", NULL, NULL), OUTCOME_CANNOT_TELL);
	assert_int_not_equal(judge(compare, "self(func=f)>+1%", "runs", NULL),
			     OUTCOME_REGRESSED); /* 100 samples say little */
}

static void test_what_is_no_rule(void **state)
{
	static const char *const wrong[] = { "",
					     "self",
					     "self>+5%",
					     "self()>+5%",
					     "self(func=)>+5%",
					     "self(func=f>+5%",
					     "slef(func=f)>+5%",
					     "total",
					     "total>",
					     "total>5",
					     "total>+5%%",
					     "total>-5%",
					     "total>nan%",
					     "wall(func=f)>+5%",
					     "self(file=a.py)>+5%",
					     "self(file=a,file=b)>+5%",
					     "any(func=f)",
					     "lost<5%",
					     "new-hot>x%" };
	struct compare_rule rule;
	char why[256];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++) {
		if (compare_rule_parse(wrong[i], &rule, why) != -EINVAL)
			fail_msg("%s was taken", wrong[i]);
		assert_true(why[0] != '\0');
	}
	assert_int_equal(compare_rule_parse("self(func=operator()(int, char),file=x.so)> 5.5 %", &rule, why), 0);
	assert_string_equal(rule.function, "operator()(int, char)");
	assert_string_equal(rule.file, "x.so");
	assert_near(rule.threshold, 0.055);
	compare_rule_done(&rule);
}

/* ---- Output ---- */

typedef int write_function(const struct compare *compare, FILE *out);

static char *written(const struct compare *compare, write_function *write)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	assert_int_equal(write(compare, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static int write_text(const struct compare *compare, FILE *out)
{
	return compare_write_text(compare, &(struct compare_look){ .columns = 100 }, out);
}

static int write_markdown(const struct compare *compare, FILE *out)
{
	return compare_write_markdown(compare, NULL, &(struct compare_look){ 0 }, out);
}

static int write_svg(const struct compare *compare, FILE *out)
{
	return compare_write_svg(compare, "x|</code>", out);
}

static int write_junit(const struct compare *compare, FILE *out)
{
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };

	judge(compare, "self(func=*)>+5%", "runs", &verdict);
	return compare_write_junit(compare, &verdict, out);
}

/* Names that would break out of every format, and bytes that are no text. */
static void test_hostile_names(void **state)
{
	static const char name[] = "x|</code>`*_\"&']]>\n\033[31m\xff;\\";
	static write_function *const all[] = {
		write_text,           write_markdown,          write_junit,     write_svg, compare_write_json,
		compare_write_github, compare_write_hyperfine, compare_write_go
	};
	CLEANUP(compare_freep) struct compare *compare = new_compare(&(struct compare_options){ .stacks = true });
	char why[256];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct made_profile made = { 0 };

		one_function(&made, name, "/a/b|c<d>.py", 100 + 100 * i);
		assert_int_equal(add(compare, (enum side)i, &made,
				     i ? "UPDATE run SET host = 'a|b<c>' || char(10) || '# x', command = '<!-- `'" : "",
				     why),
				 0);
		made_done(&made);
	}
	assert_int_equal(compare_compute(compare), 0);
	for (size_t i = 0; i < N_ELEMENTS(all); i++) {
		CLEANUP(freep) char *text = written(compare, all[i]);

		assert_null(strchr(text, '\033'));
		assert_null(strchr(text, '\xff'));
		if (all[i] == write_markdown || all[i] == write_junit || all[i] == write_svg)
			assert_null(strstr(text, "x|</code>"));
		if (all[i] == write_junit)
			assert_null(strstr(text, "]]>"));
		if (all[i] == write_markdown)
			assert_null(strstr(text, "\n# x"));
	}
}

static void test_json_has_every_row(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = many_runs(5, 20, "");
	CLEANUP(freep) char *text = written(compare, compare_write_json);
	json_t *json = json_loads(text, 0, NULL), *functions;

	(void)state;
	assert_non_null(json);
	functions = json_object_get(json, "functions");
	assert_non_null(functions);
	assert_int_equal(json_array_size(functions), compare->n_rows);
	assert_int_equal(compare->n_rows, 3);
	for (size_t i = 0; i < compare->n_rows; i++) {
		const json_t *row = json_array_get(functions, i);
		const json_t *value = json_object_get(json_object_get(row, "self"), "change");

		assert_non_null(value);
		assert_true(isinf(compare->rows[i].self.change) == json_is_null(value)); /* "fresh" is new */
	}
	json_decref(json);
}

/* Numbers are of the rest in every form. f is 2/3 of it, then 5/6. */
static void test_forms_of_the_rest(void **state)
{
	static const struct made_run base = { 400, 599, 0, 1 }, head = { 500, 599, 0, 1 };
	CLEANUP(compare_freep) struct compare *compare = six_runs(PER_REST, base, head, false);
	CLEANUP(freep) char *text = written(compare, write_text), *markdown = written(compare, write_markdown);
	CLEANUP(freep) char *svg = written(compare, write_svg), *json = written(compare, compare_write_json);
	CLEANUP(freep) char *github = written(compare, compare_write_github), *go = written(compare, compare_write_go);

	(void)state;
	assert_non_null(strstr(text, "relative to the rest of the same run"));
	assert_non_null(strstr(text, "   66.7 %   83.3 %   +25.0 %"));
	assert_non_null(strstr(text, "      all      all         ~  main")); /* with all that it calls */
	assert_non_null(strstr(text, "note: all: "));
	assert_null(strstr(text, "  total"));
	assert_non_null(strstr(markdown, "66.7 % | 83.3 % | +25.0 % ["));
	assert_null(strstr(markdown, "| total |"));
	assert_non_null(strstr(svg, "45.45 % · 83.3 %, was 66.7 %: +25.0 %"));
	assert_non_null(strstr(svg, "100.00 % · all, was all: all there is"));
	assert_non_null(strstr(json, "\"unit\": \"of the rest\""));
	assert_non_null(strstr(github, "0.83")); /* of head, the mean of what runs say */
	assert_non_null(strstr(go, "BenchmarkSelf/f@f.py 1 0.83"));
	assert_non_null(strstr(go, " of_the_rest/op\n"));
}

static void test_text_says_what_is_known(void **state)
{
	CLEANUP(compare_freep) struct compare *compare = many_runs(5, 20, "");
	CLEANUP(freep) char *text = written(compare, write_text);

	(void)state;
	assert_non_null(strstr(text, "5 runs of base.db"));
	assert_non_null(strstr(text, "new"));
	assert_non_null(strstr(text, "+20.0 %"));
	assert_non_null(strstr(text, "~"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folders_and_lines_do_not_matter),
		cmocka_unit_test(test_moved_files),
		cmocka_unit_test(test_two_files_of_one_name),
		cmocka_unit_test(test_native_names),
		cmocka_unit_test(test_runs_of_one_file),
		cmocka_unit_test(test_what_cannot_be_compared),
		cmocka_unit_test(test_by_a_counter),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_one_timed_run_tells_nothing),
		cmocka_unit_test(test_comment_has_the_answers),
		cmocka_unit_test(test_shares_of_all),
		cmocka_unit_test(test_a_rank_that_does_one_thing),
		cmocka_unit_test(test_speed_cancels),
		cmocka_unit_test(test_a_pass_names_the_doubtful),
		cmocka_unit_test(test_hardly_a_sample),
		cmocka_unit_test(test_slow_machine_is_no_change),
		cmocka_unit_test(test_change_is_the_functions_own),
		cmocka_unit_test(test_no_rest),
		cmocka_unit_test(test_new_by_the_rest),
		cmocka_unit_test(test_another_machine),
		cmocka_unit_test(test_too_few_runs),
		cmocka_unit_test(test_what_is_no_rule),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_json_has_every_row),
		cmocka_unit_test(test_forms_of_the_rest),
		cmocka_unit_test(test_text_says_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
