/* tables.c - which tables a connection has, and what is in them.
 *
 * SQLite lists all but the virtual tables that stand in no schema: the samples of a recording may be one
 * of these.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/ddl.h"
#include "src/sql/sql.h"
#include "src/sql/tables.h"

enum { MAX_DOC = 400, MAX_COUNTED = 1000000 };

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

const char tables_sql[] =
	"SELECT schema, name, type FROM pragma_table_list WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
	" UNION ALL SELECT 'main', 'sample', 'virtual'"
	" WHERE NOT EXISTS (SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND name = 'sample')"
	" AND EXISTS (SELECT 1 FROM pragma_table_xinfo('sample'))";

/* Of a recording; its own declarations have comments on columns alone. */
static const struct {
	const char *name, *doc;
} docs[] = {
	{ "run", "the recording itself: what was recorded, when, how" },
	{ "process", "a process that was recorded" },
	{ "thread", "a thread of such a process" },
	{ "module", "a file with code that was mapped" },
	{ "function", "a function, with its name and file" },
	{ "frame", "a place in the code" },
	{ "stack", "a stack: its innermost frame, and the stack of the caller" },
	{ "stack_total", "how many samples of a thread were in a stack, and how long that was" },
	{ "sample", "a sample: when, of which thread, in which stack" },
	{ "evaluation_place", "where an interpreter's functions keep what their Python frames are known by" },
	{ "pause", "a time in which recording was paused" },
	{ "counter", "a count of the recording: samples, lost ones, ..." },
	{ "named_frame", "a frame with its name, for reading" },
};

static const char *known_doc(const char *schema, const char *name)
{
	for (size_t i = 0; strcmp(schema, "main") == 0 && i < N_ELEMENTS(docs); i++)
		if (strcasecmp(docs[i].name, name) == 0)
			return docs[i].doc;
	return "";
}

static void read_doc(sqlite3 *db, const char *schema, const char *name, char *to, size_t n_bytes)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char *sql = sqlite3_mprintf("SELECT sql FROM \"%w\".sqlite_schema WHERE name = %Q", schema, name);

	to[0] = '\0';
	if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		ddl_doc((const char *)sqlite3_column_text(statement, 0), to, n_bytes);
	sqlite3_free(sql);
	if (!to[0])
		snprintf(to, n_bytes, "%s", known_doc(schema, name));
}

/* Where SQLite keeps the rows itself, and there are not too many. */
static int64_t count_rows(sqlite3 *db, const struct sql_table *table)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int64_t n = -1;
	char *sql;

	if (strcmp(table->type, "table") != 0)
		return -1;
	sql = sqlite3_mprintf("SELECT count(*) FROM (SELECT 1 FROM \"%w\".\"%w\" LIMIT %d)", table->schema, table->name,
			      MAX_COUNTED + 1);
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

/* "samp" is looked for anywhere, "stack%" at the beginning. */
static char *like_of(const char *pattern)
{
	return !pattern ? sqlite3_mprintf("%%")
	       : strchr(pattern, '%') ? sqlite3_mprintf("%s", pattern) : sqlite3_mprintf("%%%s%%", pattern);
}

int sql_each_table(sqlite3 *db, const char *pattern, int (*take)(void *data, const struct sql_table *table),
		   void *data)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char doc[MAX_DOC], *sql = NULL;
	int code, r = 0;

	sql = sqlite3_mprintf("SELECT t.schema, t.name, t.type, (SELECT group_concat(c.name, ', ') FROM"
			      " pragma_table_xinfo(t.name, t.schema) c WHERE c.hidden <> 1) FROM (%s) t"
			      " WHERE t.type <> 'shadow' AND (t.name LIKE ?1 OR t.schema || '.' || t.name LIKE ?1)"
			      " ORDER BY t.schema <> 'main', t.schema, t.name", tables_sql);
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
	return r < 0 ? r : code == SQLITE_DONE || code == SQLITE_ROW ? 0 : -EINVAL;
}
