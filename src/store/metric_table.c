/* SPDX-License-Identifier: MIT */
/*
 * metric_table.c - the tables of metrics of a recording: the rows of their blocks, and those that are still plain.
 *
 * For each, the connection has a virtual table of the same name in the schema temp, which SQLite finds before the one of the file. One
 * statement reads both parts, so that a row that a recorder moves meanwhile is seen once. The virtual tables exist where the file has
 * blocks, or may get some: it is still being recorded.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_hash.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/metric_block.h"
#include "src/store/metric_table.h"
#include "src/store/row_vtab.h"

#define MODULE "probing_metrics"

struct metric_tab {
	sqlite3_vtab base; /* first: SQLite casts pointers to it */
	sqlite3 *db;
	const struct catalogue_table *described;
	int time_column;
};

/* A recorder that cuts a block changes its first row, and a number may be another block's once its own was dropped. */
struct block_id {
	int64_t number; /* 0: none */
	double first, last;
};

struct metric_cursor {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	sqlite3_stmt *parts;
	int plan;             /* of parts */
	double since, until;  /* rows of other times are skipped */
	struct block_id read; /* whose rows are in rows: a join by time mostly asks for the same block again */
	struct metric_rows rows;
	size_t row; /* of the block */
	bool is_in_block, is_at_end;
};

/* Columns of parts before those of the table. */
enum { PART_BLOCK, PART_FIRST, PART_LAST, PART_DATA, PART_COLUMNS };

/* ---- SQLite's callbacks. Source: sqlite.org/vtab.html ---- */

/* @arguments: module, schema, name. */
static int connect(sqlite3 *db, void *data, int n, const char *const *arguments, sqlite3_vtab **ret, char **error)
{
	const struct catalogue_table *described = n >= 3 ? catalogue_find("main", arguments[2]) : NULL;
	struct metric_tab *table;
	int code;

	(void)data;
	if (!described || !catalogue_find_column(described, "timestamp")) {
		*error = sqlite3_mprintf("there is no such table of metrics");
		return SQLITE_ERROR;
	}
	code = catalogue_declare(db, described);
	if (code == SQLITE_OK) /* it only reads what its user may read anyway, so our view may use it */
		code = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	if (code != SQLITE_OK)
		return code;
	table = sqlite3_malloc(sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct metric_tab){ .db = db, .described = described };
	while (strcmp(described->columns[table->time_column].name, "timestamp") != 0)
		table->time_column++;
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	row_vtab_plan(info, ((struct metric_tab *)base)->time_column);
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct metric_cursor *cursor = calloc(1, sizeof *cursor);

	(void)base;
	if (!cursor)
		return SQLITE_NOMEM;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct metric_cursor *cursor = (struct metric_cursor *)base;

	sqlite3_finalize(cursor->parts);
	metric_rows_done(&cursor->rows);
	free(cursor);
	return SQLITE_OK;
}

/*
 * "SELECT metric_block, first, last, data, NULL ... UNION ALL SELECT NULL, NULL, NULL, NULL, its columns ..."; a file of another version
 * may lack a column. Bounds are there only if the plan has them, so that an index finds the plain rows of a moment.
 */
static char *parts_sql(const struct metric_tab *table, int plan)
{
	const struct catalogue_table *of = table->described;
	sqlite3_str *sql = sqlite3_str_new(table->db);
	bool has_since = plan & (ROW_VTAB_SINCE | ROW_VTAB_AT), has_until = plan & (ROW_VTAB_UNTIL | ROW_VTAB_AT);

	sqlite3_str_appendall(sql, "SELECT metric_block, first, last, data");
	for (size_t i = 0; i < of->n_columns; i++)
		sqlite3_str_appendall(sql, ", NULL");
	sqlite3_str_appendf(sql, " FROM main.metric_block WHERE name = ?1%s%s UNION ALL SELECT NULL, NULL, NULL, NULL",
			    has_since ? " AND last >= ?2" : "", has_until ? " AND first <= ?3" : "");
	for (size_t i = 0; i < of->n_columns; i++)
		if (sqlite3_table_column_metadata(table->db, "main", of->name, of->columns[i].name, NULL, NULL, NULL,
						  NULL, NULL) == SQLITE_OK)
			sqlite3_str_appendf(sql, ", \"%w\"", of->columns[i].name);
		else
			sqlite3_str_appendall(sql, ", NULL");
	sqlite3_str_appendf(sql, " FROM main.\"%w\"%s%s%s", of->name, has_since ? " WHERE timestamp >= ?2" : "",
			    has_until ? has_since ? " AND" : " WHERE" : "", has_until ? " timestamp <= ?3" : "");
	return sqlite3_str_finish(sql);
}

/* The block of this row of parts. */
static int read_block(struct metric_cursor *cursor)
{
	const struct block_id id = { sqlite3_column_int64(cursor->parts, PART_BLOCK),
				     sqlite3_column_double(cursor->parts, PART_FIRST),
				     sqlite3_column_double(cursor->parts, PART_LAST) };
	int r;

	cursor->row = 0;
	if (id.number != 0 && id.number == cursor->read.number && id.first == cursor->read.first &&
	    id.last == cursor->read.last)
		return 0;
	cursor->read.number = 0;
	r = metric_rows_open(&cursor->rows, sqlite3_column_blob(cursor->parts, PART_DATA),
			     (size_t)sqlite3_column_bytes(cursor->parts, PART_DATA));
	if (r >= 0)
		cursor->read = id;
	return r;
}

/* From this row of the block on, the first one of a wanted time. */
static bool find_row(struct metric_cursor *cursor)
{
	const struct metric_rows *rows = &cursor->rows;

	while (cursor->row < rows->n_rows &&
	       (rows->timestamps[cursor->row] < cursor->since || rows->timestamps[cursor->row] > cursor->until))
		cursor->row++;
	return cursor->row < rows->n_rows;
}

static int next(sqlite3_vtab_cursor *base)
{
	struct metric_cursor *cursor = (struct metric_cursor *)base;
	int code, r;

	if (cursor->is_in_block) {
		cursor->row++;
		if (find_row(cursor))
			return SQLITE_OK;
	}
	do {
		code = sqlite3_step(cursor->parts);
		cursor->is_at_end = code == SQLITE_DONE;
		if (code != SQLITE_ROW)
			return code == SQLITE_DONE ? SQLITE_OK : code;
		cursor->is_in_block = sqlite3_column_type(cursor->parts, PART_BLOCK) != SQLITE_NULL;
		if (!cursor->is_in_block)
			return SQLITE_OK;
		r = read_block(cursor);
		if (r < 0)
			return row_vtab_fail(base->pVtab, r, ((struct metric_tab *)base->pVtab)->described->name);
	} while (!find_row(cursor));
	return SQLITE_OK;
}

static int prepare_parts(const struct metric_tab *table, struct metric_cursor *cursor, int plan)
{
	char *sql;
	int code;

	if (cursor->parts && cursor->plan == plan) {
		sqlite3_reset(cursor->parts);
		return SQLITE_OK;
	}
	sqlite3_finalize(TAKE(cursor->parts));
	sql = parts_sql(table, plan);
	code = sql ? sqlite3_prepare_v2(table->db, sql, -1, &cursor->parts, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	cursor->plan = plan;
	return code == SQLITE_OK ? sqlite3_bind_text(cursor->parts, 1, table->described->name, -1, SQLITE_STATIC)
				 : code;
}

static double bound_of(sqlite3_value *value, double otherwise)
{
	int type = sqlite3_value_numeric_type(value);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT ? sqlite3_value_double(value) : otherwise;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct metric_cursor *cursor = (struct metric_cursor *)base;
	int code = prepare_parts((struct metric_tab *)base->pVtab, cursor, plan), n = 0;

	(void)text;
	(void)argc;
	if (code != SQLITE_OK)
		return code;
	cursor->is_in_block = cursor->is_at_end = false;
	cursor->since = -INFINITY;
	cursor->until = INFINITY;
	if (plan & (ROW_VTAB_SINCE | ROW_VTAB_AT))
		cursor->since = bound_of(argv[n++], -INFINITY);
	if (plan & (ROW_VTAB_UNTIL | ROW_VTAB_AT))
		cursor->until = bound_of(argv[plan & ROW_VTAB_AT ? 0 : n], INFINITY);
	if (plan & (ROW_VTAB_SINCE | ROW_VTAB_AT))
		sqlite3_bind_double(cursor->parts, 2, cursor->since);
	if (plan & (ROW_VTAB_UNTIL | ROW_VTAB_AT))
		sqlite3_bind_double(cursor->parts, 3, cursor->until);
	return next(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct metric_cursor *)base)->is_at_end;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int n)
{
	const struct metric_cursor *cursor = (struct metric_cursor *)base;
	const struct metric_rows *rows = &cursor->rows;
	int time_column = ((struct metric_tab *)base->pVtab)->time_column;
	size_t at = (size_t)(n < time_column ? n : n - 1);

	if (!cursor->is_in_block)
		sqlite3_result_value(context, sqlite3_column_value(cursor->parts, PART_COLUMNS + n));
	else if (n == time_column)
		sqlite3_result_double(context, rows->timestamps[cursor->row]);
	else if (at < rows->n_columns)
		row_vtab_give(context, &rows->values[cursor->row * rows->n_columns + at]);
	return SQLITE_OK;
}

/*
 * The same number whatever condition finds the row: of "a OR b" SQLite takes the rows of a, then those of b that are not among them.
 * Plain rows have a key but no number: they get a negative one, of their values.
 */
static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct metric_cursor *cursor = (struct metric_cursor *)base;
	uint64_t number = HASH_START;

	if (cursor->is_in_block) {
		number = (uint64_t)sqlite3_column_int64(cursor->parts, PART_BLOCK) * METRIC_BLOCK_MAX_ROWS +
			 cursor->row;
	} else {
		for (int i = PART_COLUMNS; i < sqlite3_column_count(cursor->parts); i++)
			number = sqlite_hash(number, cursor->parts, i);
		number |= UINT64_C(1) << 63;
	}
	*ret = (sqlite3_int64)number;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xCreate = connect,
	.xConnect = connect,
	.xBestIndex = best_index,
	.xDisconnect = disconnect,
	.xDestroy = disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = at_end,
	.xColumn = column,
	.xRowid = rowid,
};

/* ---- Attach ---- */

static void check_block(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
	const void *bytes = sqlite3_value_blob(arguments[1]);
	struct metric_rows rows = { 0 };
	int r = bytes ? metric_rows_open(&rows, bytes, (size_t)sqlite3_value_bytes(arguments[1])) : -EBADMSG;

	(void)n_arguments;
	row_vtab_judge(context, r, arguments[0], rows.n_rows);
	metric_rows_done(&rows);
}

int metric_register(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "metric_block_error", 2,
					  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, check_block,
					  NULL, NULL, NULL);
}

static bool has_row(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *row = NULL;
	bool has = sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW;

	sqlite3_finalize(row);
	return has;
}

/* Real tables, with pages: a query on a planted view could run for ever. */
static bool has_table(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf(
		"SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = %Q", name);
	bool has = sql && has_row(db, sql);

	sqlite3_free(sql);
	return has;
}

/* A recording of which blocks are to be read, by now or later. */
static bool is_wanted(sqlite3 *db)
{
	return has_table(db, "metric_block") && has_table(db, "run") &&
	       has_row(db, "SELECT 1 FROM main.metric_block UNION ALL SELECT 1 FROM main.run WHERE ended IS NULL") &&
	       !has_row(db, "SELECT 1 FROM pragma_module_list WHERE name = '" MODULE "'");
}

static int add_table(sqlite3 *db, const char *name)
{
	const struct catalogue_table *described = catalogue_find("main", name);
	char *sql;
	int code;

	if (!described || !catalogue_find_column(described, "timestamp") || !has_table(db, name))
		return SQLITE_OK;
	sql = sqlite3_mprintf("CREATE VIRTUAL TABLE IF NOT EXISTS temp.\"%w\" USING " MODULE, name);
	code = sql ? catalogue_execute(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code;
}

/* The file's own view reads the file's own table. */
static int add_memory_usage(sqlite3 *db)
{
	static const char create[] = "CREATE VIEW ";
	const struct catalogue_table *view = catalogue_find("main", "memory_usage");
	char *sql = sqlite3_mprintf("CREATE TEMP VIEW IF NOT EXISTS %s", view->ddl + strlen(create));
	int code = sql ? catalogue_execute(db, sql) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return code;
}

int metric_tables_attach(sqlite3 *db)
{
	int code;

	if (!is_wanted(db))
		return SQLITE_OK;
	code = sqlite3_create_module_v2(db, MODULE, &module, NULL, NULL);
	for (const char *const *table = store_metric_tables; *table && code == SQLITE_OK; table++)
		code = add_table(db, *table);
	return code == SQLITE_OK ? add_memory_usage(db) : code;
}
