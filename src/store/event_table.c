/* SPDX-License-Identifier: MIT */
/*
 * event_table.c - the sampled event, and the fields of a tracepoint.
 *
 * A tracepoint's fields are a table of its own, named as it, whose key is the rowid of the row
 * of sample. Its columns are known only when a recording begins, so its statement is prepared then.
 */
#include <errno.h>

#include "base/util.h"
#include "src/store/series_private.h"

enum { MAX_COLUMNS = 1000 };

int store_set_run_event(struct store *store, const char *event, bool counts, uint64_t period)
{
	static const char sql[] = "UPDATE run SET event = ?, unit = ?, period = nullif(?, 0)";
	sqlite3_stmt *statement = NULL;
	int code, r;

	code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 1, event, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 2, counts ? "count" : "ns", -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 3, (int64_t)period);
	r = writer_run(store, statement, code);
	sqlite3_finalize(statement);
	return r;
}

/* SQLite's names are case-insensitive. */
static bool is_taken(const struct field_column *columns, size_t n, const char *name)
{
	if (sqlite3_stricmp(name, "sample") == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (sqlite3_stricmp(columns[i].name, name) == 0)
			return true;
	return false;
}

/* Returns "CREATE TABLE ...", to free with sqlite3_free(); NULL: out of memory. */
static char *table_sql(const char *name, const struct field_column *columns, size_t n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(\n  sample INTEGER PRIMARY KEY -- rowid of the row of sample",
			    name);
	for (size_t i = 0; i < n; i++)
		sqlite3_str_appendf(sql, "\n  , \"%w%s\" %s", columns[i].name,
				    is_taken(columns, i, columns[i].name) ? "_" : "", columns[i].type);
	sqlite3_str_appendf(sql, "\n)");
	return sqlite3_str_finish(sql);
}

static char *insert_sql(const char *name, size_t n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES(?", name);
	for (size_t i = 0; i < n; i++)
		sqlite3_str_appendf(sql, ",?");
	sqlite3_str_appendf(sql, ")");
	return sqlite3_str_finish(sql);
}

int store_create_fields(struct store *store, const char *name, const struct field_column *columns, size_t n)
{
	char *table, *insert;
	int r = -ENOMEM;

	if (n > MAX_COLUMNS || store->put_fields)
		return -EINVAL;
	table = table_sql(name, columns, n);
	insert = insert_sql(name, n);
	if (table && insert)
		r = store_exec(store->db, table);
	if (r >= 0)
		r = store_errno(store->db, sqlite3_prepare_v3(store->db, insert, -1, SQLITE_PREPARE_PERSISTENT,
							      &store->put_fields, NULL));
	sqlite3_free(table);
	sqlite3_free(insert);
	return r;
}

static int bind_value(sqlite3_stmt *statement, int column, const struct field_value *value)
{
	switch (value->type) {
	case FIELD_INTEGER:
		return sqlite3_bind_int64(statement, column, value->integer);
	case FIELD_TEXT:
		return sqlite3_bind_text64(statement, column, value->bytes, value->n_bytes, SQLITE_STATIC, SQLITE_UTF8);
	case FIELD_BLOB:
		return sqlite3_bind_blob64(statement, column, value->bytes, value->n_bytes, SQLITE_STATIC);
	case FIELD_NULL:
		break;
	}
	return SQLITE_OK; /* unbound values are NULL */
}

int store_put_fields(struct store *store, const struct field_value *values, size_t n)
{
	int code;

	if (!store->put_fields || sqlite3_bind_parameter_count(store->put_fields) != (int)n + 1)
		return -EINVAL;
	code = sqlite3_bind_int64(store->put_fields, 1, series_last(store));
	for (size_t i = 0; i < n && code == SQLITE_OK; i++)
		code = bind_value(store->put_fields, (int)i + 2, &values[i]);
	return writer_run(store, store->put_fields, code);
}
