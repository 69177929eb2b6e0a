/*
 * export_sqlite.c - everything as plain tables in a SQLite file of its own.
 *
 * However a recording keeps its samples, here they are rows, so that any SQLite tool has all of it without us.
 * What the other tables are is taken from the recording itself, comments included. The file is a
 * recording, too, of the version whose samples are a plain table.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/export/export.h"

enum { PLAIN_VERSION = 1 };

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

static int execute(sqlite3 *db, const char *sql)
{
	return store_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

/* The file appears only when it is whole, so it needs no way back. */
static int open_new(const char *path, sqlite3 **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	char sql[160];
	int r;

	r = store_errno(NULL, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE,
					      NULL));
	sqlite3_snprintf(sizeof sql, sql, "PRAGMA page_size = %d; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
			 "PRAGMA application_id = %d; PRAGMA user_version = %d; BEGIN", STORE_PAGE_BYTES,
			 STORE_APPLICATION_ID, PLAIN_VERSION);
	if (r >= 0)
		r = execute(db, sql);
	if (r < 0)
		return r;
	*ret = TAKE(db);
	return 0;
}

static const char *type_of(sqlite3_stmt *rows, int column)
{
	const char *type = sqlite3_column_decltype(rows, column);

	return type ? type : "";
}

/* Its columns as they are read. */
static int create_sample(sqlite3 *from, sqlite3 *to)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	sqlite3_str *sql;
	char *text;
	int r;

	r = store_errno(from, sqlite3_prepare_v2(from, "SELECT * FROM sample", -1, &rows, NULL));
	if (r < 0)
		return r;
	sql = sqlite3_str_new(NULL);
	sqlite3_str_appendf(sql, "CREATE TABLE sample");
	for (int i = 0; i < sqlite3_column_count(rows); i++)
		sqlite3_str_appendf(sql, "%s\n  \"%w\" %s", i == 0 ? "(" : ",", sqlite3_column_name(rows, i), type_of(rows, i));
	sqlite3_str_appendf(sql, "\n)");
	text = sqlite3_str_finish(sql);
	r = text ? execute(to, text) : -ENOMEM;
	sqlite3_free(text);
	return r;
}

/* What blocks of samples are kept in is of no use without us. */
static const char tables_sql[] =
	"SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
	" AND type IN ('table', 'view', 'index') AND tbl_name NOT LIKE 'sample!_block%' ESCAPE '!'"
	" AND (type <> 'table' OR rootpage > 0) ORDER BY type <> 'table', type <> 'view'";

/*
 * The sum of what was there is not that of what is here. Recordings of before have absolute kernel addresses, which
 * tell where that boot had put the kernel.
 */
static const char leave_out_sql[] = "DELETE FROM counter WHERE name = '" STORE_SEAL "';"
				    "UPDATE frame SET address = NULL WHERE kind = 'kernel' AND address < 0";

static int copy_tables(sqlite3 *from, sqlite3 *to, const struct export_options *options, bool *ret_has_sample)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r;

	r = store_errno(from, sqlite3_prepare_v2(from, tables_sql, -1, &rows, NULL));
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *type = (const char *)sqlite3_column_text(rows, 0), *name = (const char *)sqlite3_column_text(rows, 1);

		r = execute(to, (const char *)sqlite3_column_text(rows, 2));
		if (r >= 0 && strcmp(type, "table") == 0)
			r = store_copy_rows(from, to, name, options->keep_going, options->data);
		*ret_has_sample |= strcmp(name, "sample") == 0;
	}
	if (r >= 0)
		r = store_errno(from, code);
	return r < 0 ? r : execute(to, leave_out_sql);
}

static int copy_sqlite(sqlite3 *db, const struct export_options *options, const char *path)
{
	CLEANUP(sqlite3_closep) sqlite3 *to = NULL;
	bool has_sample = false;
	int r;

	r = open_new(path, &to);
	if (r >= 0)
		r = execute(db, "BEGIN"); /* one that is being recorded is as it was at one moment */
	if (r < 0)
		return r;
	r = copy_tables(db, to, options, &has_sample);
	if (r >= 0 && !has_sample) {
		r = create_sample(db, to);
		if (r >= 0)
			r = store_copy_rows(db, to, "sample", options->keep_going, options->data);
	}
	if (r >= 0)
		r = execute(to, "COMMIT");
	execute(db, "ROLLBACK");
	return r;
}

const struct exporter export_sqlite = {
	.name = "sqlite",
	.endings = ".sqlite .sqlite3",
	.summary = "everything as plain tables, for any SQLite tool",
	.copy = copy_sqlite,
};
