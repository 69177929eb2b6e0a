/* SPDX-License-Identifier: MIT */
/*
 * series_fields.c - a tracepoint's fields of a sample, as further columns.
 *
 * They are in a table of their own, whose name is the event's and whose key is the sample's number
 * (event_table.c). Its columns may have the names of a sample's (pid, cpu): such a one gets the suffix "_".
 * The file is foreign: the table counts only if its first column is `sample`, and its key.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/series_private.h"

enum { MAX_FIELDS = 1500 }; /* SQLite's default limit is 2000 columns */

void series_fields_done(struct series_fields *fields)
{
	for (int i = 0; i < fields->n; i++)
		sqlite3_free(fields->names[i]);
	free(fields->names);
	sqlite3_free(fields->table);
	*fields = (struct series_fields){ 0 };
}

/* Read one text; NULL: none, or out of memory. */
static char *read_text(sqlite3 *db, const char *sql, const char *parameter)
{
	sqlite3_stmt *statement = NULL;
	char *text = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_bind_text(statement, 1, parameter, -1, SQLITE_STATIC) != SQLITE_NOMEM &&
	    sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		text = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return text;
}

char *series_event(sqlite3 *db)
{
	return read_text(db, "SELECT event FROM main.run", NULL);
}

static bool is_taken(const struct series_fields *fields, const struct catalogue_table *described, const char *name)
{
	for (int i = 0; i < fields->n; i++)
		if (sqlite3_stricmp(fields->names[i], name) == 0)
			return true;
	return catalogue_find_column(described, name) != NULL;
}

/* Takes ownership of name. */
static int add_name(struct series_fields *fields, const struct catalogue_table *described, char *name)
{
	while (name && is_taken(fields, described, name)) {
		char *longer = sqlite3_mprintf("%s_", name);

		sqlite3_free(name);
		name = longer;
	}
	if (!name)
		return SQLITE_NOMEM;
	fields->names[fields->n++] = name;
	return SQLITE_OK;
}

static int read_names(sqlite3 *db, const struct catalogue_table *described, struct series_fields *fields)
{
	sqlite3_stmt *statement = NULL;
	int code;

	code = sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?, 'main') WHERE cid > 0 ORDER BY cid", -1,
				  &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 1, fields->table, -1, SQLITE_STATIC);
	fields->names = calloc(MAX_FIELDS, sizeof *fields->names);
	if (!fields->names)
		code = SQLITE_NOMEM;
	while (code == SQLITE_OK && fields->n < MAX_FIELDS && sqlite3_step(statement) == SQLITE_ROW)
		code = add_name(fields, described, sqlite3_mprintf("%s", sqlite3_column_text(statement, 0)));
	sqlite3_finalize(statement);
	return code;
}

int series_fields_read(sqlite3 *db, const struct catalogue_table *described, struct series_fields *ret)
{
	struct series_fields fields = { 0 };
	char *event = series_event(db);
	int code = SQLITE_OK;

	if (event)
		fields.table = read_text(
			db,
			"SELECT s.name FROM main.sqlite_schema AS s, pragma_table_info(s.name, 'main') AS c"
			" WHERE s.type = 'table' AND s.rootpage > 0 AND s.name = ?1"
			" AND c.cid = 0 AND c.name = 'sample' AND c.pk = 1",
			event);
	sqlite3_free(event);
	if (fields.table)
		code = read_names(db, described, &fields);
	if (code == SQLITE_OK)
		*ret = fields;
	else
		series_fields_done(&fields);
	return code;
}

int series_fields_prepare(sqlite3 *db, const struct series_fields *fields, sqlite3_stmt **ret)
{
	char *sql = sqlite3_mprintf("SELECT * FROM main.\"%w\" WHERE sample = ?1", fields->table);
	int code = SQLITE_NOMEM;

	if (sql)
		code = sqlite3_prepare_v2(db, sql, -1, ret, NULL);
	sqlite3_free(sql);
	return code;
}
