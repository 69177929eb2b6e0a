/* SPDX-License-Identifier: MIT */
/* test_archive.c - recordings made of others, what is said of them, and damage of every kind. */
#include "tests/unit/store_fixture.h"

#include "base/rank.h"
#include "base/util.h"
#include "src/archive/archive.h"

#define FIRST_INLINED (INT64_C(1) << 32)
#define SECOND UINT64_C(1000000000)
enum { STARTED = 1700000000 };

/* Names that stay valid, unlike those of with(). */
struct names {
	char a[320], b[320], c[320], out[320], again[320];
};

static struct names names_in(const struct folder *folder)
{
	struct names names;

	snprintf(names.a, sizeof names.a, "%s/a.db", folder->path);
	snprintf(names.b, sizeof names.b, "%s/b.db", folder->path);
	snprintf(names.c, sizeof names.c, "%s/c.db", folder->path);
	snprintf(names.out, sizeof names.out, "%s/out.db", folder->path);
	snprintf(names.again, sizeof names.again, "%s/again.db", folder->path);
	return names;
}

/* Rows as the shell prints them, read as every reader of ours does, however the file keeps its samples. */
static int append_row(void *data, int n, char **values, char **names)
{
	char *to = data;

	(void)names;
	for (int i = 0; i < n; i++)
		snprintf(to + strlen(to), 4096 - strlen(to), "%s%s",
			 i > 0 ? "|"
			 : *to ? "\n"
			       : "",
			 values[i] ? values[i] : "");
	return 0;
}

static const char *answer(const char *path, const char *sql)
{
	static char text[4096];
	sqlite3 *db = NULL;

	text[0] = '\0';
	assert_int_equal(store_open_reader(path, &db), 0);
	if (sqlite3_exec(db, sql, append_row, text, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
	return text;
}

/* Change the file directly, without the store. False: it has no such plain table. */
static bool change(const char *path, const char *sql)
{
	if (strstr(sql, " sample ") &&
	    strcmp(stock_shell(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'sample'"), "0") == 0)
		return false;
	stock_shell(path, sql);
	return true;
}

/* What one recording is made of. */
struct made {
	const char *host, *command, *mode;
	pid_t pid;
	unsigned at_s; /* after STARTED */
	int64_t shift; /* of all numbers, so that equal rows have different ones */
};

static void put_names(struct store *store, int64_t shift)
{
	assert_int_equal(store_put_module(store, &(struct module_row){ 1 + shift, "/lib/a.so", "0102" }), 0);
	assert_int_equal(store_put_module(store, &(struct module_row){ 2 + shift, "/lib/unused.so", NULL }), 0);
	assert_int_equal(store_put_function(store, &(struct function_row){ .function = 1 + shift,
									   .name = "main",
									   .kind = FRAME_PYTHON,
									   .file = "x.py",
									   .first_line = 3 }),
			 0);
	assert_int_equal(store_put_function(store, &(struct function_row){ .function = 2 + shift,
									   .name = "inner",
									   .kind = FRAME_NATIVE,
									   .module = 1 + shift }),
			 0);
	assert_int_equal(store_put_function(store, &(struct function_row){ .function = 3 + shift,
									   .name = "nobody calls it",
									   .kind = FRAME_NATIVE,
									   .module = 2 + shift }),
			 0);
}

/* A Python function that calls a native function, which was inlined twice; and an unresolved address. */
static void put_tree(struct store *store, int64_t shift)
{
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 1 + shift,
								     .kind = FRAME_PYTHON,
								     .function = 1 + shift,
								     .line = 5,
								     .has_address = true,
								     .address = 8 }),
			 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 2 + shift,
								     .kind = FRAME_NATIVE,
								     .function = 2 + shift,
								     .module = 1 + shift,
								     .has_address = true,
								     .address = 16,
								     .inlined_into = FIRST_INLINED + shift }),
			 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = 3 + shift, .kind = FRAME_NATIVE }), 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = FIRST_INLINED + shift,
								     .kind = FRAME_NATIVE,
								     .function = 2 + shift,
								     .module = 1 + shift,
								     .inlined_into = FIRST_INLINED + 1 + shift }),
			 0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = FIRST_INLINED + 1 + shift,
								     .kind = FRAME_NATIVE,
								     .function = 2 + shift,
								     .module = 1 + shift,
								     .line = 7 }),
			 0);
	assert_int_equal(store_put_stack(store, &(struct stack_row){ 1 + shift, 0, 1 + shift, 0 }), 0);
	assert_int_equal(store_put_stack(store, &(struct stack_row){ 2 + shift, 1 + shift, 2 + shift, 1 }), 0);
	assert_int_equal(store_put_stack(store, &(struct stack_row){ 3 + shift, 1 + shift, 3 + shift, 1 }), 0);
	assert_int_equal(store_put_stack(store, &(struct stack_row){ 4 + shift, 0, 2 + shift, 0 }),
			 0); /* no sample leads to it */
}

static void put_sampled(struct store *store, const struct made *made)
{
	uint64_t start_ns = (STARTED + made->at_s) * SECOND;

	assert_int_equal(store_put_process(store, &(struct process_row){ .pid = made->pid,
									 .parent_pid = 1,
									 .name = "python3",
									 .command = made->command,
									 .started_ns = start_ns }),
			 0);
	assert_int_equal(store_put_thread(store, &(struct thread_row){ .pid = made->pid,
								       .tid = made->pid + 1,
								       .name = "worker",
								       .started_ns = start_ns }),
			 0);
	for (unsigned i = 0; i < 6; i++) {
		int64_t stack = i % 3 == 2 ? 0 : 2 + i % 3 + made->shift;

		assert_int_equal(store_put_sample(store, &(struct sample_row){ .time_ns = start_ns + i * SECOND / 7,
									       .pid = made->pid,
									       .tid = made->pid + 1,
									       .cpu = i,
									       .weight = 100 + i,
									       .verdict = VERDICT_EXACT,
									       .end = STACK_COMPLETE,
									       .stack = stack,
									       .gil = (enum answer)(i % 3),
									       .gc = ANSWER_NO }),
				 0);
		assert_int_equal(
			store_put_total(store, &(struct total_row){ made->pid, made->pid + 1, stack, 1, 100 + i }), 0);
	}
}

static void make(const char *path, const struct made *made)
{
	struct store *store = NULL;
	uint64_t start_ns = (STARTED + made->at_s) * SECOND;

	assert_int_equal(store_create(path, NULL, &store), 0);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_put_run(store, &(struct run_row){ .started_ns = start_ns,
								 .command = made->command,
								 .mode = made->mode ? made->mode : "cpu",
								 .stack_source = "bpf",
								 .host = made->host,
								 .kernel = "6.1",
								 .probing = "0.1",
								 .pid = made->pid,
								 .hz = 99,
								 .cpus = 4 }),
			 0);
	put_names(store, made->shift);
	put_tree(store, made->shift);
	put_sampled(store, made);
	assert_int_equal(store_put_evaluation_place(store, &(struct evaluation_place_row){ .module = 1 + made->shift,
											   .address = 5,
											   .holds = "anchor",
											   .below_cfa = 16,
											   .agreed = 3,
											   .tries = 3 }),
			 0);
	assert_int_equal(store_put_pause(store, &(struct pause_row){ start_ns + 1, start_ns + 2 * SECOND }), 0);
	assert_int_equal(store_put_counter(store, "samples", 6), 0);
	assert_int_equal(store_put_counter(store, "lost", 2), 0);
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(store_finish(store, start_ns + 9 * SECOND), 0);
}

static int copy(const char *const *paths, size_t n, const char *to, bool keep_all, struct copy_result *ret)
{
	const struct copy_options options = { .keep_all = keep_all };
	sqlite3 *sources[4] = { NULL };
	int r;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(store_open_reader(paths[i], &sources[i]), 0);
	r = copy_recordings(sources, n, to, &options, ret);
	for (size_t i = 0; i < n; i++)
		sqlite3_close(sources[i]);
	return r;
}

static void fail_with(void *data, const char *sentence)
{
	(void)data;
	fail_msg("%s", sentence);
}

static void expect_sound(const char *path)
{
	struct check_result result;
	sqlite3 *db = NULL;

	assert_int_equal(store_open_reader(path, &db), 0);
	assert_int_equal(check_recording(db, fail_with, NULL, &result), 0);
	assert_true(result.is_verified);
	sqlite3_close(db);
}

/* Samples with the names of their stacks, as a reader of the recording sees them. */
static const char *const sampled_sql =
	"WITH RECURSIVE path(leaf, stack, names) AS (SELECT stack, stack, '' FROM stack UNION ALL"
	" SELECT leaf, s.parent, coalesce(f.name, '?') || ifnull(f.line, '') || ';' || names FROM path JOIN stack AS s USING(stack)"
	" JOIN named_frame AS f USING(frame) WHERE path.stack IS NOT NULL)"
	" SELECT group_concat(printf('%.6f %d %d %d %s %s', timestamp, pid, tid, weight, names, quote(gil)), char(10)) FROM"
	" (SELECT * FROM sample AS s LEFT JOIN path AS p ON p.leaf = s.stack AND p.stack IS NULL ORDER BY s.rowid)";

static void test_compact(void **state)
{
	const struct names names = names_in(*state);
	const char *const path = names.a;
	struct copy_result result;
	char before[4096];

	make(path, &(struct made){ "here", "python3 a.py", NULL, 42, 0, 100 });
	snprintf(before, sizeof before, "%s", answer(path, sampled_sql));
	change(path, "CREATE TABLE mine(x, y); INSERT INTO mine VALUES(1, x'00ff'), ('two', NULL);"
		     " CREATE VIEW seen AS SELECT x FROM mine");
	assert_int_equal(copy(&path, 1, names.out, true, &result), 0);
	expect_sound(names.out);
	assert_int_equal(result.n_samples, 6);
	assert_string_equal(answer(names.out, sampled_sql), before);
	/* Rows without samples are gone, inlined frames keep their range, and foreign tables remain. */
	assert_string_equal(answer(names.out,
				   "SELECT count(*) FROM stack; SELECT count(*) FROM function;"
				   " SELECT path FROM module; SELECT count(*), sum(frame >= 1 << 32) FROM frame"),
			    "3\n2\n/lib/a.so\n5|2");
	assert_string_equal(answer(names.out, "SELECT x, hex(y) FROM mine; SELECT count(*) FROM seen"),
			    "1|00FF\ntwo|\n2");
	assert_string_equal(
		answer(names.out,
		       "SELECT clean, ended - started FROM run; SELECT count(*) FROM pause;"
		       " SELECT tries FROM anchor_location;"
		       " SELECT count(*) FROM sqlite_schema WHERE name LIKE '%copy%' OR name = 'run_process'"),
		"1|9.0\n1\n3\n0");
}

static void test_two_parts_of_one_process(void **state)
{
	const struct names names = names_in(*state);
	const char *const paths[] = { names.a, names.b };
	const char *out = names.out;
	struct copy_result result;

	make(paths[0], &(struct made){ "here", "python3 a.py", NULL, 42, 10, 0 });
	make(paths[1], &(struct made){ "here", "python3 a.py", NULL, 42, 0, 50 });
	assert_int_equal(copy(paths, 2, out, false, &result), 0);
	assert_int_equal(result.n_moved, 0);
	expect_sound(out);
	assert_string_equal(
		answer(out, "SELECT count(*), min(pid), max(pid) FROM process; SELECT count(*) FROM thread"),
		"1|42|42\n1");
	/* Equal rows are merged, except unresolved addresses. */
	assert_string_equal(answer(out, "SELECT count(*) FROM module; SELECT count(*) FROM function;"
					" SELECT count(*) FROM frame; SELECT count(*) FROM stack"),
			    "1\n2\n6\n4");
	assert_string_equal(answer(out, "SELECT run, pid, was FROM run_process; SELECT run, started FROM run"),
			    "1|42|42\n2|42|42\n1|1700000010.0\n2|1700000000.0");
	assert_string_equal(
		answer(out,
		       "SELECT count(*), count(DISTINCT timestamp) FROM sample;"
		       " SELECT sum(later < earlier) FROM (SELECT timestamp AS later, lag(timestamp) OVER (ORDER BY"
		       " rowid) AS earlier FROM sample); SELECT value FROM counter WHERE name IN ('lost', 'samples')"),
		"12|12\n0\n4\n12");
}

static void test_two_processes_of_one_number(void **state)
{
	const struct names names = names_in(*state);
	const char *const paths[] = { names.a, names.b, names.c };
	const char *out = names.out;
	struct copy_result result;

	make(paths[0], &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
	make(paths[1], &(struct made){ "there", "python3 a.py", NULL, 42, 0, 0 });
	make(paths[2], &(struct made){ "here", "python3 b.py", NULL, 42, 0, 7 });
	assert_int_equal(copy(paths, 3, out, false, &result), 0);
	expect_sound(out);
	assert_string_equal(answer(out, "SELECT run, pid, was FROM run_process ORDER BY 1"),
			    "1|42|42\n2|10000042|42\n3|20000042|42");
	assert_string_equal(answer(out, "SELECT pid, tid, count(*) FROM sample GROUP BY 1, 2"),
			    "42|43|6\n10000042|10000043|6\n20000042|20000043|6");
	assert_string_equal(
		answer(out, "SELECT count(*) FROM thread NATURAL JOIN (SELECT DISTINCT pid, tid FROM sample)"), "3");
	/* A merged recording can be merged again. */
	assert_int_equal(copy((const char *const[]){ out, paths[1] }, 2, names.again, false, &result), 0);
	expect_sound(names.again);
	assert_string_equal(answer(names.again, "SELECT run, pid, was FROM run_process ORDER BY 1"),
			    "1|42|42\n2|10000042|42\n3|20000042|42\n4|10000042|42");
}

/* The clock of the second source's machine is half a second ahead: its samples come first. */
static void test_clocks_are_aligned(void **state)
{
	const struct names names = names_in(*state);
	const char *const paths[] = { names.a, names.b };
	const struct copy_clock clocks[] = { { 0 }, { true, SECOND / 2, SECOND / 1000 } };
	const struct copy_options options = { .clocks = clocks };
	struct copy_result result;
	sqlite3 *sources[2];

	make(paths[0], &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
	make(paths[1], &(struct made){ "there", "python3 a.py", NULL, 43, 0, 0 });
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(store_open_reader(paths[i], &sources[i]), 0);
	assert_int_equal(copy_recordings(sources, 2, names.out, &options, &result), 0);
	for (size_t i = 0; i < 2; i++)
		sqlite3_close(sources[i]);
	expect_sound(names.out);
	assert_string_equal(
		answer(names.out,
		       "SELECT host, round(min(timestamp) - (SELECT started FROM run WHERE host = 'here'), 3), pid"
		       " FROM sample GROUP BY host ORDER BY 2;"
		       " SELECT host, clock_offset, clock_error, started - (SELECT started FROM run WHERE host = 'here') FROM run;"
		       " SELECT host, started - (SELECT min(started) FROM process), rank FROM process ORDER BY pid;"
		       " SELECT host, started - (SELECT min(started) FROM thread), rank FROM thread JOIN process USING (pid,"
		       " started) ORDER BY pid; SELECT sum(later < earlier) FROM (SELECT timestamp AS later, lag(timestamp)"
		       " OVER (ORDER BY rowid) AS earlier FROM sample)"),
		"there|-0.5|43\nhere|0.0|42\nhere|||0.0\nthere|0.5|0.001|-0.5\nhere|0.5|\nthere|0.0|\nhere|0.5|\nthere|0.0|\n0");
}

static void put_rank(const char *path, pid_t pid, int64_t rank)
{
	struct rank_identity identity = { RANK_OF_WORKER, rank, rank % 2, 4, "none:1", "" };
	struct process_row row = { .pid = pid,
				   .name = "python3",
				   .command = "python3 a.py",
				   .started_ns = STARTED * SECOND,
				   .rank = &identity };
	struct store *store = NULL;

	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_put_process(store, &row), 0);
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(store_checkpoint(store), 0);
	store_close(store);
}

/* Those of a file without columns for them are unknown, and its host is that of its run. */
static void test_ranks_are_kept(void **state)
{
	const struct names names = names_in(*state);
	const char *const paths[] = { names.a, names.b, names.c };
	struct copy_result result;

	make(paths[0], &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
	make(paths[1], &(struct made){ "there", "python3 a.py", NULL, 42, 0, 0 });
	make(paths[2], &(struct made){ "old", "python3 a.py", NULL, 42, 0, 7 });
	put_rank(paths[0], 42, 0);
	put_rank(paths[1], 42, 3);
	change(paths[2],
	       "DROP TABLE process; CREATE TABLE process(pid INTEGER PRIMARY KEY, parent_pid INTEGER,"
	       " name TEXT NOT NULL, command TEXT NOT NULL, python TEXT, started REAL NOT NULL, ended REAL);"
	       " INSERT INTO process(pid, parent_pid, name, command, python, started, ended) VALUES(42, 1, 'python3', 'python3 a.py', NULL, 1.5, NULL)");
	assert_string_equal(answer(paths[2], "SELECT host, rank, count(*) FROM sample GROUP BY 1, 2"), "old||6");
	assert_int_equal(copy(paths, 3, names.out, false, &result), 0);
	expect_sound(names.out);
	assert_string_equal(answer(names.out, "SELECT host, rank, local_rank, count(*) FROM sample GROUP BY 1, 2, 3"),
			    "here|0|0|6\nold|||6\nthere|3|1|6");
	assert_string_equal(answer(names.out, "SELECT host, rank, world_size, job FROM process ORDER BY rank"),
			    "old|||\nhere|0|4|none:1\nthere|3|4|none:1");
}

static void test_what_cannot_be_added_up(void **state)
{
	const struct names names = names_in(*state);
	const char *const paths[] = { names.a, names.b };
	struct copy_result result;

	make(paths[0], &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
	make(paths[1], &(struct made){ "here", "python3 a.py", "wall", 43, 0, 0 });
	assert_int_equal(copy(paths, 2, names.out, false, &result), -EDOM);
	assert_int_equal(result.which, 1);
	assert_non_null(strstr(result.why, "wall"));
	assert_false(exists(names.out));
}

static void count(void *data, const char *sentence)
{
	(void)sentence;
	++*(unsigned *)data;
}

static unsigned count_wrong(const char *path, bool *ret_is_verified)
{
	struct check_result result;
	unsigned n = 0;
	sqlite3 *db = NULL;

	assert_int_equal(store_open_reader(path, &db), 0);
	assert_int_equal(check_recording(db, count, &n, &result), 0);
	sqlite3_close(db);
	*ret_is_verified = result.is_verified;
	return n;
}

/* Each statement damages one thing. The checksum detects all of them; most also have a specific message. */
static void test_what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *sql;
		unsigned n_least; /* sentences */
	} cases[] = {
		{ "UPDATE function SET name = 'other'", 1 },
		{ "UPDATE sample SET cpu = 7 WHERE rowid = 3", 1 },
		{ "DELETE FROM sample WHERE rowid = 4", 3 },
		{ "UPDATE sample SET verdict = 'exakt' WHERE rowid = 1", 2 },
		{ "UPDATE sample SET stack = 99 WHERE rowid = 1", 3 },
		{ "UPDATE stack SET frame = 99 WHERE stack = 2", 2 },
		{ "UPDATE stack SET parent = 99 WHERE stack = 2", 2 },
		{ "UPDATE stack SET depth = 5 WHERE stack = 2", 2 },
		{ "UPDATE frame SET function = 99 WHERE frame = 1", 2 },
		{ "UPDATE frame SET inlined_into = 99 WHERE frame = 2", 2 },
		{ "UPDATE function SET module = 99 WHERE function = 2", 2 },
		{ "UPDATE stack_total SET samples = samples + 1", 2 },
		{ "DELETE FROM run", 2 },
	};
	const struct folder *f = *state;
	bool is_verified;

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		remove(f->file);
		make(f->file, &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
		if (!change(f->file, cases[i].sql))
			continue;
		if (count_wrong(f->file, &is_verified) < cases[i].n_least || is_verified)
			fail_msg("%s: not seen", cases[i].sql);
	}
}

static void test_damage_is_not_copied(void **state)
{
	static const char *const cases[] = {
		"UPDATE stack SET parent = 3 WHERE stack = 2; UPDATE stack SET parent = 2 WHERE stack = 3",
		"UPDATE stack SET frame = 99 WHERE stack = 2",
		"UPDATE frame SET inlined_into = frame WHERE frame = 2",
		"UPDATE sample SET stack = 99 WHERE rowid = 1",
		"UPDATE sample SET verdict = 'exakt' WHERE rowid = 1",
		"UPDATE stack_total SET stack = 99 WHERE stack = 2",
		"UPDATE module SET module = -5 WHERE module = 1",
	};
	const struct names names = names_in(*state);
	const char *const path = names.a;
	struct copy_result result;

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		remove(path);
		remove(names.out);
		make(path, &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
		if (!change(path, cases[i]))
			continue;
		if (copy(&path, 1, names.out, true, &result) != -EBADMSG || result.why[0] == '\0')
			fail_msg("%s: not seen", cases[i]);
	}
}

static void change_a_name(const char *path, bool settles)
{
	struct store *store = NULL;

	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_name_frame(store, 1, 1, 77, 0), 0);
	assert_int_equal(store_commit(store), 0);
	if (settles)
		assert_int_equal(store_checkpoint(store), 0);
	store_close(store);
}

/* Our own changes compute the checksum again; a process that is killed meanwhile leaves none, never a wrong one. */
static void test_changes_of_ours(void **state)
{
	const struct folder *f = *state;
	bool is_verified = false;

	make(f->file, &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
	change_a_name(f->file, true);
	assert_int_equal(count_wrong(f->file, &is_verified), 0);
	assert_true(is_verified);
	change_a_name(f->file, false);
	assert_int_equal(count_wrong(f->file, &is_verified), 0);
	assert_false(is_verified);
}

static void test_about(void **state)
{
	const struct folder *f = *state;
	struct store *store;
	struct about about;
	sqlite3 *db = NULL;

	make(f->file, &(struct made){ "here", "python3 a.py", NULL, 42, 0, 0 });
	assert_false(store_is_written(f->file));
	assert_int_equal(store_open_reader(f->file, &db), 0);
	assert_int_equal(about_read(db, f->file, false, &about), 0);
	sqlite3_close(db);
	assert_int_equal(about.n_runs, 1);
	assert_string_equal(about.runs[0].command, "python3 a.py");
	assert_string_equal(about.runs[0].python, "");
	assert_true(about.runs[0].clean);
	assert_int_equal(about.n_samples, 6);
	assert_int_equal(about.n_lost, 2);
	assert_int_equal(about.n_dropped, -1);
	assert_true(about.first == STARTED && about.last > about.first);
	assert_true(!about.has_parts || about.part_bytes[PART_SAMPLES] >= STORE_PAGE_BYTES);
	about_done(&about);
	store = new_store(with(f->file, ".live"));
	assert_true(store_is_written(with(f->file, ".live")));
	store_close(store);
	assert_false(store_is_written(with(f->file, ".live")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_compact),
		FOLDER_TEST(test_two_parts_of_one_process),
		FOLDER_TEST(test_two_processes_of_one_number),
		FOLDER_TEST(test_clocks_are_aligned),
		FOLDER_TEST(test_ranks_are_kept),
		FOLDER_TEST(test_what_cannot_be_added_up),
		FOLDER_TEST(test_what_is_wrong_is_said),
		FOLDER_TEST(test_damage_is_not_copied),
		FOLDER_TEST(test_changes_of_ours),
		FOLDER_TEST(test_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
