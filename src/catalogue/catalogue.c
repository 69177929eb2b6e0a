/* SPDX-License-Identifier: MIT */
/*
 * catalogue.c - searches the descriptors, and declares them to SQLite.
 */
#include "src/catalogue/catalogue.h"

#include <string.h>

#include "src/catalogue/private.h"

const struct catalogue_table *catalogue_find(const char *schema, const char *name)
{
	for (const struct catalogue_table *const *table = catalogue_tables; *table; table++)
		if (sqlite3_stricmp((*table)->schema, schema) == 0 && sqlite3_stricmp((*table)->name, name) == 0)
			return *table;
	return NULL;
}

const struct catalogue_column *catalogue_find_column(const struct catalogue_table *table, const char *name)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (sqlite3_stricmp(table->columns[i].name, name) == 0)
			return &table->columns[i];
	return NULL;
}

int catalogue_declare(sqlite3 *db, const struct catalogue_table *table)
{
	sqlite3_str *sql = sqlite3_str_new(db);
	char *text;
	int code;

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct catalogue_column *column = &table->columns[i];

		sqlite3_str_appendf(sql, "%s\"%w\" %s%s", i == 0 ? "CREATE TABLE x(" : ", ", column->name,
				    strcmp(column->type, "ANY") == 0 ? "" : column->type,
				    column->not_null ? " NOT NULL" : "");
	}
	sqlite3_str_appendall(sql, ")");
	text = sqlite3_str_finish(sql);
	code = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
	sqlite3_free(text);
	return code;
}

sqlite3_int64 catalogue_ask(sqlite3 *db, const char *sql, const char *argument)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_int64 answer = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		return 0;
	if ((!argument || sqlite3_bind_text(statement, 1, argument, -1, SQLITE_STATIC) == SQLITE_OK) &&
	    sqlite3_step(statement) == SQLITE_ROW)
		answer = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return answer;
}

int catalogue_execute(sqlite3 *db, const char *sql)
{
	bool query_only = catalogue_ask(db, "PRAGMA query_only", NULL) != 0;
	int code = SQLITE_OK, again = SQLITE_OK;

	if (query_only)
		code = sqlite3_exec(db, "PRAGMA query_only = OFF", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	if (query_only)
		again = sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL);
	return code != SQLITE_OK ? code : again;
}

/* A column of a program's table may have any name. */
static bool is_plain(const char *name)
{
	return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

/* Column lines of the declaration; NULL: out of memory. */
static char *column_lines(const struct catalogue_table *table)
{
	sqlite3_str *lines = sqlite3_str_new(NULL);

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct catalogue_column *column = &table->columns[i];

		sqlite3_str_appendf(
			lines, is_plain(column->name) ? "  %w %s%s%s -- %s%s%s%s\n" : "  \"%w\" %s%s%s -- %s%s%s%s\n",
			column->name, column->type, column->not_null ? " NOT NULL" : "",
			i + 1 < table->n_columns ? "," : "", column->unit ? "[" : "", column->unit ? column->unit : "",
			column->unit ? "] " : "", column->doc);
	}
	return sqlite3_str_finish(lines);
}

int catalogue_create_virtual(sqlite3 *db, const struct catalogue_table *table, const char *module)
{
	char *lines = column_lines(table), *sql = NULL;
	int code = SQLITE_NOMEM;

	if (lines)
		sql = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\".\"%w\" USING %s( -- %s\n%s)", table->schema,
				      table->name, module, table->doc, lines);
	if (sql)
		code = catalogue_execute(db, sql);
	sqlite3_free(sql);
	sqlite3_free(lines);
	return code;
}

bool catalogue_is_recording(sqlite3 *db)
{
	return catalogue_ask(db,
			     "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0"
			     " AND name IN ('stack', 'stack_total', 'frame', 'function')",
			     NULL) == 4;
}
