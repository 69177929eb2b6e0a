/* SPDX-License-Identifier: MIT */
/* test_series.c - the table `sample` against a plain table of the same rows, with the same queries of both. */
#include "base/util.h"
#include "src/store/series_private.h"
#include "tests/unit/store_fixture.h"

#define SECOND UINT64_C(1000000000)
#define START (1700000000u * SECOND)

enum { N_ROWS = 3 * BLOCK_ROWS + 700, N_QUESTIONS = 500 };

static uint64_t seed = 11;

static unsigned below(unsigned limit)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (unsigned)(seed >> 33) % limit;
}

static struct sample_row made_row(size_t i)
{
	struct sample_row row = {
		.time_ns = START + i * 10000000 + below(1000),
		.pid = 42 + (int)below(2),
		.cpu = below(4),
		.weight = below(1000),
		.verdict = (enum verdict)below(VERDICT_N),
		.end = (enum stack_end)below(STACK_N_ENDS),
		.stack = below(100),
		.gil = (enum answer)below(3),
		.gc = (enum answer)below(3),
		.state = (enum thread_state)below(STATE_N),
	};

	/* Some threads start late, and a wait is reported long after it began. */
	row.tid = (int)below(i > 2 * BLOCK_ROWS ? 6 : 3);
	if (below(500) == 0)
		row.time_ns = START + below(1000) * SECOND / 100;
	return row;
}

/* Batches of any size, some rolled back. */
static void put_rows(struct store *store, const struct sample_row *rows, size_t n)
{
	for (size_t at = 0, end; at < n; at = end) {
		size_t n_more = 1 + below(at < BLOCK_ROWS ? 400 : 4000);
		bool is_lost = below(8) == 0;

		end = MIN(n, at + n_more);
		assert_int_equal(store_begin(store), 0);
		for (size_t i = at; i < end; i++)
			assert_int_equal(store_put_sample(store, &rows[i]), 0);
		if (is_lost) {
			store_rollback(store);
			end = at;
		} else {
			assert_int_equal(store_commit(store), 0);
		}
	}
}

static void bind_word(sqlite3_stmt *put, int column, const char *word)
{
	if (word)
		sqlite3_bind_text(put, column, word, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(put, column);
}

static void bind_answer(sqlite3_stmt *put, int column, enum answer answer)
{
	if (answer == ANSWER_UNKNOWN)
		sqlite3_bind_null(put, column);
	else
		sqlite3_bind_int(put, column, answer == ANSWER_YES);
}

static void put_plain(sqlite3_stmt *put, const struct sample_row *row)
{
	sqlite3_bind_double(put, 1, store_seconds(row->time_ns));
	sqlite3_bind_int(put, 2, row->pid);
	sqlite3_bind_int(put, 3, row->tid);
	sqlite3_bind_int(put, 4, (int)row->cpu);
	sqlite3_bind_int64(put, 5, (int64_t)row->weight);
	bind_word(put, 6, verdict_name(row->verdict));
	bind_word(put, 7, stack_end_name(row->end));
	sqlite3_bind_null(put, 8);
	if (row->stack > 0)
		sqlite3_bind_int64(put, 8, row->stack);
	bind_answer(put, 9, row->gil);
	bind_answer(put, 10, row->gc);
	bind_word(put, 11, thread_state_name(row->state));
	sqlite3_bind_int(put, 12, row->state > STATE_RUNNABLE);
	assert_int_equal(sqlite3_step(put), SQLITE_DONE);
	sqlite3_reset(put);
}

/* The file, and beside it in memory the same rows as the table `plain`. */
static sqlite3 *open_both(const char *path, const struct sample_row *rows, size_t n)
{
	sqlite3_stmt *put = NULL;
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(series_register(db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "ATTACH ':memory:' AS m; CREATE TABLE m.plain(id INTEGER PRIMARY KEY, timestamp REAL,"
			     " pid INTEGER, tid INTEGER, cpu INTEGER, weight INTEGER, verdict TEXT, stack_end TEXT,"
			     " stack INTEGER, gil INTEGER, gc INTEGER, state TEXT, idle INTEGER, event TEXT); BEGIN",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO plain VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,'cpu-clock')",
					    -1, &put, NULL),
			 SQLITE_OK);
	for (size_t i = 0; i < n; i++)
		put_plain(put, &rows[i]);
	sqlite3_finalize(put);
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void ask_one(sqlite3 *db, const char *select, const char *table, const char *rest, char *to, size_t n_bytes)
{
	char sql[2048];
	char *error = NULL;

	to[0] = '\0';
	assert_true(snprintf(sql, sizeof sql, select, table, rest) < (int)sizeof sql);
	if (sqlite3_exec(db, sql, add_row, to, &error) != SQLITE_OK)
		snprintf(to, n_bytes, "%s", error);
	sqlite3_free(error);
}

static void ask_both(sqlite3 *db, const char *select, const char *rest)
{
	static char ours[65536], theirs[65536];

	ask_one(db, select, "sample", rest, ours, sizeof ours);
	ask_one(db, select, "plain", rest, theirs, sizeof theirs);
	if (strcmp(ours, theirs) != 0)
		fail_msg("%s%s\nsample: %s\nplain:  %s", select, rest, ours, theirs);
}

/* A condition, with a number that is now and then on the edge, beside it, or of a strange type. */
static void add_condition(char *to, size_t n_bytes)
{
	static const char *const forms[] = {
		"timestamp >= %d + 1.7e9",
		"timestamp < %d + 1.7e9",
		"timestamp > 1.7e9 + %d",
		"timestamp <= 1.7e9 + %d",
		"timestamp = 1.7e9 + %d",
		"timestamp = (SELECT timestamp FROM plain WHERE id = %d)",
		"timestamp > (SELECT timestamp FROM plain WHERE id = %d * 7)",
		"timestamp < (SELECT timestamp FROM plain WHERE id = %d * 7)",
		"timestamp >= (SELECT timestamp FROM plain WHERE id = %d * 7)",
		"timestamp <= (SELECT timestamp FROM plain WHERE id = %d * 7)",
		"timestamp > 1700000000 + %d",
		"timestamp < '1.7e9 ' AND %d",
		"timestamp >= CAST(1.7e9 + %d AS TEXT)",
		"timestamp = 'x%d'",
		"timestamp < 'text%d'",
		"timestamp <= x'31' AND %d",
		"timestamp >= x'31' AND %d",
		"timestamp > -9e999 * %d",
		"timestamp < 9e999 * %d",
		"timestamp >= 9e999 * %d",
		"timestamp <= 9223372036854775807 - %d",
		"timestamp < -%d",
		"timestamp >= -%d",
		"timestamp IS NULL AND %d",
		"timestamp IS NOT NULL AND %d",
		"timestamp = NULL + %d",
		"timestamp IN (1.7e9 + %d, 1.7e9)",
		"(timestamp, tid) > (1.7e9 + %d, 3)",
		"(timestamp, tid) <= (1.7e9 + %d, 3)",
		"timestamp <> 1.7e9 + %d",
		"timestamp BETWEEN 1.7e9 + %1$d / 2 AND 1.7e9 + %1$d",
		"timestamp > 'text%d'",
		"timestamp < NULL + %d",
		"rowid = %d * 50",
		"rowid > %d * 50",
		"rowid <= %d * 50.5",
		"rowid < -%d",
		"rowid IN (1, %1$d, %1$d * 90)",
		"pid = 42 + %d %% 3",
		"pid = '42' AND %d",
		"tid = %d %% 7",
		"tid IS %d %% 7",
		"tid IN (1, %d %% 7, 5)",
		"tid = 2.0 + 0 * %d",
		"tid = '2' AND %d",
		"tid = ' 2.0' AND %d",
		"tid = '2x%d'",
		"tid = 2.5 + %d",
		"tid = x'32' AND %d",
		"tid = -1 - %d",
		"pid = NULL + %d",
		"pid = 9223372036854775807 - %d",
		"tid = 9e999 * %d",
		"tid = 1 AND tid = %d %% 3",
		"tid > %d %% 7",
		"stack = %d %% 100",
		"stack IS NULL AND %d",
		"stack = 0 + 0 * %d",
		"gil = %d %% 2",
		"gil IS NULL AND %d",
		"gc IS %d %% 2",
		"idle = %d %% 2",
		"idle = -1 - %d",
		"state = 'lock' AND %d",
		"state IS NULL AND %d",
		"state = 3 + %d",
		"verdict = 'exact' AND %d",
		"verdict = 'EXACT' COLLATE NOCASE AND %d",
		"stack_end = 'complete' AND %d",
		"event = 'cpu-clock' AND %d",
		"event = 'other' AND %d",
		"cpu = %d %% 4",
		"(tid = 1 OR rowid < %d)",
		"weight > %d",
	};
	size_t used = strlen(to);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	used += (size_t)snprintf(to + used, n_bytes - used, "%s", used > 0 ? " AND " : "");
	snprintf(to + used, n_bytes - used, forms[below(sizeof forms / sizeof forms[0])], (int)below(500));
#pragma GCC diagnostic pop
}

static void test_same_answers_as_a_plain_table(void **state)
{
	const struct folder *f = *state;
	struct sample_row *rows = calloc(N_ROWS, sizeof *rows);
	struct store *store = NULL;
	sqlite3 *db;

	assert_non_null(rows);
	for (size_t i = 0; i < N_ROWS; i++)
		rows[i] = made_row(i);
	assert_int_equal(store_create(f->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	put_rows(store, rows, N_ROWS);
	finish(store);
	db = open_both(f->file, rows, N_ROWS);
	ask_both(
		db,
		"SELECT count(*), sum(h %% 1000003 * h) FROM (SELECT sum(rowid * weight) AS h FROM %s%s GROUP BY pid, tid, cpu, verdict,"
		" stack_end, gil, gc, state, event, idle)",
		"");
	for (unsigned i = 0; i < N_QUESTIONS; i++) {
		char where[1024] = "";

		for (unsigned n = 1 + below(3); n > 0; n--)
			add_condition(where, sizeof where);
		ask_both(
			db,
			"SELECT count(*), sum(rowid), sum(weight), min(timestamp), max(stack), min(state) FROM %s WHERE %s",
			where);
		ask_both(db,
			 below(2) ? "SELECT rowid, timestamp, tid FROM %s WHERE %s ORDER BY rowid DESC LIMIT 20"
				  : "SELECT rowid, stack FROM %s WHERE %s ORDER BY rowid LIMIT 20",
			 where);
	}
	sqlite3_close(db);
	free(rows);
}

static void test_joins(void **state)
{
	const struct folder *f = *state;
	struct sample_row rows[900];
	struct store *store = NULL;
	sqlite3 *db;

	for (size_t i = 0; i < 900; i++)
		rows[i] = made_row(i);
	assert_int_equal(store_create(f->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	put_rows(store, rows, 900);
	db = open_both(f->file, rows, 900);
	ask_both(db, "SELECT count(*), sum(s.rowid) FROM %s AS s JOIN plain AS p ON p.id = s.rowid%s AND p.tid = s.tid",
		 "");
	ask_both(db, "SELECT count(*), sum(s.rowid) FROM plain AS p LEFT JOIN %s AS s ON s.rowid = p.id + 400%s", "");
	ask_both(
		db,
		"SELECT count(*), sum(s.rowid) FROM plain AS p JOIN %s AS s ON s.timestamp BETWEEN p.timestamp AND p.timestamp + 0.01%s"
		" WHERE p.id < 30",
		"");
	ask_both(db, "SELECT count(*) FROM %1$s AS a JOIN %1$s AS b USING (pid, tid, stack)%2$s", "");
	sqlite3_close(db);
	store_close(store);
}

static void test_totals(void **state)
{
	const struct folder *f = *state;
	struct sample_row rows[3000];
	struct store *store = NULL;
	static char ours[65536], theirs[65536];
	static const struct {
		const char *ours, *theirs;
	} questions[] = {
		{ "SELECT sum(samples), sum(weight) FROM %s%s", "SELECT count(*), sum(weight) FROM %s%s" },
		{ "SELECT pid, tid, stack, sum(samples), sum(weight) FROM %s%s GROUP BY 1, 2, 3",
		  "SELECT pid, tid, stack, count(*), sum(weight) FROM %s%s GROUP BY 1, 2, 3" },
		{ "SELECT state, gil, cpu, sum(samples) FROM %s%s GROUP BY 1, 2, 3",
		  "SELECT state, gil, cpu, count(*) FROM %s%s GROUP BY 1, 2, 3" },
		{ "SELECT verdict, stack_end, gc, samples FROM %s%s WHERE tid = 1 AND gil = 1 ORDER BY 1, 2, 3",
		  "SELECT verdict, stack_end, gc, count(*) FROM %s%s WHERE tid = 1 AND gil = 1 GROUP BY 1, 2, 3" },
		{ "SELECT stack, samples FROM %s(1700000003.5, 1700000011)%s WHERE pid = 42 ORDER BY 1",
		  "SELECT stack, count(*) FROM %s%s WHERE pid = 42 AND timestamp >= 1700000003.5 AND timestamp < 1700000011 GROUP BY 1" },
		{ "SELECT sum(t.samples) FROM plain AS p JOIN %s(p.timestamp, p.timestamp + 1) AS t%s WHERE p.id < 9",
		  "SELECT count(*) FROM plain AS p JOIN %s AS t ON t.timestamp >= p.timestamp AND t.timestamp < p.timestamp + 1%s"
		  " WHERE p.id < 9" },
		{ "SELECT sum(samples) FROM %s(NULL, 1700000003)%s",
		  "SELECT count(*) FROM %s%s WHERE timestamp < 1700000003" },
	};
	sqlite3 *db;

	for (size_t i = 0; i < 3000; i++)
		rows[i] = made_row(i);
	assert_int_equal(store_create(f->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	put_rows(store, rows, 3000);
	db = open_both(f->file, rows, 3000);
	for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
		ask_one(db, questions[i].ours, "sample_total", "", ours, sizeof ours);
		ask_one(db, questions[i].theirs, "plain", "", theirs, sizeof theirs);
		assert_string_equal(ours, theirs);
	}
	ask_one(db, "SELECT 1 FROM %s('yesterday')%s", "sample_total", "", ours, sizeof ours);
	assert_non_null(strstr(ours, "seconds since 1970"));
	sqlite3_close(db);
	store_close(store);
}

/* ---- The file's contents ---- */

static void test_pieces_become_blocks(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;

	assert_int_equal(store_create(f->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put_batch(store), 0);
	/* 300 rows: a piece was final after 300, which is more than 256. */
	assert_string_equal(stock_shell(f->file, "SELECT first, samples FROM sample_block"), "1|300");
	assert_int_equal(put_batch(store), 0);
	assert_string_equal(stock_shell(f->file, "SELECT first, samples FROM sample_block"), "1|300\n301|100");
	for (int i = 4; i < 90; i++)
		assert_int_equal(put_batch(store), 0);
	assert_string_equal(stock_shell(f->file, "SELECT first, samples FROM sample_block LIMIT 1"), "1|8192");
	assert_string_equal(stock_shell(f->file, "SELECT sum(samples), count(*) < 5 FROM sample_block"), "9000|1");
	finish(store);
	assert_string_equal(stock_shell(f->file, "SELECT first, samples FROM sample_block"), "1|8192\n8193|808");
	assert_string_equal(stock_shell(f->file, "SELECT hex(threads) FROM sample_block LIMIT 1"), "2A0000002B000000");
}

static void test_a_recording_goes_on_after_a_lost_batch(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(put_samples(store, 9000), 0); /* a full block among them */
	store_rollback(store);
	assert_int_equal(put_batch(store), 0);
	assert_string_equal(stock_shell(f->file, "SELECT first, samples FROM sample_block"), "1|100\n101|100");
	assert_string_equal(ask_samples(f->file, "SELECT min(rowid), max(rowid), count(*) FROM sample"), "1|200|200");
	finish(store);
}

static int64_t drop(struct store *store, int64_t max)
{
	int64_t n = -1;

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_oldest(store, max, UINT64_MAX, &n), 0);
	assert_int_equal(store_commit(store), 0);
	return n;
}

static void test_the_oldest_go_one_by_one(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;
	int64_t gone = 0, there = 0;

	assert_int_equal(store_create(f->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	for (int i = 0; i < 60; i++) {
		char expected[64];

		for (unsigned n = below(5); n > 0; n--) {
			assert_int_equal(put_batch(store), 0);
			there += BATCH_SAMPLES;
		}
		gone += drop(store, below(500) + 1);
		snprintf(expected, sizeof expected, "%d|%d", (int)(there - gone), (int)(gone + 1));
		if (there > gone)
			assert_string_equal(ask_samples(f->file, "SELECT count(*), min(rowid) FROM sample"), expected);
		assert_string_equal(
			ask_samples(f->file, "SELECT count(*) FROM sample WHERE block_error(1, x'') IS NULL"), "0");
	}
	finish(store);
	assert_int_equal(atoll(ask_samples(f->file, "SELECT count(*) FROM sample")), there - gone);
	assert_int_equal(atoll(ask_samples(f->file, "SELECT max(rowid) FROM sample")), there);
}

/* ---- Damage ---- */

static void test_a_damaged_block_is_named_and_avoided(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;

	assert_int_equal(store_create(f->file, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(put_batch(store), 0);
	finish(store);
	stock_shell(f->file,
		    "UPDATE sample_block SET data = CAST(substr(data, 1, 900) || x'00' || substr(data, 902) AS BLOB)"
		    " WHERE first = 8193");
	assert_string_equal(
		ask_samples(f->file, "SELECT count(*) FROM sample"),
		"block 8193 of sample_block is damaged, and with it the samples 8193 to 16384: ask for the others"
		" with 'WHERE rowid < 8193 OR rowid >= 16385'");
	assert_non_null(strstr(ask_samples(f->file, "SELECT sum(samples) FROM sample_total"), "block 8193"));
	assert_string_equal(ask_samples(f->file, "SELECT count(*), sum(tid) FROM sample WHERE rowid < 8193"),
			    "8192|352256");
	assert_string_equal(ask_samples(f->file, "SELECT count(*), sum(tid) FROM sample WHERE rowid >= 16385"),
			    "3616|155488");
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample WHERE rowid < 8193 OR rowid >= 16385"),
			    "11808");
	assert_string_equal(
		ask_samples(f->file, "SELECT sum(samples) FROM sample_block WHERE block_error(samples, data) IS NULL"),
		"11808");
	assert_string_equal(ask_samples(f->file, "SELECT first, block_error(samples, data) FROM sample_block"
						 " WHERE block_error(samples, data) IS NOT NULL"),
			    "8193|damaged");
	stock_shell(f->file, "UPDATE sample_block SET samples = 5 WHERE first = 1");
	assert_string_equal(ask_samples(f->file, "SELECT block_error(samples, data) FROM sample_block WHERE first = 1"),
			    "another number of samples");
	assert_non_null(strstr(ask_samples(f->file, "SELECT count(*) FROM sample WHERE rowid = 3"), "samples 1 to 5"));
	stock_shell(f->file, "UPDATE sample_block SET data = x'63' || substr(data, 2) WHERE first = 1");
	assert_non_null(strstr(ask_samples(f->file, "SELECT count(*) FROM sample WHERE rowid = 3"), "update probing"));
}

/* Numbers and bytes of a block may be anything; the sanitizers check the accesses. */
static void test_numbers_of_blocks_at_the_ends_of_their_range(void **state)
{
	static const char *const ends[] = { "-9223372036854775808",
					    "-1",
					    "0",
					    "1",
					    "9223372036854767615",
					    "9223372036854767616",
					    "9223372036854775806",
					    "9223372036854775807" };
	const struct sample_row row = { .time_ns = START, .pid = 1, .tid = 1 };
	const struct folder *f = *state;
	struct store *store = NULL;
	char sql[200];

	for (size_t i = 0; i < N_ELEMENTS(ends) * N_ELEMENTS(ends); i++) {
		const char *first = ends[i / N_ELEMENTS(ends)], *samples = ends[i % N_ELEMENTS(ends)];

		assert_int_equal(store_create(f->file, NULL, &store), 0);
		assert_int_equal(put_run(store), 0);
		assert_int_equal(put_batch(store), 0);
		finish(store);
		snprintf(sql, sizeof sql, "UPDATE sample_block SET first = %s, samples = %s, data = x'01'", first,
			 samples);
		stock_shell(f->file, sql);
		if (first[0] != '-' && first[0] != '0') {
			assert_non_null(strstr(ask_samples(f->file, "SELECT count(*) FROM sample"), "damaged"));
			assert_non_null(
				strstr(ask_samples(f->file, "SELECT sum(samples) FROM sample_total"), "damaged"));
			assert_non_null(
				strstr(ask_samples(f->file, "SELECT rowid FROM sample ORDER BY rowid DESC LIMIT 1"),
				       "damaged"));
		}
		assert_int_equal(store_open(f->file, &store), 0);
		assert_int_equal(store_begin(store), 0);
		if (strlen(first) >= 19)
			assert_int_equal(store_put_sample(store, &row), -EBADMSG);
		store_rollback(store);
		store_close(store);
	}
}

static void test_a_database_of_somebody_else(void **state)
{
	const struct folder *f = *state;

	stock_shell(f->file, "CREATE TABLE a(b)");
	assert_non_null(strstr(ask_samples(f->file, "SELECT count(*) FROM sample"), "this is not a recording"));
	assert_non_null(strstr(ask_samples(f->file, "SELECT count(*) FROM sample_total"), "this is not a recording"));
	stock_shell(f->file, "CREATE TABLE sample(a); INSERT INTO sample VALUES(5)");
	assert_string_equal(ask_samples(f->file, "SELECT a FROM sample"), "5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_same_answers_as_a_plain_table),
		FOLDER_TEST(test_joins),
		FOLDER_TEST(test_totals),
		FOLDER_TEST(test_pieces_become_blocks),
		FOLDER_TEST(test_a_recording_goes_on_after_a_lost_batch),
		FOLDER_TEST(test_the_oldest_go_one_by_one),
		FOLDER_TEST(test_a_damaged_block_is_named_and_avoided),
		FOLDER_TEST(test_numbers_of_blocks_at_the_ends_of_their_range),
		FOLDER_TEST(test_a_database_of_somebody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
