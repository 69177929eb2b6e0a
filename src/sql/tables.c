/* SPDX-License-Identifier: MIT */
/* tables.c - tables and columns of a connection.
 *
 * SQLite lists all but eponymous virtual tables: the samples of a recording may be one
 * of these.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/ddl.h"
#include "src/sql/sql.h"
#include "src/sql/tables.h"

enum {
	MAX_DOC = 400,
	MAX_COUNTED = 1000000,
	LIST_BYTES = 48 << 20, /* an eighth of what queries get (trust.c) */
};

const char tables_sql[] =
	"SELECT schema, name, type FROM pragma_table_list AS l WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
	/* Omit temporary tables that replace a view of the file: they have the same rows. */
	" AND NOT (schema = 'temp' AND EXISTS (SELECT 1 FROM pragma_table_list AS m WHERE m.schema = 'main' AND m.name = l.name))"
	" UNION ALL SELECT 'main', column1, 'virtual' FROM (VALUES ('sample'), ('sample_total'))"
	" WHERE NOT EXISTS (SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND name = column1)"
	" AND EXISTS (SELECT 1 FROM pragma_table_xinfo(column1))";

/* A query's own limit (memory.c) may be lower, and holds. */
sqlite3_int64 tables_begin(void)
{
	sqlite3_int64 before = sqlite3_hard_heap_limit64(-1), limit = sqlite3_memory_used() + LIST_BYTES;

	return sqlite3_hard_heap_limit64(before > 0 ? MIN(before, limit) : limit);
}

void tables_endp(const sqlite3_int64 *before)
{
	sqlite3_hard_heap_limit64(*before);
}

/* Only the first sentence: "A sample: what a thread did. Unpacked ..." is too long for a list. */
static void take_sentence(const char *doc, char *to, size_t n_bytes)
{
	const char *end = strstr(doc, ". ");

	snprintf(to, n_bytes, "%.*s", end ? (int)(end - doc) : (int)strcspn(doc, "\n"), doc);
	if (!end && to[0] && to[strlen(to) - 1] == '.')
		to[strlen(to) - 1] = '\0';
}

static void read_doc(sqlite3 *db, const char *schema, const char *name, char *to, size_t n_bytes)
{
	const struct catalogue_table *described = catalogue_find(schema, name);
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char *sql;

	to[0] = '\0';
	if (described) {
		take_sentence(described->doc, to, n_bytes);
		return;
	}
	sql = sqlite3_mprintf("SELECT sql FROM \"%w\".sqlite_schema WHERE name = %Q", schema, name);
	if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		ddl_doc((const char *)sqlite3_column_text(statement, 0), to, n_bytes);
	sqlite3_free(sql);
}

const char *tables_schema(sqlite3 *db, const char *table)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;

	return sqlite3_prepare_v2(db, "SELECT 1 FROM temp.sqlite_schema WHERE name = ?1 COLLATE NOCASE", -1, &row,
				  NULL) == SQLITE_OK &&
			       sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC) == SQLITE_OK &&
			       sqlite3_step(row) == SQLITE_ROW
		       ? "temp"
		       : "main";
}

/* Count the rows only of real tables that are small. */
static int64_t count_rows(sqlite3 *db, const struct sql_table *table)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int64_t n = -1;
	char *sql;

	if (strcmp(table->type, "table") != 0)
		return -1;
	sql = sqlite3_mprintf("SELECT count(*) FROM (SELECT 1 FROM \"%w\".\"%w\" LIMIT %d)",
			      strcmp(table->schema, "main") == 0 ? tables_schema(db, table->name) : table->schema,
			      table->name, MAX_COUNTED + 1);
	if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		n = sqlite3_column_int64(statement, 0);
	sqlite3_free(sql);
	return n > MAX_COUNTED ? -1 : n;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return text ? text : "";
}

/* "samp" matches anywhere, "stack%" at the beginning. */
static char *like_of(const char *pattern)
{
	return !pattern               ? sqlite3_mprintf("%%")
	       : strchr(pattern, '%') ? sqlite3_mprintf("%s", pattern)
				      : sqlite3_mprintf("%%%s%%", pattern);
}

int sql_each_table(sqlite3 *db, const char *pattern, int (*take)(void *data, const struct sql_table *table), void *data)
{
	CLEANUP(tables_endp) sqlite3_int64 before = tables_begin();
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char doc[MAX_DOC], *sql = NULL;
	int code, r = 0;

	(void)before;
	sql = sqlite3_mprintf("SELECT t.schema, t.name, t.type, (SELECT group_concat(c.name, ', ') FROM"
			      " pragma_table_xinfo(t.name, t.schema) c WHERE c.hidden <> 1) FROM (%s) t"
			      " WHERE t.type <> 'shadow' AND (t.name LIKE ?1 OR t.schema || '.' || t.name LIKE ?1)"
			      " ORDER BY t.schema <> 'main', t.schema, t.name",
			      tables_sql);
	if (!sql)
		return -ENOMEM;
	code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	sqlite3_free(sql);
	if (code != SQLITE_OK)
		return code == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
	sqlite3_bind_text(statement, 1, like_of(pattern), -1, sqlite3_free);
	while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct sql_table table = {
			.schema = text_of(statement, 0),
			.name = text_of(statement, 1),
			.type = text_of(statement, 2),
			.doc = doc,
			.columns = text_of(statement, 3),
		};

		read_doc(db, table.schema, table.name, doc, sizeof doc);
		table.n_rows = count_rows(db, &table);
		r = take(data, &table);
	}
	if (r >= 0 && code == SQLITE_NOMEM)
		return -E2BIG;
	return r < 0 ? r : code == SQLITE_DONE || code == SQLITE_ROW ? 0 : -EINVAL;
}
