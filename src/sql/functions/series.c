/* SPDX-License-Identifier: MIT */
/*
 * series.c - generate_series(start, stop [, step]): integers as rows, unless the connection has it already.
 *
 * Start, stop and step are hidden columns, which SQLite uses for arguments of a table (vtab.html, 2.3.2). A
 * series without a stop would not end, so stop is required; so is a step other than 0.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/sql/functions/functions_private.h"

enum { COLUMN_VALUE, COLUMN_START, COLUMN_STOP, COLUMN_STEP, N_ARGUMENTS = 3 };

struct series_cursor {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	sqlite3_int64 value, start, stop, step, row;
	bool is_end;
};

static int series_connect(sqlite3 *db, void *data, int n, const char *const *arguments, sqlite3_vtab **ret,
			  char **error)
{
	int code;

	(void)data;
	(void)n;
	(void)arguments;
	(void)error;
	code = sqlite3_declare_vtab(db, "CREATE TABLE x(value INTEGER, start HIDDEN, stop HIDDEN, step HIDDEN)");
	if (code != SQLITE_OK)
		return code;
	*ret = sqlite3_malloc(sizeof **ret);
	if (!*ret)
		return SQLITE_NOMEM;
	**ret = (sqlite3_vtab){ 0 };
	return SQLITE_OK;
}

static int series_disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

/* The plan has a bit per given argument, and the arguments keep their order. */
static int series_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	int place[N_ARGUMENTS] = { -1, -1, -1 }, n = 0, is_missing = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		int column = info->aConstraint[i].iColumn;

		if (column < COLUMN_START || column > COLUMN_STEP ||
		    info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (info->aConstraint[i].usable)
			place[column - COLUMN_START] = i;
		else
			is_missing = 1;
	}
	if (is_missing)
		return SQLITE_CONSTRAINT;
	if (place[0] < 0 || place[1] < 0) {
		sqlite3_free(table->zErrMsg);
		table->zErrMsg = sqlite3_mprintf("generate_series(start, stop) has a start and a stop");
		return SQLITE_ERROR;
	}
	for (int i = 0; i < N_ARGUMENTS; i++)
		if (place[i] >= 0) {
			info->aConstraintUsage[place[i]].argvIndex = ++n;
			info->aConstraintUsage[place[i]].omit = 1;
			info->idxNum |= 1 << i;
		}
	info->estimatedCost = 1000;
	info->estimatedRows = 1000;
	return SQLITE_OK;
}

static int series_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	struct series_cursor *cursor = sqlite3_malloc(sizeof *cursor);

	(void)table;
	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct series_cursor){ .is_end = true };
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int series_close(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static bool is_past(const struct series_cursor *cursor)
{
	return cursor->step > 0 ? cursor->value > cursor->stop : cursor->value < cursor->stop;
}

static int series_filter(sqlite3_vtab_cursor *base, int plan, const char *text, int n, sqlite3_value **arguments)
{
	struct series_cursor *cursor = (struct series_cursor *)base;

	(void)text;
	cursor->start = cursor->value = sqlite3_value_int64(arguments[0]);
	cursor->stop = sqlite3_value_int64(arguments[1]);
	cursor->step = plan & 1 << (COLUMN_STEP - COLUMN_START) ? sqlite3_value_int64(arguments[2]) : 1;
	cursor->row = 1;
	cursor->is_end = cursor->step == 0 || is_past(cursor);
	for (int i = 0; i < n; i++)
		cursor->is_end |= sqlite3_value_type(arguments[i]) == SQLITE_NULL;
	return SQLITE_OK;
}

static int series_next(sqlite3_vtab_cursor *base)
{
	struct series_cursor *cursor = (struct series_cursor *)base;

	cursor->row++;
	cursor->is_end = __builtin_add_overflow(cursor->value, cursor->step, &cursor->value) || is_past(cursor);
	return SQLITE_OK;
}

static int series_eof(sqlite3_vtab_cursor *base)
{
	return ((struct series_cursor *)base)->is_end;
}

static int series_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct series_cursor *cursor = (const struct series_cursor *)base;
	const sqlite3_int64 values[] = { cursor->value, cursor->start, cursor->stop, cursor->step };

	sqlite3_result_int64(context, values[column]);
	return SQLITE_OK;
}

static int series_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct series_cursor *)base)->row;
	return SQLITE_OK;
}

/* Without xCreate, the table exists without CREATE. */
static const sqlite3_module series_module = {
	.xConnect = series_connect,
	.xBestIndex = series_best_index,
	.xDisconnect = series_disconnect,
	.xOpen = series_open,
	.xClose = series_close,
	.xFilter = series_filter,
	.xNext = series_next,
	.xEof = series_eof,
	.xColumn = series_column,
	.xRowid = series_rowid,
};

int series_table_register(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT value FROM generate_series(1, 1)", -1, &statement, NULL);

	sqlite3_finalize(statement);
	if (code == SQLITE_OK) /* the sqlite3 shell has its own */
		return SQLITE_OK;
	return sqlite3_create_module_v2(db, "generate_series", &series_module, NULL, NULL);
}
