/* SPDX-License-Identifier: MIT */
/*
 * copy_gpu.c - copies imported tables: those of GPUs, the traces of all sources one after the other, and of Flight Recorders.
 *
 * A trace and its rows get new numbers. Processes are those of
 * the recording if it has them, else none.
 */
#include <errno.h>
#include <string.h>

#include "src/archive/copy_private.h"

static const char *const tables[] = { "gpu_trace", "gpu_kernel", "gpu_memcpy",   "gpu_api_call", "gpu_range",
				      "gpu_idle",  "torch_op",   "torch_memory", "torch_step" };
static const char *const flight_tables[] = { "comm_flight", "comm_flight_group" };

static bool is_time(const char *column)
{
	return strcmp(column, "started") == 0 || strcmp(column, "created") == 0 || strcmp(column, "completed") == 0;
}

static char *insert_sql(const char *table, const char *columns, int n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO \"%w\"(%s) VALUES", table, columns);
	for (int i = 0; i < n; i++)
		sqlite3_str_appendf(sql, i == 0 ? "(?" : ",?");
	sqlite3_str_appendf(sql, ")");
	return sqlite3_str_finish(sql);
}

/* @key: the table's own number; a trace's number continues after the existing ones. */
static int bind_column(const struct source *source, sqlite3_stmt *row, int column, const char *key, int64_t n_before,
		       sqlite3_stmt *to)
{
	const char *name = sqlite3_column_name(row, column);
	sqlite3_value *value = sqlite3_column_value(row, column);
	int64_t pid;

	if (strcmp(name, "trace") == 0)
		return sqlite3_bind_int64(to, column + 1, sqlite3_value_int64(value) + n_before);
	if (strcmp(name, key) == 0)
		return sqlite3_bind_null(to, column + 1);
	if (is_time(name))
		return copy_bind_time(source, row, column, to, column + 1);
	if (strcmp(name, "pid") == 0 && sqlite3_value_type(value) != SQLITE_NULL &&
	    numbers_find(&source->numbers[KIND_PROCESS], sqlite3_value_int64(value), &pid))
		return sqlite3_bind_int64(to, column + 1, pid);
	return sqlite3_bind_value(to, column + 1, value);
}

static int copy_rows(struct copy *copy, struct source *source, const char *table, const char *columns, int64_t n_before)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\" ORDER BY 1", columns, table);
	int code, r;

	r = sql ? copy_prepare(source->db, sql, &rows) : -ENOMEM;
	sqlite3_free(sql);
	if (r < 0)
		return r;
	sql = insert_sql(table, columns, sqlite3_column_count(rows));
	r = sql ? copy_prepare(copy->db, sql, &write) : -ENOMEM;
	sqlite3_free(sql);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(rows) && r >= 0; i++)
			r = store_errno(copy->db,
					bind_column(source, rows, i, strchr(table, '_') + 1, n_before, write));
		if (r >= 0)
			r = copy_run(copy->db, write);
		if (r >= 0)
			r = copy_step(copy, "rows of tables", 0);
	}
	return r < 0 ? r : store_errno(source->db, code);
}

static int copy_tables(struct copy *copy, struct source *source, const char *const *names, size_t n, int64_t n_before)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		char *columns = NULL;

		if (!copy_has(source->db, names[i]))
			continue;
		r = copy_columns(source->db, copy->db, names[i], &columns);
		if (r >= 0)
			r = copy_rows(copy, source, names[i], columns, n_before);
		sqlite3_free(columns);
	}
	return r;
}

int copy_flight(struct copy *copy, struct source *source)
{
	int r;

	if (!copy_has(source->db, "comm_flight"))
		return 0;
	r = flight_make_tables(copy->to);
	return r < 0 ? r : copy_tables(copy, source, flight_tables, N_ELEMENTS(flight_tables), 0);
}

int copy_gpu(struct copy *copy, struct source *source)
{
	int64_t n_before = 0;
	int r;

	if (!copy_has(source->db, "gpu_trace"))
		return 0;
	r = gpu_make_tables(copy->to);
	if (r >= 0)
		r = copy_number(copy->db, "SELECT coalesce(max(trace), 0) FROM gpu_trace", &n_before);
	return r < 0 ? r : copy_tables(copy, source, tables, N_ELEMENTS(tables), n_before);
}
