/* SPDX-License-Identifier: MIT */
/* test_cluster.c - who is which rank, documents, the merged tree, and many commands at once. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/cluster/cluster.h"
#include "src/profile/profile.h"

#define ENVIRONMENT(text) text, sizeof(text)

static void the_shortest_exchange_tells_the_clock(void **state)
{
	/* Their clock is 1000 ahead. The ways of the first and the last one are unequal; ours was set during the second. */
	static const struct clock_exchange exchanges[] = {
		{ 0, 1900, 1000 }, { 5000, 6100, 4000 }, { 7000, 8050, 7100 }, { 9000, 10010, 9300 }
	};
	struct clock_offset offset = { 0 };

	(void)state;
	assert_true(clock_offset_of(exchanges, N_ELEMENTS(exchanges), &offset));
	assert_int_equal(offset.offset_ns, 1000);
	assert_int_equal(offset.error_ns, 51);
	for (size_t i = 0; i < N_ELEMENTS(exchanges); i += i == 0 ? 2 : 1) {
		assert_true(clock_offset_of(&exchanges[i], 1, &offset));
		assert_true(llabs(offset.offset_ns - 1000) <= offset.error_ns);
	}
	assert_false(clock_offset_of(&exchanges[1], 1, &offset));
	assert_false(clock_offset_of(exchanges, 0, &offset));
}

static void a_time_is_a_number_alone(void **state)
{
	int64_t time_ns;

	(void)state;
	assert_int_equal(clock_parse("1795729623162074300\n", &time_ns), 0);
	assert_true(time_ns == INT64_C(1795729623162074300));
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(clock_parse((const char *const[]){ "", "\n", "-1", "1 2", "1\n\n",
								    "9999999999999999999", "11111111111111111111" }[i],
					     &time_ns),
				 -EBADMSG);
}

static void ranks_are_in_the_environment(void **state)
{
	struct rank_identity identity;

	(void)state;
	assert_true(rank_identify(ENVIRONMENT("A=1\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=8\0TORCHELASTIC_RUN_ID=none\0"
					      "MASTER_PORT=29500\0ROLE_NAME=trainer\0SLURM_PROCID=0"),
				  &identity));
	assert_int_equal(identity.source, RANK_OF_WORKER);
	assert_int_equal(identity.rank, 3);
	assert_int_equal(identity.local_rank, 1);
	assert_int_equal(identity.world_size, 8);
	assert_string_equal(identity.job, "none:29500");
	assert_string_equal(identity.role, "trainer");
	assert_true(rank_identify(ENVIRONMENT("SLURM_PROCID=5\0SLURM_NTASKS=16\0SLURM_LOCALID=1\0SLURM_JOB_ID=77"),
				  &identity));
	assert_int_equal(identity.source, RANK_OF_LAUNCHER);
	assert_int_equal(identity.rank, 5);
	assert_int_equal(identity.world_size, 16);
	assert_string_equal(identity.job, "77");
	assert_true(rank_identify(ENVIRONMENT("OMPI_COMM_WORLD_RANK=2\0OMPI_COMM_WORLD_SIZE=4"), &identity));
	assert_int_equal(identity.rank, 2);
	assert_true(rank_identify(ENVIRONMENT("PMI_RANK=1\0PMI_SIZE=2"), &identity));
	assert_int_equal(identity.rank, 1);
	assert_true(rank_identify(ENVIRONMENT("JOB_COMPLETION_INDEX=9"), &identity));
	assert_int_equal(identity.rank, 9);
	assert_int_equal(identity.world_size, -1);
}

static void what_is_no_rank_is_none(void **state)
{
	struct rank_identity identity;

	(void)state;
	assert_false(rank_identify("", 0, &identity));
	assert_int_equal(identity.rank, -1);
	assert_false(rank_identify(ENVIRONMENT("RANK=\0XRANK=1\0RANK_=2\0PMI_RANK=-1"), &identity));
	assert_false(rank_identify(ENVIRONMENT("RANK=1x\0SLURM_PROCID=99999999999999999999"), &identity));
	/* cut within its value */
	assert_false(rank_identify("A=1\0RANK=3", 10, &identity));
}

/* ---- Documents ---- */

#define FRAME(kind, name, file, line)                                                                                  \
	"{\"kind\":\"" kind "\",\"function\":\"" name "\",\"file\":\"" file "\",\"line\":" line "}"
#define START                                                                                                          \
	FRAME("python", "<module>", "/u/train.py", "9")                                                                \
	"," FRAME("python", "_run_code", "<frozen runpy>", "1") "," FRAME("native", "main", "", "0")
#define WAITS                                                                                                          \
	FRAME("native", "poll", "", "0")                                                                               \
	"," FRAME("python", "all_reduce", "/x/site-packages/torch/distributed/c10d.py",                                \
		  "7") "," FRAME("python", "step", "/u/train.py", "5") "," START
#define LOADS FRAME("builtin", "time.sleep", "", "0") "," FRAME("python", "load", "/u/train.py", "3") "," START
#define RANK(number, frames)                                                                                           \
	"{\"rank\":" number ",\"world_size\":5,\"job\":\"j\",\"pid\":1" number ",\"status\":\"read\",\"threads\":"     \
	"[{\"tid\":1" number ",\"state\":\"S\",\"frames\":[" frames "]}]}"
#define DOCUMENT(ranks) "{\"probing_cluster\":1,\"version\":\"1\",\"hosts\":[{\"host\":\"a\",\"ranks\":[" ranks "]}]}"

static void read_document(struct cluster *cluster, const char *text)
{
	assert_int_equal(cluster_read(cluster, text, strlen(text), NULL), 0);
	cluster_sort(cluster);
}

static char *print(const struct cluster *cluster, const struct tree_options *options)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	assert_int_equal(cluster_print(cluster, options, false, true, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static const char four_ranks[] = DOCUMENT(
	RANK("2", WAITS) "," RANK("1", LOADS) "," RANK("0", WAITS) "," RANK("3", WAITS));

static void the_odd_one_comes_first_and_ranks_are_ranges(void **state)
{
	static const char wanted[] = "Job j: 4 of 5 ranks read\n"
				     "rank 4: missing: the hosts that answered have no process of it\n"
				     "\n"
				     "ranks 0,2,3 are in all_reduce, called by step  (train.py:5)\n"
				     "  rank 1: not there, but in load  (train.py:3), in time.sleep\n"
				     "\n"
				     "2 classes of equal stacks, outliers first:\n"
				     "  rank 1  (pid 11 on a)\n"
				     "      load  (train.py:3), in time.sleep\n"
				     "  ranks 0,2,3: 3 alike  (pid 10 on a, pid 12 on a, pid 13 on a)\n"
				     "      step  (train.py:5), in all_reduce  (c10d.py:7)\n"
				     "\n"
				     "All of them, outermost frame first:\n"
				     "\n"
				     "<module>  (train.py:9)\n"
				     "rank 1:\n"
				     "  load  (train.py:3)\n"
				     "  time.sleep\n"
				     "ranks 0,2,3:\n"
				     "  step  (train.py:5)\n"
				     "  all_reduce  (c10d.py:7)\n"
				     "  poll\n";
	struct tree_options options = { 0 };
	struct cluster cluster = { 0 };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	read_document(&cluster, four_ranks);
	text = print(&cluster, &options);
	assert_string_equal(text, wanted);
	cluster_done(&cluster);
}

/* It is where the others are, and never arrives. */
static void a_stopped_rank_is_named_although_it_is_in_the_same_call(void **state)
{
	static const char stopped[] =
		"{\"rank\":2,\"job\":\"j\",\"pid\":12,\"status\":\"read\",\"threads\":[{\"tid\":12,\"state\":"
		"\"T\",\"frames\":[" WAITS "]}]}";
	struct tree_options options = { 0 };
	struct cluster cluster = { 0 };
	CLEANUP(freep) char *text = NULL, *document = NULL;

	(void)state;
	assert_true(asprintf(&document, DOCUMENT("%s," RANK("0", WAITS) "," RANK("1", WAITS)), stopped) > 0);
	read_document(&cluster, document);
	text = print(&cluster, &options);
	assert_non_null(strstr(
		text, "\nranks 0,1 are both in all_reduce, called by step  (train.py:5)\n"
		      "  rank 2: there, too: step  (train.py:5), in all_reduce  (c10d.py:7); stopped by a signal\n"));
	cluster_done(&cluster);
}

static void a_recursion_is_one_line_unless_all_frames_are_wanted(void **state)
{
#define DEEP FRAME("python", "walk", "/u/train.py", "4")
	static const char document[] = DOCUMENT(
		RANK("0", DEEP "," DEEP "," DEEP "," START) "," RANK("1", DEEP "," DEEP "," START));
	struct tree_options folded = { 0 }, whole = { .whole = true };
	CLEANUP(freep) char *text = NULL, *all = NULL;
	struct cluster cluster = { 0 };

	(void)state;
	read_document(&cluster, document);
	text = print(&cluster, &folded);
	assert_non_null(strstr(text, "\n1 class of equal stacks:\n"));
	assert_non_null(strstr(text, "\n<module>  (train.py:9)\nwalk  (train.py:4)  x 2-3\n"));
	all = print(&cluster, &whole);
	assert_non_null(strstr(all, "\n2 classes of equal stacks"));
	assert_non_null(strstr(all, "\nmain\n_run_code  (<frozen runpy>:1)\n<module>  (train.py:9)\n"));
	cluster_done(&cluster);
}

static void a_profile_has_a_sample_for_each_stack(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct tree_options options = { 0 };
	struct cluster cluster = { 0 };
	struct cluster_tree tree;
	bool is_named = false;

	(void)state;
	read_document(&cluster, four_ranks);
	assert_int_equal(cluster_merge(&cluster, &options, &tree), 0);
	assert_int_equal(cluster_profile(&tree, &profile), 0);
	assert_int_equal(profile->n_totals, 4);
	for (size_t i = 0; i < profile->n_frames; i++)
		is_named |= strcmp(profile->frames[i].name, "load [rank 1]") == 0;
	assert_true(is_named);
	cluster_tree_done(&tree);
	cluster_done(&cluster);
}

static void foreign_documents_are_refused(void **state)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{ "", -EBADMSG },
		{ "[]", -EBADMSG },
		{ "{\"hosts\":[]}", -EBADMSG },
		{ "{\"probing_cluster\":2,\"hosts\":[]}", -EPROTONOSUPPORT },
		{ "{\"probing_cluster\":1,\"hosts\":{}}", -EBADMSG },
		{ "{\"probing_cluster\":1,\"hosts\":[1]}", -EBADMSG },
		{ DOCUMENT("{\"threads\":[{\"frames\":[7]}]}"), -EBADMSG },
		{ "{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\",\"ranks\":[{\"rank\":0}]},1]}", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct cluster cluster = { 0 };

		assert_int_equal(cluster_read(&cluster, cases[i].text, strlen(cases[i].text), NULL), cases[i].error);
		assert_int_equal(cluster.n_hosts, 0); /* its caller names the host once, with the problem */
		assert_int_equal(cluster.n_ranks, 0);
		cluster_done(&cluster);
	}
}

static void numbers_out_of_range_are_unknown(void **state)
{
	static const char document[] = "{\"probing_cluster\":1,\"hosts\":[{\"ranks\":[{\"rank\":-3,\"world_size\":"
				       "9000000000,\"pid\":-1,\"status\":\"made up\",\"threads\":null}]}]}";
	struct cluster cluster = { 0 };

	(void)state;
	read_document(&cluster, document);
	assert_int_equal(cluster.n_ranks, 1);
	assert_int_equal(cluster.ranks[0].identity.rank, -1);
	assert_int_equal(cluster.ranks[0].identity.world_size, -1);
	assert_int_equal(cluster.ranks[0].pid, 0);
	assert_int_equal(cluster.ranks[0].status, RANK_FAILED);
	cluster_done(&cluster);
}

static void a_host_speaks_of_itself_alone(void **state)
{
	static const char *const others[] = { "{\"probing_cluster\":1}", "{\"probing_cluster\":1,\"hosts\":[]}",
					      "{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\"},{\"host\":\"b\"}]}" };
	static const char own[] = "{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\",\"address\":\"b\"}]}";
	struct cluster cluster = { 0 };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(others); i++)
		assert_int_equal(cluster_read(&cluster, others[i], strlen(others[i]), "h"), -EBADMSG);
	assert_int_equal(cluster.n_hosts, 0);
	assert_int_equal(cluster_read(&cluster, own, strlen(own), "h"), 0);
	assert_string_equal(cluster.hosts[0].address, "h");
	cluster_done(&cluster);
}

/* Column names are the program's: a rowid of its own is a column, and not the order of ranks. */
static void a_column_may_be_called_rowid(void **state)
{
	static const char document[] =
		"{\"probing_cluster\":1,\"hosts\":[{\"ranks\":["
		"{\"rank\":1,\"status\":\"read\",\"data\":{\"tables\":[{\"schema\":\"python\",\"name\":\"t\",\"columns\":"
		"[[\"rowid\",\"INTEGER\"]],\"rows\":[[5],[5]]}]}},"
		"{\"rank\":0,\"status\":\"read\",\"data\":{\"tables\":[{\"schema\":\"python\",\"name\":\"t\",\"columns\":"
		"[[\"rowid\",\"INTEGER\"]],\"rows\":[[7]]}]}}]}]}";
	struct cluster cluster = { 0 };
	sqlite3_stmt *row;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &cluster.db), SQLITE_OK);
	read_document(&cluster, document);
	assert_int_equal(sqlite3_prepare_v2(cluster.db, "SELECT group_concat(rank || ':' || rowid_) FROM python.t", -1,
					    &row, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_string_equal(sqlite3_column_text(row, 0), "0:7,1:5,1:5");
	sqlite3_finalize(row);
	sqlite3_close(cluster.db);
	cluster_done(&cluster);
}

/* Also those of ranks that stand before what is wrong. */
static void rows_of_a_refused_document_are_undone(void **state)
{
	static const char first[] =
		"{\"probing_cluster\":1,\"hosts\":[{\"ranks\":["
		"{\"rank\":0,\"status\":\"read\",\"data\":{\"tables\":[{\"schema\":\"main\",\"name\":\"t\","
		"\"columns\":[[\"a\",\"INTEGER\"]],\"rows\":[[5]]}]}}]}]}";
	static const char refused[] =
		"{\"probing_cluster\":1,\"hosts\":[{\"ranks\":["
		"{\"rank\":1,\"status\":\"read\",\"data\":{\"tables\":[{\"schema\":\"main\",\"name\":\"t\",\"columns\":"
		"[[\"a\",\"INTEGER\"]],\"rows\":[[7]]},{\"schema\":\"other\",\"name\":\"t\",\"columns\":"
		"[[\"a\",\"INTEGER\"]],\"rows\":[[7]]}]}},1]}]}";
	struct cluster cluster = { 0 };
	sqlite3_stmt *row;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &cluster.db), SQLITE_OK);
	read_document(&cluster, first);
	assert_int_equal(cluster_read(&cluster, refused, strlen(refused), NULL), -EBADMSG);
	assert_int_equal(cluster.n_ranks, 1);
	assert_int_equal(sqlite3_prepare_v2(cluster.db, "SELECT group_concat(a) FROM t", -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_string_equal(sqlite3_column_text(row, 0), "5");
	sqlite3_finalize(row);
	assert_int_not_equal(sqlite3_exec(cluster.db, "SELECT a FROM other.t", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_get_autocommit(cluster.db), 1);
	sqlite3_close(cluster.db);
	cluster_done(&cluster);
}

/* A host that makes up jobs does not fill the memory with their missing ranks. */
static void missing_ranks_of_all_jobs_have_a_limit(void **state)
{
	static const char document[] = "{\"probing_cluster\":1,\"hosts\":[{\"ranks\":["
				       "{\"rank\":0,\"world_size\":65536,\"job\":\"a\",\"status\":\"read\"},"
				       "{\"rank\":0,\"world_size\":65536,\"job\":\"b\",\"status\":\"read\"},"
				       "{\"rank\":0,\"world_size\":65536,\"job\":\"c\",\"status\":\"read\"}]}]}";
	struct cluster cluster = { 0 };
	sqlite3_stmt *row;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &cluster.db), SQLITE_OK);
	read_document(&cluster, document);
	assert_int_equal(cluster_add_nodes(&cluster, true), 0);
	assert_int_equal(sqlite3_prepare_v2(cluster.db, "SELECT count(*) FROM cluster.nodes WHERE status = 'missing'",
					    -1, &row, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(row, 0), CLUSTER_MAX_RANKS);
	sqlite3_finalize(row);
	sqlite3_close(cluster.db);
	cluster_done(&cluster);
}

static void of_many_classes_the_smallest_and_the_largest_are_shown(void **state)
{
	struct tree_options options = { 0 }, whole = { .whole = true };
	CLEANUP(freep) char *text = NULL, *all = NULL, *document = NULL;
	struct cluster cluster = { 0 };
	size_t n_bytes;
	FILE *out = open_memstream(&document, &n_bytes);

	(void)state;
	assert_non_null(out);
	fputs("{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\",\"ranks\":[", out);
	for (int i = 0; i < 30; i++)
		fprintf(out,
			"%s{\"rank\":%d,\"pid\":%d,\"status\":\"read\",\"threads\":[{\"frames\":[{\"kind\":\"python\",\"function\":"
			"\"f\",\"file\":\"x.py\",\"line\":%d}]}]}",
			i > 0 ? "," : "", i, i + 1, i + 1);
	fputs("]}]}", out);
	assert_int_equal(fclose(out), 0);
	read_document(&cluster, document);
	text = print(&cluster, &options);
	assert_non_null(
		strstr(text, "(x.py:20)\n  6 more classes; --all-frames shows them\n  rank 26  (pid 27 on a)\n"));
	all = print(&cluster, &whole);
	assert_null(strstr(all, "more classes"));
	cluster_done(&cluster);
}

/* A host that makes up jobs does not make the output endless. */
static void jobs_have_a_limit(void **state)
{
	struct tree_options options = { 0 }, last = { .job = "j4999" };
	CLEANUP(freep) char *text = NULL, *one = NULL, *document = NULL;
	struct cluster cluster = { 0 };
	size_t n_bytes;
	FILE *out = open_memstream(&document, &n_bytes);

	(void)state;
	assert_non_null(out);
	fputs("{\"probing_cluster\":1,\"hosts\":[{\"host\":\"a\",\"ranks\":[", out);
	for (int i = 0; i < 5000; i++)
		fprintf(out, "%s{\"rank\":0,\"status\":\"read\",\"job\":\"j%04d\",\"world_size\":2}", i > 0 ? "," : "",
			i);
	fputs("]}]}", out);
	assert_int_equal(fclose(out), 0);
	read_document(&cluster, document);
	text = print(&cluster, &options);
	assert_non_null(strstr(text, "Job j1023: 1 of 2 ranks read\n"));
	assert_null(strstr(text, "Job j1024"));
	assert_non_null(strstr(text, "\nThese are the first 1024 jobs; --job NAME shows one\n"));
	one = print(&cluster, &last);
	assert_non_null(strstr(one, "Job j4999: 1 of 2 ranks read\n"));
	cluster_done(&cluster);
}

/* ---- Comparison ---- */

/* Against sums of binomial coefficients in whole numbers. */
static void fishers_test_is_exact(void **state)
{
	static const struct {
		unsigned k, n, l, m;
		double p;
	} cases[] = {
		{ 3, 4, 1, 4, 0.4857142857142857 },
		{ 10, 10, 0, 30, 1.1797175484382116e-09 },
		{ 5, 20, 15, 60, 1.0 },
		{ 0, 0, 0, 0, 1.0 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		double p = report_fisher(cases[i].k, cases[i].n, cases[i].l, cases[i].m);

		assert_true(fabs(p - cases[i].p) <= 1e-6 * cases[i].p);
	}
}

static char *report(const struct cluster *cluster)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	assert_non_null(out);
	assert_int_equal(cluster_report(cluster, 3, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Ranks of ten looks; those of the odd one are elsewhere, and its CPU time is another. */
static void add_looks(struct cluster *cluster, size_t n_ranks, size_t odd)
{
	static const char there[] = "{\"threads\":[{\"frames\":[" LOADS "]}]}",
			  here[] = "{\"threads\":[{\"frames\":[" WAITS "]}]}";
	struct cluster_host *host;
	struct cluster_rank *rank;

	assert_int_equal(cluster_add_host(cluster, "a", NULL, "1", &host), 0);
	for (size_t i = 0; i < n_ranks; i++) {
		struct rank_identity identity = { .rank = (int64_t)i, .local_rank = -1, .world_size = -1 };
		const char *text = i == odd ? there : here;

		assert_int_equal(cluster_add_rank(cluster, 0, (pid_t)(10 + i), &identity, &rank), 0);
		rank->usage.seconds = 2;
		rank->usage.cpu_s = i == odd ? 1.9 : 0.2 + 0.01 * (double)i;
		rank->usage.queued_s = 0.1;
		for (size_t k = 0; k < 10; k++)
			assert_int_equal(cluster_read_backtrace(cluster, rank, text, strlen(text)), 0);
	}
}

static void the_rank_that_differs_is_named_with_what_it_does(void **state)
{
	struct cluster cluster = { 0 };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	add_looks(&cluster, 8, 5);
	text = report(&cluster);
	assert_non_null(strstr(text, "rank 5 (pid 15 on a) differs:\n  CPU: 0.95 CPUs; the median of all is 0.12 (+"));
	assert_non_null(
		strstr(text, "\n  100 % of samples in load  (train.py); the median of all is 0 % (p < 0.0001)\n"));
	assert_non_null(strstr(
		text,
		"\n  0 % of samples in step  (train.py), in all_reduce; the median of all is 100 % (p < 0.0001)\n"));
	assert_non_null(strstr(text, "\n  its stacks against those of the others, in points of the share of samples:\n"
				     "    +100  <module> > load > time.sleep: 100 % instead of 0 % (p < 0.0001)\n"));
	assert_non_null(
		strstr(text, "\n    -100  <module> > step > all_reduce > poll: 0 % instead of 100 % (p < 0.0001)\n"));
	assert_null(strstr(text, "rank 4 (pid"));
	cluster_done(&cluster);
}

static void equal_ranks_do_not_differ(void **state)
{
	struct cluster cluster = { 0 };
	CLEANUP(freep) char *text = NULL;

	(void)state;
	add_looks(&cluster, 8, 99);
	text = report(&cluster);
	assert_non_null(strstr(text, "No rank differs from the others by more than chance.\n"));
	cluster_done(&cluster);
}

/* The agent's wrapper is between torch's function and torch's own call: the program's line is the place. */
static void our_hook_is_not_the_place(void **state)
{
	static const char *const hooks[] = { "<probing>/_comm.py", "src/python/probing/_comm.py" };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(hooks); i++) {
		const struct cluster_frame calls[] = {
			{ .kind = FRAME_PYTHON, .function = "step", .file = "/srv/train.py", .line = 7 },
			{ .kind = FRAME_PYTHON,
			  .function = "all_reduce",
			  .file = "/usr/lib/python3/torch/distributed/c10d.py" },
			{ .kind = FRAME_PYTHON, .function = "wrapper", .file = (char *)hooks[i], .line = 300 },
		};
		struct cluster cluster = { 0 };
		struct stack_place place;
		uint32_t frames[3];

		for (size_t k = 0; k < N_ELEMENTS(calls); k++)
			assert_true(cluster_add_frame(&cluster, &calls[k], &frames[k]) >= 0);
		frames_place(&cluster, frames, 3, &place);
		assert_string_equal(place.own->function, "step");
		assert_string_equal(place.collective->function, "all_reduce");
		cluster_done(&cluster);
	}
}

/* Ranks of many samples, as a fleet has them; those of the odd one are elsewhere. */
static void samples_are_compared_as_looks_are(void **state)
{
	static const struct cluster_frame calls[] = {
		{ .kind = FRAME_PYTHON, .function = "step", .file = "/srv/train.py" },
		{ .kind = FRAME_PYTHON, .function = "all_reduce", .file = "/usr/lib/python3/torch/distributed/c10d.py" },
		{ .kind = FRAME_PYTHON, .function = "load", .file = "/srv/train.py" },
	};
	struct cluster cluster = { 0 };
	struct cluster_host *host;
	struct cluster_rank *rank;
	uint32_t frames[3], waits, loads;
	CLEANUP(freep) char *text = NULL, *equal = NULL;

	(void)state;
	assert_int_equal(cluster_add_host(&cluster, "a", NULL, NULL, &host), 0);
	for (size_t i = 0; i < N_ELEMENTS(calls); i++)
		assert_true(cluster_add_frame(&cluster, &calls[i], &frames[i]) >= 0);
	assert_int_equal(cluster_add_stack(&cluster, frames, 2, &waits), 0);
	assert_int_equal(cluster_add_stack(&cluster, frames + 2, 1, &loads), 0);
	for (size_t i = 0; i < 8; i++) {
		struct rank_identity identity = { .rank = (int64_t)i, .local_rank = -1, .world_size = -1 };

		assert_int_equal(cluster_add_rank(&cluster, 0, (pid_t)(10 + i), &identity, &rank), 0);
		rank->usage.seconds = 86400;
		rank->usage.cpu_s = 86400;
		assert_int_equal(cluster_add_looks(rank, waits, i == 5 ? UINT64_C(2000000000) : UINT64_C(5000000000)),
				 0);
		assert_int_equal(cluster_add_looks(rank, loads, i == 5 ? UINT64_C(3000000000) : 0), 0);
	}
	text = report(&cluster);
	assert_non_null(strstr(text, "Job: 8 ranks, 40000000000 samples\n\nrank 5 (pid 15 on a) differs:\n  "));
	assert_non_null(
		strstr(text, "\n  60 % of samples in load  (train.py); the median of all is 0 % (p < 0.0001)\n"));
	assert_non_null(strstr(
		text,
		"\n  40 % of samples in step  (train.py), in all_reduce; the median of all is 100 % (p < 0.0001)\n"));
	cluster.ranks[5].looks[0].n += cluster.ranks[5].looks[1].n;
	cluster.ranks[5].looks[1].n = 0;
	equal = report(&cluster);
	assert_non_null(strstr(equal, "No rank differs from the others by more than chance.\n"));
	cluster_done(&cluster);
}

/* Of thousands of ranks, and of times that are no times. */
static void many_ranks_are_compared_at_once(void **state)
{
	static const char document[] = "{\"probing_cluster\":1,\"hosts\":[{\"ranks\":[{\"rank\":0,\"status\":\"read\","
				       "\"usage\":{\"seconds\":1e-320,\"cpu_s\":1e11}}]}]}";
	struct cluster cluster = { 0 }, made_up = { 0 };
	CLEANUP(freep) char *text = NULL, *none = NULL;
	clock_t began;

	(void)state;
	add_looks(&cluster, 6000, 5);
	began = clock();
	text = report(&cluster);
	assert_true(clock() - began < CLOCKS_PER_SEC);
	assert_non_null(strstr(text, "rank 5 (pid 15 on a) differs:\n"));
	cluster_done(&cluster);
	read_document(&made_up, document);
	none = report(&made_up);
	assert_non_null(strstr(none, "0  read: nothing was measured\n"));
	cluster_done(&made_up);
}

/* ---- Commands ---- */

static void commands_end_at_their_deadline(void **state)
{
	char *quick[] = { "sh", "-c", "echo out; echo first >&2; echo probing: last >&2; echo Try x >&2; exit 3",
			  NULL };
	char *slow[] = { "sleep", "20", NULL };
	char *loud[] = { "sh", "-c", "while :; do echo 0123456789012345678901234567890123456789; done", NULL };
	char *none[] = { "/nowhere/at/all", NULL };
	char *ended[] = { "sh", "-c", "kill -9 $$", NULL };
	char *leaves[] = { "sh", "-c", "sleep 20 & echo left", NULL };
	struct command commands[] = { { quick }, { slow }, { loud }, { none }, { ended }, { leaves } };
	struct commands_options options = { .n_at_once = 3, .each_ns = 500000000, .max_bytes = 10000 };
	uint64_t began_ns = monotonic_ns();
	char why[256];

	(void)state;
	assert_int_equal(commands_run(commands, N_ELEMENTS(commands), &options), 0);
	assert_true(monotonic_ns() - began_ns < UINT64_C(10000000000));
	assert_string_equal(commands[0].output, "out\n");
	assert_int_equal(WEXITSTATUS(commands[0].wait_status), 3);
	command_explain(&commands[0], why, sizeof why);
	assert_string_equal(why, "last");
	assert_int_equal(commands[1].error, -ETIMEDOUT);
	assert_int_equal(commands[2].error, -E2BIG);
	assert_true(commands[2].output_bytes < 10000);
	assert_int_equal(commands[3].error, -ENOENT);
	command_explain(&commands[3], why, sizeof why);
	assert_non_null(strstr(why, "/nowhere/at/all cannot be started"));
	command_explain(&commands[4], why, sizeof why);
	assert_non_null(strstr(why, "signal 9"));
	/* What it has started holds its pipe; it has ended all the same. */
	assert_int_equal(commands[5].error, 0);
	assert_string_equal(commands[5].output, "left\n");
	commands_done(commands, N_ELEMENTS(commands));
}

static void commands_that_never_began_are_too_slow(void **state)
{
	char *slow[] = { "sleep", "20", NULL };
	struct command commands[] = { { slow }, { slow }, { slow } };
	struct commands_options options = {
		.n_at_once = 1, .each_ns = 10000000000, .all_ns = 200000000, .max_bytes = 10
	};

	(void)state;
	assert_int_equal(commands_run(commands, N_ELEMENTS(commands), &options), 0);
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		assert_int_equal(commands[i].error, -ETIMEDOUT);
	commands_done(commands, N_ELEMENTS(commands));
}

/* Each is short enough, but not all of them: the answers of very many hosts must fit into the memory. */
static void all_commands_together_have_a_limit(void **state)
{
	char *words[] = { "sh", "-c", "echo 1234567", NULL };
	struct command commands[] = { { words }, { words }, { words }, { words } };
	struct commands_options options = {
		.n_at_once = 1, .each_ns = 20000000000, .max_bytes = 100, .max_all_bytes = 20
	};

	(void)state;
	assert_int_equal(commands_run(commands, N_ELEMENTS(commands), &options), 0);
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		assert_int_equal(commands[i].error, i < 2 ? 0 : -E2BIG);
	commands_done(commands, N_ELEMENTS(commands));
}

/* Ends by SIGTERM while its command runs. @tell: descriptor to which the command's PID is written as text. */
static void run_until_the_end(int tell)
{
	char text[64];
	char *slow[] = { "sh", "-c", text, NULL };
	struct command command = { slow };
	struct commands_options options = { .n_at_once = 1, .each_ns = 20000000000, .max_bytes = 10 };

	snprintf(text, sizeof text, "echo $$ >&%d; exec sleep 20", tell);
	(void)commands_run(&command, 1, &options);
	_exit(99);
}

static void a_signal_ends_the_commands_first(void **state)
{
	char text[16] = "";
	int ends[2], status;
	pid_t child, command;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		run_until_the_end(ends[1]);
	assert_true(read(ends[0], text, sizeof text - 1) > 0);
	command = (pid_t)strtol(text, NULL, 10);
	assert_int_equal(kill(command, 0), 0);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(kill(command, 0), -1);
	close(ends[0]);
	close(ends[1]);
}

/* Under nohup(1) the end of the terminal is no end of the question. */
static void an_ignored_signal_ends_nothing(void **state)
{
	char *words[] = { "sh", "-c", "kill -HUP $PPID; sleep 0.1; echo done", NULL };
	struct command command = { words };
	struct commands_options options = { .n_at_once = 1, .each_ns = 20000000000, .max_bytes = 10 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;

	(void)state;
	assert_int_equal(sigaction(SIGHUP, &ignore, &before), 0);
	assert_int_equal(commands_run(&command, 1, &options), 0);
	assert_int_equal(sigaction(SIGHUP, &before, NULL), 0);
	assert_string_equal(command.output, "done\n");
	commands_done(&command, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_exchange_tells_the_clock),
		cmocka_unit_test(a_time_is_a_number_alone),
		cmocka_unit_test(ranks_are_in_the_environment),
		cmocka_unit_test(what_is_no_rank_is_none),
		cmocka_unit_test(the_odd_one_comes_first_and_ranks_are_ranges),
		cmocka_unit_test(a_stopped_rank_is_named_although_it_is_in_the_same_call),
		cmocka_unit_test(a_recursion_is_one_line_unless_all_frames_are_wanted),
		cmocka_unit_test(a_profile_has_a_sample_for_each_stack),
		cmocka_unit_test(foreign_documents_are_refused),
		cmocka_unit_test(numbers_out_of_range_are_unknown),
		cmocka_unit_test(a_host_speaks_of_itself_alone),
		cmocka_unit_test(a_column_may_be_called_rowid),
		cmocka_unit_test(rows_of_a_refused_document_are_undone),
		cmocka_unit_test(missing_ranks_of_all_jobs_have_a_limit),
		cmocka_unit_test(of_many_classes_the_smallest_and_the_largest_are_shown),
		cmocka_unit_test(jobs_have_a_limit),
		cmocka_unit_test(fishers_test_is_exact),
		cmocka_unit_test(the_rank_that_differs_is_named_with_what_it_does),
		cmocka_unit_test(equal_ranks_do_not_differ),
		cmocka_unit_test(our_hook_is_not_the_place),
		cmocka_unit_test(samples_are_compared_as_looks_are),
		cmocka_unit_test(many_ranks_are_compared_at_once),
		cmocka_unit_test(commands_end_at_their_deadline),
		cmocka_unit_test(all_commands_together_have_a_limit),
		cmocka_unit_test(a_signal_ends_the_commands_first),
		cmocka_unit_test(an_ignored_signal_ends_nothing),
		cmocka_unit_test(commands_that_never_began_are_too_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
