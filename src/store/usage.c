/* SPDX-License-Identifier: MIT */
/* usage.c - rows of the tables of metrics: only the catalogue knows their columns. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/metric_table.h"
#include "src/store/store_private.h"

enum { METRIC_PARTS = 8 }; /* of the time of all rows, one is dropped at once */

static int prepare(struct store *store, const char *sql, const char *table, sqlite3_stmt **ret)
{
	if (sqlite3_table_column_metadata(store->db, "main", table, NULL, NULL, NULL, NULL, NULL, NULL) != SQLITE_OK)
		return -ENOENT;
	return store_errno(store->db, sqlite3_prepare_v2(store->db, sql, -1, ret, NULL));
}

const char *const store_metric_tables[] = {
	"process_usage", "machine_usage", "cgroup_usage", "pressure",          "disk_usage",
	"network_usage", "gpu_metrics",   "gpu_device",   "gpu_process_usage", NULL,
};

int store_make_metric_table(sqlite3 *db, const char *table)
{
	return store_errno(db, catalogue_add_optional(db, table));
}

static char *insert_sql(const struct catalogue_table *table)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT OR REPLACE INTO \"%w\" VALUES(?", table->name);
	for (size_t i = 1; i < table->n_columns; i++)
		sqlite3_str_appendall(sql, ",?");
	sqlite3_str_appendall(sql, ")");
	return sqlite3_str_finish(sql);
}

static int prepare_metric(struct store *store, const struct catalogue_table *table, sqlite3_stmt **statement)
{
	char *sql;
	int r;

	if (*statement)
		return 0;
	r = table->is_optional ? store_make_metric_table(store->db, table->name) : 0;
	if (r < 0)
		return r;
	sql = insert_sql(table);
	r = sql ? prepare(store, sql, table->name, statement) : -ENOMEM;
	sqlite3_free(sql);
	return r;
}

static int bind_value(sqlite3_stmt *statement, int column, const struct metric_value *value)
{
	switch (value->type) {
	case METRIC_INTEGER:
		return sqlite3_bind_int64(statement, column, value->integer);
	case METRIC_REAL:
		return sqlite3_bind_double(statement, column, value->real);
	case METRIC_TEXT:
		return sqlite3_bind_text(statement, column, value->text, -1, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(statement, column);
	}
}

int store_put_metric(struct store *store, const char *table, const struct metric_value *values, size_t n)
{
	const struct catalogue_table *described = catalogue_find("main", table);
	sqlite3_stmt **statement;
	size_t at = 0;
	int r, code = SQLITE_OK;

	_Static_assert(N_ELEMENTS(store_metric_tables) - 1 <= STORE_MAX_METRIC_TABLES, "a statement for each table");
	while (store_metric_tables[at] && strcmp(store_metric_tables[at], table) != 0)
		at++;
	if (!store_metric_tables[at] || !described || described->n_columns != n)
		return -EINVAL;
	statement = &store->put_metrics[at];
	r = prepare_metric(store, described, statement);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && code == SQLITE_OK; i++)
		code = bind_value(*statement, (int)i + 1, &values[i]);
	store->n_metrics[at]++;
	return writer_run(store, *statement, code);
}

static int drop_metrics(struct store *store, const char *table, double seconds)
{
	char *sql;
	int r;

	if (sqlite3_table_column_metadata(store->db, "main", table, "timestamp", NULL, NULL, NULL, NULL, NULL) !=
	    SQLITE_OK)
		return 0; /* the file has no such rows, or they are of no moment */
	sql = sqlite3_mprintf("DELETE FROM \"%w\" WHERE timestamp < %.17g", table, seconds);
	r = sql ? store_exec(store->db, sql) : -ENOMEM;
	sqlite3_free(sql);
	return r;
}

int store_drop_metrics_before(struct store *store, double seconds)
{
	int r = metric_drop_blocks(store, seconds);

	for (const char *const *table = store_metric_tables; *table && r >= 0; table++)
		r = drop_metrics(store, *table, seconds);
	return r;
}

/* The first and the last moment of a table's rows, if it has some, widen the span. */
static int widen(sqlite3 *db, const char *table, double *first, double *last)
{
	sqlite3_stmt *row = NULL;
	char *sql;
	int code;

	if (sqlite3_table_column_metadata(db, "main", table, "timestamp", NULL, NULL, NULL, NULL, NULL) != SQLITE_OK)
		return 0;
	/* One query for each end, as each is one step in the index. */
	sql = sqlite3_mprintf("SELECT (SELECT min(timestamp) FROM \"%w\"), (SELECT max(timestamp) FROM \"%w\")", table,
			      table);
	code = sql ? sqlite3_prepare_v2(db, sql, -1, &row, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL) {
		*first = MIN(*first, sqlite3_column_double(row, 0));
		*last = MAX(*last, sqlite3_column_double(row, 1));
	}
	sqlite3_finalize(row);
	return store_errno(db, code);
}

int store_drop_first_metrics(struct store *store, bool *ret)
{
	double first = INFINITY, last = -INFINITY;
	double block_end;
	int r = metric_first_block(store, ret, &block_end);

	if (r >= 0 && *ret) /* a block goes as a whole */
		return store_drop_metrics_before(store, block_end + 1e-6);
	for (const char *const *table = store_metric_tables; *table && r >= 0; table++)
		r = widen(store->db, *table, &first, &last);
	*ret = r >= 0 && first < last;
	return *ret ? store_drop_metrics_before(store, first + (last - first) / METRIC_PARTS) : r;
}

int store_drop_processes_before(struct store *store, double seconds)
{
	char sql[128];

	sqlite3_snprintf(sizeof sql, sql,
			 "DELETE FROM process WHERE ended < %.17g AND pid NOT IN (SELECT pid FROM run)", seconds);
	return store_exec(store->db, sql);
}
