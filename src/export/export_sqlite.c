/* SPDX-License-Identifier: MIT */
/*
 * export_sqlite.c - everything as plain tables in a SQLite file of its own.
 *
 * Samples are rows here, whatever their form in the recording, so that any SQLite tool can read all of it without
 * probing. The other tables are those of the catalogue, including comments, and users' own. The file is a
 * recording, too, of the version whose samples are a plain table.
 */
#include <errno.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/store/store.h"

static int execute(sqlite3 *db, const char *sql)
{
	return store_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

static const char *type_of(sqlite3_stmt *rows, int column)
{
	const char *type = sqlite3_column_decltype(rows, column);

	return type ? type : "";
}

/* Create a table with the columns of sample. */
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
		sqlite3_str_appendf(sql, "%s\n  \"%w\" %s", i == 0 ? "(" : ",", sqlite3_column_name(rows, i),
				    type_of(rows, i));
	sqlite3_str_appendf(sql, "\n)");
	text = sqlite3_str_finish(sql);
	r = text ? execute(to, text) : -ENOMEM;
	sqlite3_free(text);
	return r;
}

/* Omit the blocks of samples and metrics: other tools cannot read them. */
static const char tables_sql[] =
	"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
	" AND name NOT LIKE 'sample!_block%' ESCAPE '!' AND name <> 'metric_block'";

/*
 * Remove the checksum, which no longer matches. Older recordings have absolute kernel addresses, which reveal the
 * kernel's base address.
 */
static const char leave_out_sql[] = "DELETE FROM counter WHERE name = '" STORE_SEAL "';"
				    "UPDATE frame SET address = NULL WHERE kind = 'kernel' AND address < 0";

/* ---- Progress ---- */

/* Rows by their numbers: counting them would read each table twice. Tables without numbers are short, and left out. */
struct copying {
	const struct export_options *options;
	uint64_t n_before, n_table, n_all;
};

static uint64_t number(sqlite3 *db, char *sql)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int64_t n = 0;

	if (sql && sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
		n = sqlite3_column_int64(row, 0);
	sqlite3_free(sql);
	return (uint64_t)MAX(n, 0);
}

static uint64_t rows_of(sqlite3 *db, const char *table)
{
	return number(db, sqlite3_mprintf("SELECT max(rowid) FROM main.\"%w\"", table));
}

/* Samples in blocks: each has a part in the totals. */
static uint64_t samples_of(sqlite3 *db)
{
	return number(db, sqlite3_mprintf("SELECT sum(samples) FROM main.stack_total"));
}

static void measure(sqlite3 *db, struct copying *copying)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	bool has_sample = false;

	if (sqlite3_prepare_v2(db, tables_sql, -1, &rows, NULL) != SQLITE_OK)
		return;
	while (sqlite3_step(rows) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);

		copying->n_all += rows_of(db, name);
		has_sample |= strcmp(name, "sample") == 0;
	}
	if (!has_sample)
		copying->n_all += samples_of(db);
}

static bool show(void *data, uint64_t n)
{
	const struct copying *copying = data;
	const struct export_options *options = copying->options;

	return !options->keep_going ||
	       options->keep_going(options->data, copying->n_before + MIN(n, copying->n_table), copying->n_all);
}

/* ---- Copy ---- */

static int copy_tables(sqlite3 *from, sqlite3 *to, struct copying *copying, bool *ret_has_sample)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_OK, r;

	r = store_errno(from, sqlite3_prepare_v2(from, tables_sql, -1, &rows, NULL));
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);

		copying->n_table = rows_of(from, name);
		r = store_copy_table(from, to, name, show, copying);
		copying->n_before += copying->n_table;
		*ret_has_sample |= strcmp(name, "sample") == 0;
	}
	if (r >= 0)
		r = store_errno(from, code);
	return r < 0 ? r : execute(to, leave_out_sql);
}

static int copy_all(sqlite3 *from, sqlite3 *to, const struct export_options *options)
{
	struct copying copying = { .options = options };
	bool has_sample = false;
	int r;

	measure(from, &copying);
	r = copy_tables(from, to, &copying, &has_sample);
	if (r >= 0 && !has_sample)
		r = create_sample(from, to);
	copying.n_table = samples_of(from);
	if (r >= 0 && !has_sample)
		r = store_copy_rows(from, to, "sample", show, &copying);
	if (r >= 0)
		r = row_tables_copy(from, to);
	return r < 0 ? r : store_copy_views(from, to);
}

static int copy_sqlite(sqlite3 *db, const struct export_options *options, const char *path)
{
	CLEANUP(store_closep) struct store *store = NULL;
	int r;

	r = store_create_plain(path, &store);
	if (r >= 0)
		r = execute(store_connection(store), "BEGIN");
	if (r < 0)
		return r;
	r = execute(db, "BEGIN"); /* a consistent snapshot, even while it is being recorded */
	if (r >= 0)
		r = copy_all(db, store_connection(store), options);
	if (r >= 0)
		r = execute(store_connection(store), "COMMIT");
	execute(db, "ROLLBACK");
	return r;
}

const struct exporter export_sqlite = {
	.name = "sqlite",
	.endings = ".sqlite .sqlite3",
	.summary = "everything as plain tables, for any SQLite tool",
	.copy = copy_sqlite,
};
