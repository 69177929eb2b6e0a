/* SPDX-License-Identifier: MIT */
/*
 * query_table.c - a table of a schema of ours that is a query over what the connection has.
 *
 * A view can only refer to tables of its own database. These are in attached in-memory databases,
 * and refer to the recording's tables, so each is a virtual table that runs its query on the
 * same connection when it is read. They are small: no constraint is pushed down into them.
 */
#include "src/catalogue/private.h"

struct query_table {
	sqlite3_vtab base; /* first: SQLite casts pointers to it */
	sqlite3 *db;
	const struct catalogue_table *table;
};

struct query_cursor {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	sqlite3_stmt *statement;
	sqlite3_int64 row;
	bool is_end;
};

/* @arguments: module, schema, name. */
static int query_connect(sqlite3 *db, void *data, int n, const char *const *arguments, sqlite3_vtab **ret, char **error)
{
	const struct catalogue_table *table = n >= 3 ? catalogue_find(arguments[1], arguments[2]) : NULL;
	struct query_table *made;
	int code;

	(void)data;
	if (!table || !table->query) {
		*error = sqlite3_mprintf("there is no query of that name");
		return SQLITE_ERROR;
	}
	code = catalogue_declare(db, table);
	if (code != SQLITE_OK)
		return code;
	made = sqlite3_malloc(sizeof *made);
	if (!made)
		return SQLITE_NOMEM;
	*made = (struct query_table){ .db = db, .table = table };
	*ret = &made->base;
	return SQLITE_OK;
}

static int query_disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int query_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->estimatedCost = 10000;
	info->estimatedRows = 1000;
	return SQLITE_OK;
}

static int query_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	struct query_cursor *cursor = sqlite3_malloc(sizeof *cursor);

	(void)table;
	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct query_cursor){ .is_end = true };
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int query_close(sqlite3_vtab_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;

	sqlite3_finalize(cursor->statement);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

/* Pass on the error of the inner query. */
static int pass_error(sqlite3_vtab *base, int code)
{
	struct query_table *table = (struct query_table *)base;

	sqlite3_free(base->zErrMsg);
	base->zErrMsg = sqlite3_mprintf("%s.%s: %s", table->table->schema, table->table->name,
					sqlite3_errmsg(table->db));
	return code;
}

static int query_next(sqlite3_vtab_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	int code = sqlite3_step(cursor->statement);

	cursor->row++;
	cursor->is_end = code != SQLITE_ROW;
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		return SQLITE_OK;
	return pass_error(base->pVtab, code);
}

static int query_filter(sqlite3_vtab_cursor *base, int plan, const char *text, int n, sqlite3_value **arguments)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	struct query_table *table = (struct query_table *)base->pVtab;
	int code;

	(void)plan;
	(void)text;
	(void)n;
	(void)arguments;
	sqlite3_finalize(cursor->statement);
	cursor->statement = NULL;
	cursor->row = 0;
	code = sqlite3_prepare_v2(table->db, table->table->query, -1, &cursor->statement, NULL);
	return code == SQLITE_OK ? query_next(base) : pass_error(base->pVtab, code);
}

static int query_eof(sqlite3_vtab_cursor *base)
{
	return ((struct query_cursor *)base)->is_end;
}

static int query_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	sqlite3_result_value(context, sqlite3_column_value(((struct query_cursor *)base)->statement, column));
	return SQLITE_OK;
}

static int query_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct query_cursor *)base)->row;
	return SQLITE_OK;
}

static const sqlite3_module query_module = {
	.xCreate = query_connect,
	.xConnect = query_connect,
	.xBestIndex = query_best_index,
	.xDisconnect = query_disconnect,
	.xDestroy = query_disconnect,
	.xOpen = query_open,
	.xClose = query_close,
	.xFilter = query_filter,
	.xNext = query_next,
	.xEof = query_eof,
	.xColumn = query_column,
	.xRowid = query_rowid,
};

int query_table_register(sqlite3 *db)
{
	return sqlite3_create_module_v2(db, "probing_query", &query_module, NULL, NULL);
}
