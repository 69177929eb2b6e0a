/* SPDX-License-Identifier: MIT */
/* Rows of programs: packed and unpacked they are the same; damaged blocks are refused; a file's rows are tables. */
#include <errno.h>
#include <malloc.h>
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
#include "src/store/activity.h"
#include "src/store/row_block.h"

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

static void put_some(struct row_bytes *rows)
{
	const struct row_value values[][3] = {
		{ integer(INT64_MIN), real(0.1), text("ä") },
		{ integer(INT64_MAX), null, text("") },
		{ null, real(-1e300), null },
	};
	const uint64_t times[] = { 5000000000, 4000000000, UINT64_MAX / 2 };

	for (size_t i = 0; i < N_ELEMENTS(values); i++)
		assert_int_equal(row_put(rows, times[i], values[i], 3), 0);
}

static void rows_come_back(void **state)
{
	struct row_bytes rows = { 0 };
	struct row_block block = { 0 };
	uint8_t *data;
	size_t n_bytes;

	(void)state;
	put_some(&rows);
	assert_int_equal(rows.first_ns, 4000000000);
	assert_int_equal(rows.last_ns, UINT64_MAX / 2);
	assert_int_equal(row_block_pack(&rows, &data, &n_bytes), 0);
	assert_int_equal(row_block_open(&block, data, n_bytes), 0);
	assert_int_equal(block.n_rows, 3);
	assert_int_equal(row_block_next(&block), 1);
	assert_int_equal(block.time_ns, 5000000000);
	assert_int_equal(block.values[0].integer, INT64_MIN);
	assert_true(block.values[1].kind == ROW_REAL && block.values[1].real == 0.1);
	assert_int_equal(block.values[2].n_text, 2);
	assert_memory_equal(block.values[2].text, "ä", 2);
	assert_int_equal(row_block_next(&block), 1);
	assert_int_equal(block.time_ns, 4000000000);
	assert_int_equal(block.values[0].integer, INT64_MAX);
	assert_int_equal(block.values[1].kind, ROW_NULL);
	assert_true(block.values[2].kind == ROW_TEXT && block.values[2].n_text == 0);
	assert_int_equal(row_block_next(&block), 1);
	assert_true(block.values[1].real == -1e300);
	assert_int_equal(row_block_next(&block), 0);
	row_block_done(&block);
	free(data);
	free(rows.at);
}

static void damaged_blocks_are_refused(void **state)
{
	struct row_bytes rows = { 0 };
	struct row_block block = { 0 };
	uint8_t *data;
	size_t n_bytes;

	(void)state;
	put_some(&rows);
	assert_int_equal(row_block_pack(&rows, &data, &n_bytes), 0);
	for (size_t i = 1; i < n_bytes; i++) {
		data[i] ^= 0x10;
		assert_int_equal(row_block_open(&block, data, n_bytes), -EBADMSG);
		assert_int_equal(row_block_next(&block), 0);
		data[i] ^= 0x10;
	}
	for (size_t n = 0; n < n_bytes; n++)
		assert_int_equal(row_block_open(&block, data, n), -EBADMSG);
	data[0]++;
	assert_int_equal(row_block_open(&block, data, n_bytes), -EPROTONOSUPPORT);
	row_block_done(&block);
	free(data);
	free(rows.at);
}

/* ---- Tables ---- */

struct file {
	char path[64];
	struct store *store;
};

static void file_init(struct file *file)
{
	int fd;

	strcpy(file->path, "/tmp/test-row-block.XXXXXX");
	fd = mkstemp(file->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlink(file->path), 0);
	assert_int_equal(store_create(file->path, NULL, &file->store), 0);
	assert_int_equal(store_begin(file->store), 0);
	assert_int_equal(store_put_run(file->store, &(struct run_row){ .started_ns = 1,
								       .command = "x",
								       .mode = "cpu",
								       .stack_source = "poll",
								       .host = "h",
								       .kernel = "k",
								       .probing = "p",
								       .pid = 7 }),
			 0);
}

static void put_table(struct file *file, int64_t number, pid_t pid, const char *name, const char *column,
		      const char *type, const struct row_value *value)
{
	const struct row_column_row columns[] = { { column, type }, { "loss", "REAL" } };
	const struct row_value values[] = { *value, real(0.5) };
	struct row_bytes rows = { 0 };

	assert_int_equal(
		store_put_row_table(file->store, &(struct row_table_row){ number, pid, name, 1000, columns, 2 }), 0);
	assert_int_equal(row_put(&rows, (uint64_t)number * 1000000000, values, 2), 0);
	assert_int_equal(store_put_row_block(file->store, number, &rows), 0);
	free(rows.at);
}

static void file_finish(struct file *file, sqlite3 **ret)
{
	assert_int_equal(store_finish(file->store, 2), 0);
	assert_int_equal(store_open_reader(file->path, ret), 0);
	assert_int_equal(catalogue_register(*ret), SQLITE_OK);
	assert_int_equal(row_tables_attach(*ret), SQLITE_OK);
}

static void assert_rows(sqlite3 *db, const char *sql, const char *wanted)
{
	char found[512] = "";
	sqlite3_stmt *rows;
	int code;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
	while ((code = sqlite3_step(rows)) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(rows); i++) {
			const char *value = (const char *)sqlite3_column_text(rows, i);

			strcat(strcat(found, value ? value : "NULL"), i + 1 < sqlite3_column_count(rows) ? " " : "\n");
		}
	sqlite3_finalize(rows);
	assert_int_equal(code, SQLITE_DONE);
	assert_string_equal(found, wanted);
}

static void rings_of_one_name_are_a_table(void **state)
{
	const struct row_value one = integer(1), two = text("b");
	struct file file;
	sqlite3 *db, *plain;

	(void)state;
	file_init(&file);
	put_table(&file, 1, 7, "logs", "epoch", "INTEGER", &one);
	put_table(&file, 2, 8, "LOGS", "phase", "TEXT", &two);
	put_table(&file, 3, 7, "backtrace", "timestamp", "ANY", &one);
	put_table(&file, 5, 9, "backtrace", "Timestamp_", "ANY", &two);
	put_table(&file, 4, 7, "x\"; DROP TABLE run; --", "a\"b", "nonsense", &one);
	file_finish(&file, &db);
	assert_rows(db, "SELECT * FROM logs", "1.000001 1 0.5 NULL\n2.000001 NULL 0.5 b\n");
	assert_rows(db, "SELECT time_ns, process, loss FROM python.Logs WHERE timestamp > 1.5", "2000000000 8 0.5\n");
	assert_rows(db, "SELECT count(*) FROM logs WHERE timestamp < 1.5", "1\n");
	assert_rows(db, "SELECT count(*) FROM logs WHERE timestamp > 'x'", "0\n");
	assert_rows(db, "SELECT timestamp_, timestamp__ FROM python.backtrace_", "1 NULL\nNULL b\n");
	assert_rows(db, "SELECT \"a\"\"b\" FROM \"x\"\"; DROP TABLE run; --\"", "1\n");
	assert_rows(db, "SELECT type FROM pragma_table_xinfo('logs') WHERE name IN ('epoch', 'loss', 'phase')",
		    "INTEGER\nREAL\nTEXT\n");
	assert_int_equal(sqlite3_open(":memory:", &plain), SQLITE_OK);
	assert_int_equal(row_tables_copy(db, plain), 0);
	assert_rows(plain, "SELECT name FROM sqlite_schema", "logs\nbacktrace_\nx\"; DROP TABLE run; --\n");
	assert_rows(plain, "SELECT * FROM logs",
		    "1.000001 1 0.5 NULL 1000000000 7\n2.000001 NULL 0.5 b 2000000000 8\n");
	sqlite3_close(plain);
	sqlite3_close(db);
	assert_int_equal(unlink(file.path), 0);
}

/* In seconds, of thread 9. */
static void put_pass(struct row_bytes *rows, const char *module, const char *stage, double began, double end)
{
	const struct row_value values[] = { text(module), text(stage), integer(9), real(began),
					    real((end - began) * 1e3) };

	assert_int_equal(row_put(rows, (uint64_t)(end * 1e9), values, N_ELEMENTS(values)), 0);
}

static void assert_doing(struct activity *activity, int64_t tid, double seconds, const char *wanted)
{
	struct doing doing;
	char found[64];

	activity_find(activity, 7, tid, (uint64_t)(seconds * 1e9) + 1000, &doing);
	snprintf(found, sizeof found, "%s %s", doing.span ?: "-", doing.phase ?: "-");
	assert_string_equal(found, wanted);
}

/* The module that began last in the thread and has not ended; the inner one of those that began together. */
static void the_module_of_a_moment(void **state)
{
	static const struct row_column_row columns[] = { { "module", "TEXT" },
							 { "stage", "TEXT" },
							 { "tid", "INTEGER" },
							 { "began", "REAL" },
							 { "host_ms", "REAL" } };
	const struct row_value broken[][N_ELEMENTS(columns)] = {
		{ text("x"), text("forward"), integer(0), real(1.5), real(9e3) },
		{ text("x"), text("forward"), integer(9), real(-1), real(9e3) },
		{ text("x"), text("forward"), integer(9), real(1e300), real(9e3) },
		{ text("x"), null, integer(9), real(1.5), real(9e3) },
		{ text("x"), text("forward"), null, null, null },
	};
	struct row_bytes rows = { 0 };
	struct activity *activity;
	struct file file;
	sqlite3 *db;

	(void)state;
	file_init(&file);
	assert_int_equal(store_put_row_table(file.store, &(struct row_table_row){ 1, 7, "torch_trace", 1000, columns,
										  N_ELEMENTS(columns) }),
			 0);
	put_pass(&rows, "a.b", "forward", 2, 3);
	put_pass(&rows, "a", "forward", 1, 4);
	put_pass(&rows, "left", "backward", 5, 7); /* branches whose backward passes overlap */
	put_pass(&rows, "right", "backward", 6, 8);
	put_pass(&rows, "leaf", "backward", 9, 10); /* of one begin and end with the module around it */
	put_pass(&rows, "root", "backward", 9, 10);
	for (size_t i = 0; i < N_ELEMENTS(broken); i++)
		assert_int_equal(row_put(&rows, 11000000000, broken[i], N_ELEMENTS(columns)), 0);
	assert_int_equal(store_put_row_block(file.store, 1, &rows), 0);
	free(rows.at);
	file_finish(&file, &db);
	assert_int_equal(activity_load_passes(db, &activity), 0);
	assert_doing(activity, 9, 0.5, "- -");
	assert_doing(activity, 9, 1.5, "a forward");
	assert_doing(activity, 9, 2, "a.b forward");
	assert_doing(activity, 9, 3, "a forward");
	assert_doing(activity, 9, 4.5, "- -");
	assert_doing(activity, 9, 5.5, "left backward");
	assert_doing(activity, 9, 6.5, "right backward");
	assert_doing(activity, 9, 7.5, "right backward");
	assert_doing(activity, 9, 8.5, "- -");
	assert_doing(activity, 9, 9.5, "leaf backward");
	assert_doing(activity, 9, 10.5, "- -");
	assert_doing(activity, 8, 1.5, "- -");
	activity_free(activity);
	sqlite3_close(db);
	assert_int_equal(unlink(file.path), 0);
}

static void a_damaged_block_is_an_error(void **state)
{
	const struct row_value one = integer(1);
	sqlite3_stmt *rows;
	struct file file;
	sqlite3 *db, *plain;

	(void)state;
	file_init(&file);
	put_table(&file, 1, 7, "logs", "epoch", "INTEGER", &one);
	assert_int_equal(sqlite3_exec(store_connection(file.store), "UPDATE row_block SET data = zeroblob(40)", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	file_finish(&file, &db);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM logs", -1, &rows, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(rows), SQLITE_ERROR);
	assert_string_equal(sqlite3_errmsg(db), "a block of rows of logs is damaged");
	sqlite3_finalize(rows);
	assert_int_equal(sqlite3_open(":memory:", &plain), SQLITE_OK);
	assert_int_equal(row_tables_copy(db, plain), -EBADMSG);
	sqlite3_close(plain);
	sqlite3_close(db);
	assert_int_equal(unlink(file.path), 0);
}

/* The last rows of a process may come when retention has dropped it. */
static void rows_without_a_ring_are_dropped(void **state)
{
	const struct row_value one = integer(1);
	struct row_bytes rows = { 0 };
	struct file file;
	sqlite3 *db;

	(void)state;
	file_init(&file);
	put_table(&file, 1, 7, "logs", "epoch", "INTEGER", &one);
	assert_int_equal(store_drop_unused(file.store, 0, 0), 0);
	assert_int_equal(row_put(&rows, 1, &one, 1), 0);
	assert_int_equal(store_put_row_block(file.store, 1, &rows), 0);
	free(rows.at);
	file_finish(&file, &db);
	assert_rows(db, "SELECT count(*) FROM row_block", "0\n");
	sqlite3_close(db);
	assert_int_equal(unlink(file.path), 0);
}

/* A row may be nearly as large as a block: the one before it stays in a block of its own. */
static void large_rows_are_copied(void **state)
{
	const size_t n_texts[] = { (1 << 20) - 100, ROW_BLOCK_MAX_BYTES - (1 << 19) };
	const struct row_column_row column = { "text", "TEXT" };
	char *bytes = calloc(1, ROW_BLOCK_MAX_BYTES);
	struct file file, copy;
	sqlite3 *db;

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'x', ROW_BLOCK_MAX_BYTES);
	file_init(&file);
	file_init(&copy);
	assert_int_equal(store_put_row_table(file.store, &(struct row_table_row){ 1, 7, "t", 0, &column, 1 }), 0);
	for (size_t i = 0; i < N_ELEMENTS(n_texts); i++) {
		const struct row_value value = { .kind = ROW_TEXT, .text = bytes, .n_text = n_texts[i] };
		struct row_bytes rows = { 0 };

		assert_int_equal(row_put(&rows, i, &value, 1), 0);
		assert_int_equal(store_put_row_block(file.store, 1, &rows), 0);
		free(rows.at);
	}
	file_finish(&file, &db);
	assert_int_equal(store_put_row_table(copy.store, &(struct row_table_row){ 1, 7, "t", 0, &column, 1 }), 0);
	assert_int_equal(store_copy_row_blocks(db, 1, copy.store, 1, NULL, NULL), 0);
	sqlite3_close(db);
	file_finish(&copy, &db);
	assert_rows(db, "SELECT sum(rows), count(*) FROM row_block", "2 2\n");
	sqlite3_close(db);
	free(bytes);
	assert_int_equal(unlink(file.path), 0);
	assert_int_equal(unlink(copy.path), 0);
}

/* Two spans with one name that has a NUL within: what is behind it is no part of the name. */
static void a_nul_ends_the_name_of_a_span(void **state)
{
	static const struct row_column_row columns[] = {
		{ "tid", "INTEGER" }, { "span", "INTEGER" }, { "name", "TEXT" }, { "phase", "TEXT" }
	};
	const size_t n_text = 4 << 20;
	char *name = calloc(1, n_text);
	struct row_value values[] = { integer(7), integer(1), { .kind = ROW_TEXT }, text("begin") };
	struct row_bytes rows = { 0 };
	struct step_time *steps = NULL;
	struct file file;
	sqlite3 *db;
	size_t n;

	(void)state;
	assert_non_null(name);
	mallopt(M_MMAP_THRESHOLD, 1 << 16); /* the heap stays small: a read far behind the name ends the test */
	name[0] = 'a';
	values[2].text = name;
	values[2].n_text = n_text;
	file_init(&file);
	assert_int_equal(store_put_row_table(file.store, &(struct row_table_row){ 1, 7, "spans", 0, columns, 4 }), 0);
	assert_int_equal(row_put(&rows, 1, values, 4), 0);
	assert_int_equal(row_put(&rows, 2, values, 4), 0);
	assert_int_equal(store_put_row_block(file.store, 1, &rows), 0);
	file_finish(&file, &db);
	assert_int_equal(store_read_steps(db, &steps, &n), 0);
	assert_int_equal(n, 0);
	free(steps);
	free(rows.at);
	free(name);
	sqlite3_close(db);
	assert_int_equal(unlink(file.path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),
		cmocka_unit_test(damaged_blocks_are_refused),
		cmocka_unit_test(rings_of_one_name_are_a_table),
		cmocka_unit_test(the_module_of_a_moment),
		cmocka_unit_test(a_damaged_block_is_an_error),
		cmocka_unit_test(rows_without_a_ring_are_dropped),
		cmocka_unit_test(large_rows_are_copied),
		cmocka_unit_test(a_nul_ends_the_name_of_a_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
