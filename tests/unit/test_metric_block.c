/* SPDX-License-Identifier: MIT */
/* Metrics in blocks: packed and unpacked they are the same; damaged blocks are refused; a reader sees each row once, wherever it is. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/metric_block.h"
#include "tests/unit/store_fixture.h"

static struct row_value integer(int64_t value)
{
	return (struct row_value){ .kind = ROW_INTEGER, .integer = value };
}

static struct row_value real(double value)
{
	return (struct row_value){ .kind = ROW_REAL, .real = value };
}

static struct row_value text(const char *value)
{
	return (struct row_value){ .kind = ROW_TEXT, .text = value, .n_text = strlen(value) };
}

static const struct row_value null = { .kind = ROW_NULL };

enum { N_COLUMNS = 4 };

static void assert_same(const struct row_value *wanted, const struct row_value *found)
{
	assert_int_equal(found->kind, wanted->kind);
	if (wanted->kind == ROW_TEXT) {
		assert_int_equal(found->n_text, wanted->n_text);
		assert_memory_equal(found->text, wanted->text, wanted->n_text);
	} else if (wanted->kind != ROW_NULL) {
		assert_memory_equal(&found->integer, &wanted->integer, sizeof wanted->integer);
	}
}

static void rows_come_back(void **state)
{
	const struct row_value values[][N_COLUMNS] = {
		{ integer(7), integer(100), real(0.5), text("a") },
		{ integer(8), integer(INT64_MIN), null, text("") },
		{ integer(7), integer(90), real(0.5), text("a") }, /* a counter that shrinks; the same texts */
		{ integer(8), integer(INT64_MAX), real(-0.0), text("a\0b") }, /* a difference that wraps around */
		{ integer(9), integer(1), real(0.0), null },                  /* a new process moves the others */
		{ integer(7), null, integer(3), text("another") },            /* another type: a row for itself */
		{ integer(8), integer(5), real(0.0), null },
		{ integer(7), integer(91), real((double)NAN), text("another") }, /* after NULL, and after an integer */
		{ integer(7), integer(91), real((double)NAN), text("another") },
	};
	const double times[] = { 1.5, 1.5, 2.5, 2.5, 3.25, 3.25, 3.25, 1e-300, 1e300 };
	struct metric_encoder encoder = { .n_columns = N_COLUMNS, .keys = 1 };
	struct metric_rows rows = { 0 };
	uint8_t *data;
	size_t n_bytes;

	(void)state;
	for (int round = 0; round < 2; round++) { /* the encoder and the reader are used again */
		for (size_t i = 0; i < N_ELEMENTS(values); i++)
			assert_int_equal(metric_encoder_put(&encoder, times[i], values[i]), 0);
		assert_true(encoder.first == 1e-300 && encoder.last == 1e300);
		assert_int_equal(metric_encoder_pack(&encoder, &data, &n_bytes), 0);
		assert_int_equal(metric_rows_open(&rows, data, n_bytes), 0);
		assert_int_equal(rows.n_rows, N_ELEMENTS(values));
		assert_int_equal(rows.n_columns, N_COLUMNS);
		for (size_t i = 0; i < N_ELEMENTS(values); i++) {
			assert_true(rows.timestamps[i] == times[i]);
			for (size_t j = 0; j < N_COLUMNS; j++)
				assert_same(&values[i][j], &rows.values[i * N_COLUMNS + j]);
		}
		free(data);
	}
	metric_rows_done(&rows);
	metric_encoder_done(&encoder);
}

static void what_no_block_may_have_is_refused(void **state)
{
	struct metric_encoder encoder = { .n_columns = 1, .keys = 1 };
	const struct row_value value = integer(1);
	uint8_t *data;
	size_t n_bytes;

	(void)state;
	assert_int_equal(metric_encoder_put(&encoder, 0, &value), -EINVAL);
	assert_int_equal(metric_encoder_put(&encoder, -1, &value), -EINVAL);
	assert_int_equal(metric_encoder_put(&encoder, (double)NAN, &value), -EINVAL);
	assert_int_equal(metric_encoder_put(&encoder, INFINITY, &value), -EINVAL);
	assert_int_equal(metric_encoder_pack(&encoder, &data, &n_bytes), -EINVAL); /* no rows */
	for (size_t i = 0; i < METRIC_BLOCK_ROWS; i++)
		assert_int_equal(metric_encoder_put(&encoder, 1, &value), 0);
	assert_int_equal(metric_encoder_put(&encoder, 1, &value), -E2BIG);
	metric_encoder_done(&encoder);
}

/* A block of row_block.h, with any values. */
static int open_made(uint64_t time, const struct row_value *values, size_t n_rows, size_t n)
{
	struct row_bytes bytes = { 0 };
	struct metric_rows rows = { 0 };
	uint8_t *data;
	size_t n_bytes;
	int r;

	for (size_t i = 0; i < n_rows; i++)
		assert_int_equal(row_put(&bytes, time, values + i * n, n), 0);
	assert_int_equal(row_block_pack(&bytes, &data, &n_bytes), 0);
	r = metric_rows_open(&rows, data, n_bytes);
	if (r < 0)
		assert_int_equal(rows.n_rows, 0);
	metric_rows_done(&rows);
	free(data);
	free(bytes.at);
	return r;
}

static void damaged_blocks_are_refused(void **state)
{
	const uint64_t one = UINT64_C(0x3ff0000000000000); /* 1.0 */
	const struct row_value good[] = { integer(0), text("a"), integer(1), integer(0) };
	const struct row_value far[] = { integer(0), text("a"), integer(2), integer(0) };
	const struct row_value back[] = { integer(0), text("a"), integer(-1), integer(0) };
	const struct row_value added[] = { integer(0), text("a"), integer(1), integer(5) };
	const struct row_value no_distance[] = { text("x"), text("a") };
	struct metric_encoder encoder = { .n_columns = N_COLUMNS };
	const struct row_value values[N_COLUMNS] = { integer(7), integer(100), real(0.5), text("a") };
	struct metric_rows rows = { 0 };
	uint8_t *data;
	size_t n_bytes;

	(void)state;
	assert_int_equal(open_made(one, good, 2, 2), 0);
	assert_int_equal(open_made(one, far, 2, 2), -EBADMSG);
	assert_int_equal(open_made(one, back, 2, 2), -EBADMSG);
	assert_int_equal(open_made(one, added, 2, 2), -EBADMSG);
	assert_int_equal(open_made(one, no_distance, 1, 2), -EBADMSG);
	assert_int_equal(open_made(0, good, 2, 2), -EBADMSG);
	assert_int_equal(open_made(UINT64_C(0x7ff0000000000000), good, 2, 2), -EBADMSG); /* infinity */
	assert_int_equal(open_made(UINT64_MAX, good, 2, 2), -EBADMSG);                   /* not a number */
	assert_int_equal(open_made(one, NULL, 1, 0), -EBADMSG);
	assert_int_equal(metric_encoder_put(&encoder, 1, values), 0);
	assert_int_equal(metric_encoder_pack(&encoder, &data, &n_bytes), 0);
	for (size_t i = 1; i < n_bytes; i++) {
		data[i] ^= 0x10;
		assert_int_equal(metric_rows_open(&rows, data, n_bytes), -EBADMSG);
		data[i] ^= 0x10;
	}
	data[0]++;
	assert_int_equal(metric_rows_open(&rows, data, n_bytes), -EPROTONOSUPPORT);
	free(data);
	metric_rows_done(&rows);
	metric_encoder_done(&encoder);
}

/* ---- Tables ---- */

enum { FIRST_S = 1000000, SECONDS = 3000, N_PIDS = 3 };

static int64_t user_ns_of(int64_t second, int64_t pid)
{
	return second * 10000000 * pid + second % 7 * 10000000;
}

static void put_process(struct store *store, int64_t second, int64_t pid)
{
	const struct catalogue_table *table = catalogue_find("main", "process_usage");
	struct metric_value values[METRIC_BLOCK_MAX_COLUMNS] = { 0 };

	for (size_t i = 0; i < table->n_columns; i++) {
		const char *name = table->columns[i].name;
		int64_t number = strcmp(name, "pid") == 0       ? pid
				 : strcmp(name, "rss") == 0     ? (100 + pid) << 20
				 : strcmp(name, "user_ns") == 0 ? user_ns_of(second, pid)
								: second / 60 * 4096;

		values[i] = (struct metric_value){ .type = METRIC_INTEGER, .integer = number };
		if (strcmp(name, "timestamp") == 0)
			values[i] = (struct metric_value){ .type = METRIC_REAL,
							   .real = FIRST_S + (double)second + 0.1 };
		if (strcmp(name, "swap") == 0)
			values[i].type = METRIC_NULL;
	}
	assert_int_equal(store_put_metric(store, "process_usage", values, table->n_columns), 0);
}

static struct store *start(const struct folder *folder)
{
	struct store *store;

	assert_int_equal(store_create(folder->file, NULL, &store), 0);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_put_run(store, &(struct run_row){ .started_ns = 1,
								 .command = "x",
								 .mode = "cpu",
								 .stack_source = "none",
								 .host = "h",
								 .kernel = "k",
								 .probing = "p",
								 .pid = 1 }),
			 0);
	assert_int_equal(store_commit(store), 0);
	return store;
}

static void put_seconds(struct store *store, int64_t from, int64_t to)
{
	for (int64_t second = from; second < to; second++) {
		assert_int_equal(store_begin(store), 0);
		for (int64_t pid = 1; pid <= N_PIDS; pid++)
			put_process(store, second, pid);
		assert_int_equal(store_commit(store), 0);
	}
}

static double number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *row;
	double found;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	found = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return found;
}

/* All rows from a second on are there, once each, with their values. */
static void check_rows(sqlite3 *db, int64_t from, int64_t to)
{
	const char *const sql =
		"SELECT count(*) FROM process_usage WHERE user_ns = (CAST(timestamp - 1000000.1 + 0.5 AS INTEGER)) * 10000000 * pid"
		" + (CAST(timestamp - 1000000.1 + 0.5 AS INTEGER)) % 7 * 10000000 AND rss = (100 + pid) << 20 AND swap IS NULL"
		" AND threads = CAST(timestamp - 1000000.1 + 0.5 AS INTEGER) / 60 * 4096";
	int64_t n = (to - from) * N_PIDS;

	assert_int_equal(number(db, "SELECT count(*) FROM process_usage"), n);
	assert_int_equal(number(db, "SELECT count(*) FROM (SELECT DISTINCT timestamp, pid FROM process_usage)"), n);
	assert_int_equal(number(db, sql), n);
	assert_int_equal(number(db, "SELECT count(*) FROM memory_usage WHERE rss_mb = 100 + pid"), n);
	assert_true(fabs(number(db, "SELECT min(timestamp) FROM process_usage") - (FIRST_S + (double)from + 0.1)) <
		    1e-6);
	assert_true(fabs(number(db, "SELECT max(timestamp) FROM process_usage") - (FIRST_S + (double)to - 0.9)) < 1e-6);
}

static void a_reader_sees_rows_of_blocks_and_plain_ones(void **state)
{
	struct folder *folder = *state;
	struct store *store = start(folder);
	sqlite3 *early, *db;
	double packed;

	put_seconds(store, 0, 100);
	assert_int_equal(store_open_reader(folder->file, &early), 0);
	check_rows(early, 0, 100);
	assert_int_equal(number(early, "SELECT count(*) FROM metric_block"), 0);
	put_seconds(store, 100, SECONDS);
	check_rows(early, 0, SECONDS); /* one that was opened before there were blocks */
	packed = number(early, "SELECT sum(rows) FROM metric_block");
	assert_in_range(packed, SECONDS * N_PIDS - METRIC_BLOCK_ROWS - 61 * N_PIDS, SECONDS * N_PIDS - 60 * N_PIDS);
	assert_int_equal(number(early, "SELECT count(*) FROM main.process_usage"), SECONDS * N_PIDS - packed);
	assert_int_equal(
		number(early,
		       "SELECT count(*) FROM process_usage WHERE timestamp >= 1000010.1 AND timestamp < 1000020.1"),
		10 * N_PIDS);
	assert_int_equal(number(early, "SELECT count(*) FROM process_usage WHERE timestamp > 1002990.0 AND pid = 2"),
			 10);
	assert_int_equal(number(early, "SELECT count(*) FROM process_usage WHERE timestamp < 'a text'"),
			 SECONDS * N_PIDS);
	sqlite3_close(early);

	assert_int_equal(store_finish(store, 2), 0);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	assert_int_equal(catalogue_register(db), SQLITE_OK);
	check_rows(db, 0, SECONDS);
	assert_int_equal(number(db, "SELECT sum(rows) FROM metric_block"), packed); /* too few are left for a block */
	assert_int_equal(
		number(db, "SELECT count(*) FROM metric_block WHERE metric_block_error(rows, data) IS NOT NULL"), 0);
	assert_int_equal(
		number(db, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'process_usage'"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'memory_usage'"),
			 1);
	/* 14 columns; plain they take 50 to 60 bytes */
	print_message("%.1f bytes a row\n", number(db, "SELECT total(length(data)) / sum(rows) FROM metric_block"));
	assert_true(number(db, "SELECT total(length(data)) / sum(rows) FROM metric_block") < 6);
	sqlite3_close(db);
}

static void old_blocks_are_dropped(void **state)
{
	struct folder *folder = *state;
	struct store *store = start(folder);
	bool is_dropped = false;
	double first, last;
	sqlite3 *db;

	put_seconds(store, 0, SECONDS);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	last = number(db, "SELECT min(last) FROM metric_block");
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_metrics_before(store, last), 0); /* its last row stays, and so the block */
	assert_int_equal(store_commit(store), 0);
	check_rows(db, 0, SECONDS);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_metrics_before(store, last + 1), 0);
	assert_int_equal(store_commit(store), 0);
	first = number(db, "SELECT min(timestamp) FROM process_usage");
	assert_true(first > last && first < last + 1.5);
	check_rows(db, (int64_t)(first - FIRST_S), SECONDS);

	/* until there is nothing left, as where a file has a limit */
	for (int i = 0; i < 200; i++) {
		assert_int_equal(store_begin(store), 0);
		assert_int_equal(store_drop_first_metrics(store, &is_dropped), 0);
		assert_int_equal(store_commit(store), 0);
		if (!is_dropped)
			break;
		assert_true(number(db, "SELECT min(timestamp) FROM process_usage") > first);
		first = number(db, "SELECT min(timestamp) FROM process_usage");
	}
	assert_false(is_dropped);
	assert_int_equal(number(db, "SELECT count(*) FROM metric_block"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM process_usage"), N_PIDS); /* of the last moment */
	sqlite3_close(db);
	store_close(store);
}

/* Drop rows from before a second, of blocks that begin before another one. */
static void cut(struct store *store, double limit, double kept)
{
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_metrics_before(store, FIRST_S + limit), 0);
	assert_int_equal(store_cut_metrics(store, FIRST_S + limit, FIRST_S + kept), 0);
}

static void blocks_are_cut(void **state)
{
	struct folder *folder = *state;
	struct store *store = start(folder);
	double n_blocks, second_block;
	sqlite3 *db;

	put_seconds(store, 0, SECONDS);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	n_blocks = number(db, "SELECT count(*) FROM metric_block");
	second_block = number(db, "SELECT first FROM metric_block ORDER BY first LIMIT 1 OFFSET 1") - FIRST_S;
	cut(store, 0, 100); /* none begins before that */
	assert_int_equal(store_commit(store), 0);
	check_rows(db, 0, SECONDS);
	cut(store, 90, 100);
	assert_int_equal(store_commit(store), 0);
	check_rows(db, 100, SECONDS);
	cut(store, 95, 110); /* not yet: it begins at 100 */
	assert_int_equal(store_commit(store), 0);
	check_rows(db, 100, SECONDS);
	cut(store, 150, 160);
	store_rollback(store);
	check_rows(db, 100, SECONDS);
	cut(store, 150, 160);
	assert_int_equal(store_commit(store), 0);
	check_rows(db, 160, SECONDS);
	assert_int_equal(number(db, "SELECT count(*) FROM metric_block"), n_blocks);

	/* One goes, the next one is cut. */
	cut(store, (double)((int64_t)second_block + 10), (double)((int64_t)second_block + 20));
	assert_int_equal(store_commit(store), 0);
	check_rows(db, (int64_t)second_block + 20, SECONDS);
	assert_int_equal(number(db, "SELECT count(*) FROM metric_block"), n_blocks - 1);
	assert_int_equal(
		number(db, "SELECT count(*) FROM metric_block WHERE metric_block_error(rows, data) IS NOT NULL"), 0);
	sqlite3_close(db);

	/* A damaged block stays whole, and drops no row. */
	assert_int_equal(
		sqlite3_exec(store_connection(store), "UPDATE metric_block SET data = zeroblob(40)", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_cut_metrics(store, FIRST_S + second_block + 50, FIRST_S + second_block + 60), -EBADMSG);
	store_rollback(store);
	store_close(store);
}

/* Each row of a joined table asks for the rows of one moment: all others are neither read nor compared by SQLite. */
static void a_join_by_time_reads_the_rows_of_a_moment(void **state)
{
	struct folder *folder = *state;
	struct store *store = start(folder);
	sqlite3_stmt *rows;
	sqlite3 *db;

	put_seconds(store, 0, SECONDS);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT count(*), sum(a.user_ns = b.user_ns) FROM process_usage AS a"
					    " JOIN process_usage AS b ON b.timestamp = a.timestamp AND b.pid = a.pid",
					    -1, &rows, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(rows), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(rows, 0), SECONDS * N_PIDS);
	assert_int_equal(sqlite3_column_int64(rows, 1), SECONDS * N_PIDS);
	assert_in_range(sqlite3_stmt_status(rows, SQLITE_STMTSTATUS_VM_STEP, 0), 1, 100 * SECONDS * N_PIDS);
	sqlite3_finalize(rows);
	assert_int_equal(
		number(db,
		       "SELECT count(*) FROM process_usage WHERE timestamp = (SELECT min(first) FROM metric_block)"),
		N_PIDS);
	assert_int_equal(
		number(db, "SELECT count(*) FROM process_usage WHERE timestamp IN (SELECT min(first) FROM metric_block"
			   " UNION SELECT max(timestamp) FROM main.process_usage)"),
		2 * N_PIDS);
	assert_int_equal(number(db, "SELECT count(*) FROM process_usage WHERE timestamp = 'a text'"), 0);
	sqlite3_close(db);
	store_close(store);
}

static void moments_beside_or_are_all_found(void **state)
{
	static const char counted[] =
		"WITH t AS MATERIALIZED (SELECT min(timestamp) AS first, max(timestamp) AS last FROM process_usage)"
		" SELECT count(*) FROM process_usage AS u";
	struct folder *folder = *state;
	struct store *store = start(folder);
	sqlite3 *db;
	char sql[1024];

	put_seconds(store, 0, SECONDS);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	assert_true(number(db, "SELECT count(*) FROM metric_block") > 0);
	assert_true(number(db, "SELECT count(*) FROM main.process_usage") > 0);
	snprintf(
		sql, sizeof sql, "%s WHERE %s", counted,
		"(timestamp = (SELECT first FROM t) AND rss IS NOT NULL) OR (timestamp = (SELECT last FROM t) AND pid > 0)");
	assert_int_equal(number(db, sql), 2 * N_PIDS); /* a block's, and plain ones */
	snprintf(
		sql, sizeof sql, "%s WHERE %s", counted,
		"(timestamp = (SELECT last FROM t) AND rss IS NOT NULL) OR (timestamp = (SELECT last FROM t) AND pid > 0)");
	assert_int_equal(number(db, sql), N_PIDS); /* each once */
	snprintf(
		sql, sizeof sql, "%s WHERE %s", counted,
		"(timestamp = (SELECT first FROM t) AND rss IS NOT NULL) OR (timestamp = (SELECT first FROM t) AND pid > 0)");
	assert_int_equal(number(db, sql), N_PIDS);
	sqlite3_close(db);
	store_close(store);
}

static void a_damaged_block_is_an_error(void **state)
{
	struct folder *folder = *state;
	struct store *store = start(folder);
	sqlite3_stmt *rows;
	sqlite3 *db;

	put_seconds(store, 0, SECONDS);
	assert_int_equal(
		sqlite3_exec(store_connection(store), "UPDATE metric_block SET data = zeroblob(40)", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(store_open_reader(folder->file, &db), 0);
	assert_true(number(db, "SELECT count(*) FROM metric_block WHERE metric_block_error(rows, data) = 'damaged'") >
		    0);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM process_usage", -1, &rows, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(rows), SQLITE_ERROR);
	assert_string_equal(sqlite3_errmsg(db), "a block of rows of process_usage is damaged");
	sqlite3_finalize(rows);
	sqlite3_close(db);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),
		cmocka_unit_test(what_no_block_may_have_is_refused),
		cmocka_unit_test(damaged_blocks_are_refused),
		FOLDER_TEST(a_reader_sees_rows_of_blocks_and_plain_ones),
		FOLDER_TEST(old_blocks_are_dropped),
		FOLDER_TEST(blocks_are_cut),
		FOLDER_TEST(a_join_by_time_reads_the_rows_of_a_moment),
		FOLDER_TEST(moments_beside_or_are_all_found),
		FOLDER_TEST(a_damaged_block_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
