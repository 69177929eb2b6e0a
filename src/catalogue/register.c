/* SPDX-License-Identifier: MIT */
/*
 * register.c - registers the tables that are not in a file.
 *
 * The file does not change: schemas are attached in-memory databases, and views that an older
 * file lacks are temporary. Existing names remain, for they may be intended:
 * a live process has a python.backtrace of its own.
 */
#include <string.h>

#include "src/catalogue/private.h"

static bool is_attached(sqlite3 *db, const char *schema)
{
	return catalogue_ask(db, "SELECT count(*) FROM pragma_database_list WHERE name = ?", schema) > 0;
}

static int attach(sqlite3 *db, const char *schema)
{
	char *sql;
	int code;

	if (is_attached(db, schema))
		return SQLITE_OK;
	/* Schemas attached to a read-only connection are read-only unless the URI says otherwise. */
	sql = sqlite3_mprintf(sqlite3_db_readonly(db, "main") == 1 ? "ATTACH 'file:%w?mode=memory' AS \"%w\""
								   : "ATTACH ':memory:' AS \"%.0s%w\"",
			      schema, schema);
	code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code;
}

static int add_query(sqlite3 *db, const struct catalogue_table *table)
{
	char *sql;
	int code;

	code = attach(db, table->schema);
	if (code != SQLITE_OK)
		return code;
	sql = sqlite3_mprintf("CREATE VIRTUAL TABLE IF NOT EXISTS \"%w\".\"%w\" USING probing_query", table->schema,
			      table->name);
	code = sql ? catalogue_execute(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code;
}

/* A file may be too old for a view: then drop the view. */
static int drop_if_unreadable(sqlite3 *db, const char *name)
{
	sqlite3_stmt *statement = NULL;
	char *look = sqlite3_mprintf("SELECT 1 FROM temp.\"%w\" LIMIT 0", name);
	char *drop = sqlite3_mprintf("DROP VIEW temp.\"%w\"", name);
	int code = SQLITE_NOMEM;

	if (look && drop) {
		code = sqlite3_prepare_v2(db, look, -1, &statement, NULL);
		sqlite3_finalize(statement);
		if (code != SQLITE_OK && code != SQLITE_NOMEM)
			code = catalogue_execute(db, drop);
	}
	sqlite3_free(look);
	sqlite3_free(drop);
	return code;
}

/*
 * Whether the name leads to our view. A different view in the file is of another version, or malicious: a temporary
 * view hides it. Other objects stay.
 */
static bool is_ours(sqlite3 *db, const struct catalogue_table *table)
{
	static const char question[] =
		"SELECT 1 FROM main.sqlite_schema WHERE name = %Q"
		" AND (type <> 'view' OR rtrim(sql, char(10, 32, 59)) = rtrim(?1, char(10, 32, 59)))"
		" UNION ALL SELECT 1 FROM temp.sqlite_schema WHERE name = %Q LIMIT 1";
	char *sql = sqlite3_mprintf(question, table->name, table->name);
	bool is = sql && catalogue_ask(db, sql, table->ddl) > 0;

	sqlite3_free(sql);
	return is;
}

static int add_view(sqlite3 *db, const struct catalogue_table *table)
{
	static const char create[] = "CREATE VIEW ";
	char *sql;
	int code;

	if (is_ours(db, table))
		return SQLITE_OK;
	sql = sqlite3_mprintf("CREATE TEMP VIEW %s", table->ddl + strlen(create));
	code = sql ? catalogue_execute(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code == SQLITE_OK ? drop_if_unreadable(db, table->name) : code;
}

/* Statements about whole runs also hold for several recordings, because they use no stack numbers. */
static bool is_of_runs(sqlite3 *db, const struct catalogue_table *table)
{
	return strcmp(table->schema, "cluster") == 0 &&
	       catalogue_ask(db, "SELECT count(*) FROM main.sqlite_schema WHERE name = ?1", "run") > 0;
}

/* Our views need these tables: create empty ones if the file lacks them, because it is older or has no rows for them. */
static int add_empty(sqlite3 *db, const struct catalogue_table *table)
{
	const char *create = table->is_optional ? "CREATE TABLE IF NOT EXISTS " : "CREATE TABLE ";
	char *sql;
	int code;

	if (catalogue_ask(db, "SELECT 1 FROM main.sqlite_schema WHERE name = ?1", table->name) > 0)
		return SQLITE_OK;
	sql = sqlite3_mprintf("CREATE TEMP TABLE IF NOT EXISTS %s", table->ddl + strlen(create));
	code = sql ? catalogue_execute(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return code;
}

int catalogue_add_optional(sqlite3 *db, const char *prefix)
{
	int code = SQLITE_OK;

	for (size_t i = 0; catalogue_tables[i] && code == SQLITE_OK; i++)
		if (catalogue_tables[i]->is_optional && strncmp(catalogue_tables[i]->name, prefix, strlen(prefix)) == 0)
			code = sqlite3_exec(db, catalogue_tables[i]->ddl, NULL, NULL, NULL);
	return code;
}

static int add(sqlite3 *db, const struct catalogue_table *table, bool is_recording)
{
	if (table->kind == CATALOGUE_TABLE && is_recording)
		return add_empty(db, table);
	if (table->kind != CATALOGUE_VIEW)
		return SQLITE_OK;
	if (strcmp(table->schema, "information_schema") == 0 || is_of_runs(db, table))
		return add_query(db, table);
	if (!is_recording)
		return SQLITE_OK;
	return strcmp(table->schema, "main") == 0 ? add_view(db, table) : add_query(db, table);
}

int catalogue_register(sqlite3 *db)
{
	bool is_recording = catalogue_is_recording(db);
	int code;

	code = remarks_register(db);
	if (code == SQLITE_OK)
		code = query_table_register(db);
	for (size_t i = 0; catalogue_tables[i] && code == SQLITE_OK; i++)
		code = add(db, catalogue_tables[i], is_recording);
	return code;
}
