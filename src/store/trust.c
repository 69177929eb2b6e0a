/* SPDX-License-Identifier: MIT */
/*
 * trust.c - restrictions of a connection to a foreign file.
 *
 * A recording's schema is text that SQLite compiles: columns may be computed, tables may belong to
 * modules that read other tables, and views may call functions. Anything unnecessary is refused.
 */
#include "src/store/trust.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/store_private.h"

enum {
	BUSY_MS = 1000,
	MAX_ENTRIES = 4096,         /* per file: tables, indexes, views and triggers */
	MAX_NAME_BYTES = 256,       /* per entry */
	MAX_TEXT_BYTES = 1 << 20,   /* SQL text per entry */
	MAX_HEAP_BYTES = 384 << 20, /* of SQLite, all connections of this process */
};

/* Limits that recordings and queries need at most: blocks have at most BLOCK_MAX_BYTES. */
static const struct {
	int what, most;
} limits[] = {
	{ SQLITE_LIMIT_LENGTH, 256 << 20 },
	{ SQLITE_LIMIT_SQL_LENGTH, 4 << 20 },
	{ SQLITE_LIMIT_COLUMN, 1200 },
	{ SQLITE_LIMIT_EXPR_DEPTH, 500 },
	{ SQLITE_LIMIT_COMPOUND_SELECT, 200 },
	{ SQLITE_LIMIT_FUNCTION_ARG, 127 },
	{ SQLITE_LIMIT_ATTACHED, 10 }, /* mostly our in-memory schemas */
	{ SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 10000 },
	{ SQLITE_LIMIT_VARIABLE_NUMBER, 32766 },
	{ SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
	{ SQLITE_LIMIT_WORKER_THREADS, 0 },
};

int store_distrust(sqlite3 *db)
{
	static const struct {
		int what, value;
	} settings[] = {
		{ SQLITE_DBCONFIG_DEFENSIVE, 1 },
		{ SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
		{ SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
		{ SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
		{ SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
		{ SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0 },
	};
	int code = SQLITE_OK;

	for (size_t i = 0; i < N_ELEMENTS(limits); i++)
		sqlite3_limit(db, limits[i].what, limits[i].most);
	for (size_t i = 0; i < N_ELEMENTS(settings) && code == SQLITE_OK; i++)
		code = sqlite3_db_config(db, settings[i].what, settings[i].value, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, BUSY_MS);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
	return code;
}

/* ---- Check the schema ---- */

/* Returns 1 if the query has a row, 0 if not, or negative errno. */
static int has_row(sqlite3 *db, const char *sql)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int code;

	code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	return code == SQLITE_ROW ? 1 : store_read_errno(db, code);
}

static char *strange_sql(void)
{
	return sqlite3_mprintf(
		"SELECT 1 FROM sqlite_schema WHERE type NOT IN ('table', 'index', 'view', 'trigger')"
		" OR typeof(name) <> 'text' OR length(CAST(name AS BLOB)) > %d OR length(CAST(sql AS BLOB)) > %d"
		" OR type = 'table' AND (typeof(rootpage) <> 'integer' OR rootpage < 1)"
		" UNION ALL SELECT 1 FROM (SELECT count(*) AS n FROM sqlite_schema) WHERE n > %d",
		MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_ENTRIES);
}

/* Only for real tables: on a virtual table, this query would connect its module. */
static const char computed_sql[] =
	"SELECT 1 FROM sqlite_schema AS s, pragma_table_xinfo(s.name, 'main') AS c WHERE s.type = 'table' AND c.hidden <> 0";

/* A name of the catalogue must have its kind: a query on a view in a table's place could run for ever. */
static bool is_as_ours(const char *name, const char *type)
{
	const struct catalogue_table *ours = name && type ? catalogue_find("main", name) : NULL;

	/* Samples are a table in files of version 1, and our virtual table in others. */
	return !ours || strcmp(type, ours->kind == CATALOGUE_VIEW ? "view" : "table") == 0;
}

static int check_names(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r = 0;

	code = sqlite3_prepare_v2(db, "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')", -1, &rows,
				  NULL);
	while (r == 0 && (code == SQLITE_OK || code == SQLITE_ROW)) {
		code = sqlite3_step(rows);
		if (code == SQLITE_ROW &&
		    !is_as_ours((const char *)sqlite3_column_text(rows, 0), (const char *)sqlite3_column_text(rows, 1)))
			r = -EMEDIUMTYPE;
	}
	return r < 0 ? r : store_read_errno(db, code);
}

int store_check_schema(sqlite3 *db)
{
	char *sql = strange_sql();
	int r = sql ? has_row(db, sql) : -ENOMEM;

	sqlite3_free(sql);
	if (r == 0)
		r = has_row(db, computed_sql);
	if (r == 0)
		r = check_names(db);
	return r > 0 ? -EMEDIUMTYPE : r;
}

/* ---- Authorizer ---- */

static bool is_of(const char *const *words, const char *word)
{
	for (size_t i = 0; words[i]; i++)
		if (word && sqlite3_stricmp(words[i], word) == 0)
			return true;
	return false;
}

/* These pragmas only read, or are harmless, even with an argument. */
static bool may_ask(const char *pragma, const char *argument)
{
	static const char *const with_argument[] = {
		"table_info",      "table_xinfo",      "table_list",          "index_list",     "index_info",
		"index_xinfo",     "foreign_key_list", "integrity_check",     "quick_check",    "query_only",
		"cell_size_check", "busy_timeout",     "case_sensitive_like", "cache_size",     "temp_store",
		"wal_checkpoint",  "optimize",         "user_version",        "application_id", NULL,
	};

	return !argument || is_of(with_argument, pragma);
}

/*
 * No statement can write (read_vfs.c). The authorizer also blocks other files and loading code.
 * @data: not NULL if the user chooses what to attach.
 */
static int permit_reading(void *data, int action, const char *first, const char *second, const char *database,
			  const char *trigger)
{
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_ATTACH: /* in-memory schemas, which hold our views */
		return data || (first && (strcmp(first, ":memory:") == 0 ||
					  (strncmp(first, "file:", 5) == 0 && strstr(first, "?mode=memory"))))
			       ? SQLITE_OK
			       : SQLITE_DENY;
	case SQLITE_PRAGMA:
		return may_ask(first, second) ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	default:
		return SQLITE_OK;
	}
}

/*
 * SQLite expands nested views before it calls any callback: forty views that each use the one before twice would expand
 * to a trillion. Expansion needs memory, so limit memory. Sorting and grouping use the disk, and honest queries need
 * far less.
 */
static void limit_memory(void)
{
	sqlite3_hard_heap_limit64(MAX_HEAP_BYTES);
}

void trust_read_only(sqlite3 *db)
{
	limit_memory();
	sqlite3_set_authorizer(db, permit_reading, NULL);
}

void store_permit_attach(sqlite3 *db)
{
	static char any_file;

	sqlite3_set_authorizer(db, permit_reading, &any_file);
}

void store_forbid_attach(sqlite3 *db)
{
	sqlite3_set_authorizer(db, permit_reading, NULL);
}
