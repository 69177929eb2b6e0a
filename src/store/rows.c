/* SPDX-License-Identifier: MIT */
/*
 * rows.c - recreates tables of one database in another.
 *
 * A file contains the SQL text of its tables, and a file may be crafted. So this code generates the SQL itself, from
 * our own catalogue or from the quoted names of columns.
 */
#include <errno.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/store_private.h"

enum { STEP_ROWS = 4096 };

/* Takes ownership of sql; NULL: out of memory. */
static int prepare(sqlite3 *db, char *sql, sqlite3_stmt **ret)
{
	int code = sql ? sqlite3_prepare_v2(db, sql, -1, ret, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return store_errno(db, code);
}

static int execute(sqlite3 *db, char *sql)
{
	int r = sql ? store_exec(db, sql) : -ENOMEM;

	sqlite3_free(sql);
	return r;
}

static bool has_column(sqlite3 *db, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(db, "main", table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/* Whether the schema has an object of this name, of any kind. */
static bool is_in_schema(sqlite3 *db, const char *name)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *found = NULL;

	return prepare(db, sqlite3_mprintf("SELECT 1 FROM sqlite_schema WHERE name = %Q COLLATE NOCASE", name),
		       &found) >= 0 &&
	       sqlite3_step(found) == SQLITE_ROW;
}

/* ---- Rows ---- */

/* Names, as "\"a\", \"b\"", of the columns of @rows that the other table also has; a blank if there are none. */
static char *common_columns(sqlite3_stmt *rows, sqlite3 *to, const char *table, int *ret_n)
{
	sqlite3_str *columns = sqlite3_str_new(NULL);

	*ret_n = 0;
	for (int i = 0; i < sqlite3_column_count(rows); i++)
		if (has_column(to, table, sqlite3_column_name(rows, i)))
			sqlite3_str_appendf(columns, (*ret_n)++ == 0 ? "\"%w\"" : ", \"%w\"",
					    sqlite3_column_name(rows, i));
	if (*ret_n == 0) /* sqlite3_str_finish() returns NULL for an empty string, like out of memory */
		sqlite3_str_appendf(columns, " ");
	return sqlite3_str_finish(columns);
}

static char *insert_sql(const char *table, const char *columns, int n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO main.\"%w\"(%s) VALUES", table, columns);
	for (int i = 0; i < n; i++)
		sqlite3_str_appendf(sql, i == 0 ? "(?" : ",?");
	sqlite3_str_appendf(sql, ")");
	return sqlite3_str_finish(sql);
}

/* Prepare statements that read and write the common columns; *ret_rows stays NULL if there are none. */
static int prepare_both(sqlite3 *from, sqlite3 *to, const char *table, sqlite3_stmt **ret_rows,
			sqlite3_stmt **ret_write)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *all = NULL;
	char *columns;
	int n, r;

	r = prepare(from, sqlite3_mprintf("SELECT * FROM \"%w\"", table), &all);
	if (r < 0)
		return r;
	columns = common_columns(all, to, table, &n);
	if (!columns)
		return -ENOMEM;
	if (n > 0)
		r = prepare(from, sqlite3_mprintf("SELECT %s FROM \"%w\"", columns, table), ret_rows);
	if (n > 0 && r >= 0)
		r = prepare(to, insert_sql(table, columns, n), ret_write);
	sqlite3_free(columns);
	return r;
}

static int copy_row(sqlite3 *to, sqlite3_stmt *row, sqlite3_stmt *write)
{
	int r = 0;

	for (int i = 0; i < sqlite3_column_count(row) && r >= 0; i++)
		r = store_errno(to, sqlite3_bind_value(write, i + 1, sqlite3_column_value(row, i)));
	if (r >= 0)
		r = store_read_errno(to, sqlite3_step(write)); /* a row that the table rejects means damage */
	sqlite3_reset(write);
	return r;
}

int store_copy_rows(sqlite3 *from, sqlite3 *to, const char *table, bool (*keep_going)(void *data, uint64_t n),
		    void *data)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	uint64_t n = 0;
	int code = SQLITE_DONE, r;

	r = prepare_both(from, to, table, &rows, &write);
	while (r >= 0 && rows && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = copy_row(to, rows, write);
		if (r >= 0 && ++n % STEP_ROWS == 0 && keep_going && !keep_going(data, n))
			r = -ECANCELED;
	}
	return r < 0 ? r : store_read_errno(from, code);
}

/* ---- Tables ---- */

/* Whether a table has exactly the columns of ours. */
static bool is_as_described(sqlite3 *from, const struct catalogue_table *described, int n_columns)
{
	if ((size_t)n_columns != described->n_columns)
		return false;
	for (size_t i = 0; i < described->n_columns; i++)
		if (!has_column(from, described->name, described->columns[i].name))
			return false;
	return true;
}

/* The declared type determines a column's affinity; an unknown type gives none. */
static const char *plain_type(const char *declared)
{
	static const char *const types[] = { "INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC", "INT" };

	for (size_t i = 0; declared && i < N_ELEMENTS(types); i++)
		if (sqlite3_stricmp(declared, types[i]) == 0)
			return types[i];
	return "";
}

/* Columns and key as declared: "\"a\" TEXT, \"b\" INTEGER, PRIMARY KEY(\"a\")". */
static int describe(sqlite3 *from, const char *table, sqlite3_str *columns)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	sqlite3_str *key = sqlite3_str_new(from);
	char *key_columns;
	int code = SQLITE_OK, r;

	r = prepare(from,
		    sqlite3_mprintf("SELECT name, type, pk FROM pragma_table_xinfo(%Q, 'main') ORDER BY cid", table),
		    &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);

		sqlite3_str_appendf(columns, "%s\"%w\" %s", sqlite3_str_length(columns) > 0 ? ", " : "",
				    name ? name : "", plain_type((const char *)sqlite3_column_text(rows, 1)));
		if (sqlite3_column_int(rows, 2) > 0)
			sqlite3_str_appendf(key, "%s\"%w\"", sqlite3_str_length(key) > 0 ? ", " : "", name ? name : "");
	}
	key_columns = sqlite3_str_finish(key);
	if (key_columns)
		sqlite3_str_appendf(columns, ", PRIMARY KEY(%s)", key_columns);
	sqlite3_free(key_columns);
	return r < 0 ? r : store_read_errno(from, code);
}

/* Create a table that differs from ours or is unknown. */
static int create_plain(sqlite3 *from, sqlite3 *to, const char *table)
{
	sqlite3_str *columns = sqlite3_str_new(from);
	char *text;
	int r;

	r = describe(from, table, columns);
	text = sqlite3_str_finish(columns);
	if (r >= 0)
		r = text ? execute(to, sqlite3_mprintf("CREATE TABLE main.\"%w\"(%s)", table, text)) : -EBADMSG;
	sqlite3_free(text);
	return r;
}

static int count_columns(sqlite3 *from, const char *table, int *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *all = NULL;
	int r = prepare(from, sqlite3_mprintf("SELECT * FROM \"%w\"", table), &all);

	if (r >= 0)
		*ret = sqlite3_column_count(all);
	return r;
}

static int create_table(sqlite3 *from, sqlite3 *to, const char *table)
{
	const struct catalogue_table *described = catalogue_find("main", table);
	int n_columns, r;

	r = count_columns(from, table, &n_columns);
	if (r < 0)
		return r;
	if (described && described->kind == CATALOGUE_TABLE && is_as_described(from, described, n_columns))
		return store_exec(to, described->ddl);
	return create_plain(from, to, table);
}

/* ---- Indexes ---- */

/* "\"a\", \"b\""; for an index on expressions *ret is NULL. */
static int index_columns(sqlite3 *from, const char *index, char **ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	sqlite3_str *columns = sqlite3_str_new(from);
	bool is_plain = true;
	int code = SQLITE_OK, r;

	r = prepare(from, sqlite3_mprintf("SELECT name FROM pragma_index_info(%Q, 'main') ORDER BY seqno", index),
		    &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);

		is_plain &= name != NULL;
		sqlite3_str_appendf(columns, "%s\"%w\"", sqlite3_str_length(columns) > 0 ? ", " : "", name ? name : "");
	}
	*ret = sqlite3_str_finish(columns);
	if (!is_plain) {
		sqlite3_free(*ret);
		*ret = NULL;
	}
	return r < 0 ? r : store_read_errno(from, code);
}

static int copy_index(sqlite3 *from, sqlite3 *to, const char *table, const char *index, bool is_unique, bool is_partial)
{
	char *columns = NULL;
	int r;

	r = is_partial ? 0 : index_columns(from, index, &columns);
	if (r >= 0 && columns)
		r = execute(to, sqlite3_mprintf("CREATE %s INDEX main.\"%w\" ON \"%w\"(%s)", is_unique ? "UNIQUE" : "",
						index, table, columns));
	if (r >= 0 && !columns)
		store_notice("the index %s is not copied: it has expressions or a WHERE clause", index);
	sqlite3_free(columns);
	return r;
}

static int copy_indexes(sqlite3 *from, sqlite3 *to, const char *table)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_OK, r;

	r = prepare(from,
		    sqlite3_mprintf("SELECT name, \"unique\", partial FROM pragma_index_list(%Q, 'main')"
				    " WHERE origin = 'c'",
				    table),
		    &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = copy_index(from, to, table, (const char *)sqlite3_column_text(rows, 0),
			       sqlite3_column_int(rows, 1) != 0, sqlite3_column_int(rows, 2) != 0);
	return r < 0 ? r : store_read_errno(from, code);
}

bool store_is_own_name(const char *name)
{
	return catalogue_find("main", name) != NULL;
}

int store_copy_table(sqlite3 *from, sqlite3 *to, const char *table, bool (*keep_going)(void *data, uint64_t n),
		     void *data)
{
	int r = is_in_schema(to, table) ? -EBADMSG : create_table(from, to, table);

	if (r >= 0)
		r = store_copy_rows(from, to, table, keep_going, data);
	return r < 0 ? r : copy_indexes(from, to, table);
}

/* ---- Views ---- */

/* Permit only creating one view and recording it in the schema. @data: the view's name. */
static int permit_view(void *data, int action, const char *first, const char *second, const char *database,
		       const char *trigger)
{
	const char *name = data;

	(void)second;
	(void)trigger;
	switch (action) {
	case SQLITE_CREATE_VIEW:
		return strcmp(first, name) == 0 && database && strcmp(database, "main") == 0 ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_READ:
		return strcmp(first, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* Runs only the first statement of the text. SQLite compiles a view's SELECT only at a query. */
static int create_view(sqlite3 *to, const char *name, const char *sql)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char *own_name = sqlite3_mprintf("%s", name);
	int code = SQLITE_NOMEM;

	if (own_name) {
		sqlite3_set_authorizer(to, permit_view, own_name);
		code = sqlite3_prepare_v2(to, sql, -1, &statement, NULL);
		if (code == SQLITE_OK)
			code = sqlite3_step(statement);
		sqlite3_set_authorizer(to, NULL, NULL);
	}
	sqlite3_free(own_name);
	return code == SQLITE_NOMEM ? -ENOMEM : code == SQLITE_DONE ? 0 : store_errno(to, code);
}

/* A view can only be copied as text; see permit_view(). */
static int copy_view(sqlite3 *to, const char *name, const char *sql)
{
	const struct catalogue_table *described = catalogue_find("main", name);
	int r;

	if (described)
		return described->kind == CATALOGUE_VIEW ? store_exec(to, described->ddl) : 0;
	r = create_view(to, name, sql);
	if (r != -EINVAL && r != -EACCES)
		return r;
	store_notice("the view %s is not copied: it is not a plain view", name);
	return 0;
}

int store_copy_views(sqlite3 *from, sqlite3 *to)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_OK, r;

	r = prepare(from,
		    sqlite3_mprintf("SELECT name, sql FROM sqlite_schema WHERE type = 'view' AND sql IS NOT NULL"),
		    &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0),
			   *sql = (const char *)sqlite3_column_text(rows, 1);

		if (!name || !sql)
			r = -EBADMSG;
		else if (!is_in_schema(to, name))
			r = copy_view(to, name, sql);
	}
	return r < 0 ? r : store_read_errno(from, code);
}
