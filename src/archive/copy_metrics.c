/* SPDX-License-Identifier: MIT */
/* copy_metrics.c - rows of the tables of metrics that store_metric_tables names.
 *
 * Machines share a file's tables, so that each row has its host. A row of a process that is not in the source's table
 * "process" is dropped: its PID could be another one's in the new file.
 */
#include <errno.h>
#include <string.h>

#include "src/archive/copy_private.h"

static char *insert_sql(const char *table, const char *columns, int n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO \"%w\"(%s) VALUES(", table, columns);
	for (int i = 0; i < n; i++)
		sqlite3_str_appendall(sql, i == 0 ? "?" : ",?");
	sqlite3_str_appendall(sql, ")");
	return sqlite3_str_finish(sql);
}

/* Bind a row. False: it is of a process without a new number. */
static bool bind_row(const struct source *source, sqlite3_stmt *row, sqlite3_stmt *to, int *ret_code)
{
	*ret_code = SQLITE_OK;
	for (int i = 0; i < sqlite3_column_count(row) && *ret_code == SQLITE_OK; i++) {
		int64_t pid = 0;

		if (sqlite3_stricmp(sqlite3_column_name(row, i), "timestamp") == 0)
			*ret_code = copy_bind_time(source, row, i, to, i + 1);
		else if (sqlite3_stricmp(sqlite3_column_name(row, i), "pid") != 0 ||
			 sqlite3_column_type(row, i) == SQLITE_NULL)
			*ret_code = sqlite3_bind_value(to, i + 1, sqlite3_column_value(row, i));
		else if (numbers_find(&source->numbers[KIND_PROCESS], sqlite3_column_int64(row, i), &pid))
			*ret_code = sqlite3_bind_int64(to, i + 1, pid);
		else
			return false;
	}
	return true;
}

static int copy_rows(struct copy *copy, struct source *source, const char *table, const char *columns)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\"", columns, table);
	int code, bound, r;

	r = sql ? copy_prepare(source->db, sql, &rows) : -ENOMEM;
	sqlite3_free(sql);
	if (r < 0)
		return r;
	sql = insert_sql(table, columns, sqlite3_column_count(rows));
	r = sql ? copy_prepare(copy->db, sql, &write) : -ENOMEM;
	sqlite3_free(sql);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		if (!bind_row(source, rows, write, &bound))
			continue;
		r = store_errno(copy->db, bound);
		if (r >= 0)
			r = copy_run(copy->db, write);
		if (r >= 0)
			r = copy_step(copy, "rows of metrics", 0);
	}
	return r < 0 ? r : store_errno(source->db, code);
}

int copy_metrics(struct copy *copy, struct source *source)
{
	int r = 0;

	for (const char *const *table = store_metric_tables; *table && r >= 0; table++) {
		char *columns = NULL;

		if (!copy_has(source->db, *table))
			continue;
		r = store_make_metric_table(copy->db, *table);
		if (r >= 0)
			r = copy_columns(source->db, copy->db, *table, &columns);
		if (r >= 0)
			r = copy_rows(copy, source, *table, columns);
		sqlite3_free(columns);
	}
	return r;
}
