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

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/store_private.h"

enum {
	BUSY_MS = 1000,
	MAX_ENTRIES = 4096,         /* tables, indexes, views and triggers of a file */
	MAX_NAME_BYTES = 256,       /* of one of them */
	MAX_TEXT_BYTES = 1 << 20,   /* that describe one of them */
	MAX_HEAP_BYTES = 384 << 20, /* of SQLite's own, of all its connections in this process */
};

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/* What a recording needs at most, and a question about one: samples lie in blocks of BLOCK_MAX_BYTES. */
static const struct {
	int what, most;
} limits[] = {
	{ SQLITE_LIMIT_LENGTH, 256 << 20 },
	{ SQLITE_LIMIT_SQL_LENGTH, 4 << 20 },
	{ SQLITE_LIMIT_COLUMN, 1200 },
	{ SQLITE_LIMIT_EXPR_DEPTH, 500 },
	{ SQLITE_LIMIT_COMPOUND_SELECT, 200 },
	{ SQLITE_LIMIT_FUNCTION_ARG, 127 },
	{ SQLITE_LIMIT_ATTACHED, 10 }, /* schemas of ours in memory take most */
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

/* ---- What the schema describes ---- */

/* 0: no row, 1: there is one, or negative errno. */
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

/* Asked of real tables alone: for any other this would make its module connect. */
static const char computed_sql[] =
	"SELECT 1 FROM sqlite_schema AS s, pragma_table_xinfo(s.name, 'main') AS c WHERE s.type = 'table' AND c.hidden <> 0";

/* What recordings have under a name nothing else may be: a view in the place of a table could claim anything, for
 * ever. */
static bool is_as_ours(const char *name, const char *type)
{
	const struct catalogue_table *ours = name && type ? catalogue_find("main", name) : NULL;

	/* Samples are a table in files of version 1, and ours to show in others. */
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

/* ---- What may be asked ---- */

static bool is_of(const char *const *words, const char *word)
{
	for (size_t i = 0; words[i]; i++)
		if (word && sqlite3_stricmp(words[i], word) == 0)
			return true;
	return false;
}

/* With an argument these ask, too, where others change something. */
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

/* No statement can write (read_vfs.c). The authorizer keeps them from other files and from loading code.
 * @data: not NULL where the user chooses what to attach. */
static int permit_reading(void *data, int action, const char *first, const char *second, const char *database,
			  const char *trigger)
{
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_ATTACH: /* schemas of memory, which hold views of ours */
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
 * SQLite takes views apart as deep as they go before it asks anybody whether to go on: forty views over two of the
 * view before are a trillion. What that takes is memory, so memory is what ends it. Sorting and grouping go to the
 * disk, and a question that is no attack stays far below.
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
