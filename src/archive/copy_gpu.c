/* SPDX-License-Identifier: MIT */
/*
 * copy_gpu.c - copies imported tables: those of GPUs, the traces of all sources one after the other, and of Flight Recorders.
 *
 * A trace and its rows get new numbers. Processes are those of
 * the recording if it has them, else none.
 */
#include <string.h>

#include "src/archive/copy_private.h"

static const char *const tables[] = { "gpu_trace", "gpu_kernel", "gpu_memcpy",   "gpu_api_call", "gpu_range",
				      "gpu_idle",  "torch_op",   "torch_memory", "torch_step" };
static const char *const flight_tables[] = { "comm_flight", "comm_flight_group" };

static bool is_time(const char *column)
{
	return strcmp(column, "started") == 0 || strcmp(column, "created") == 0 || strcmp(column, "completed") == 0;
}

/* A trace's number continues after the existing ones; the table's own number is a new one. */
static int bind_column(const struct copied_table *table, const struct source *source, sqlite3_stmt *row, int column,
		       sqlite3_stmt *to)
{
	const char *name = sqlite3_column_name(row, column), *key = strchr(table->name, '_') + 1;
	sqlite3_value *value = sqlite3_column_value(row, column);
	int code;

	if (strcmp(name, "trace") == 0)
		return sqlite3_bind_int64(to, column + 1, sqlite3_value_int64(value) + table->n_before);
	if (strcmp(name, key) == 0)
		return sqlite3_bind_null(to, column + 1);
	if (is_time(name))
		return copy_bind_time(source, row, column, to, column + 1);
	code = strcmp(name, "pid") == 0 ? copy_bind_pid(source, row, column, to) : COPY_LEFT_OUT;
	return code == COPY_LEFT_OUT ? sqlite3_bind_value(to, column + 1, value) : code;
}

static int copy_tables(struct copy *copy, struct source *source, const char *const *names, size_t n, int64_t n_before)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		struct copied_table table = { .name = names[i],
					      .what = "rows of tables",
					      .is_numbered = true,
					      .n_before = n_before,
					      .bind = bind_column };

		if (copy_has(source->db, names[i]))
			r = copy_each_row(copy, source, &table);
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
