/* SPDX-License-Identifier: MIT */
/* multi_db_read.c - which tables and columns the files have.
 *
 * Names are compared as SQL compares them, without regard to case. A column of a file that is called as ours
 * gets "_" behind its name; the key of the table run is ours, since it is 1 in each of the files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/ddl.h"
#include "src/sql/multi_db_private.h"
#include "src/sql/tables.h"
#include "src/store/store.h"

/* MAX_COLUMNS: a query of a file has at most 1200 (store_distrust()). Tables of programs may have other columns in each file; those beyond are left out. */
enum { GUESSED_ROWS = 100000, GUESSED_SAMPLES = 1000000, MAX_DOC = 400, MAX_COLUMNS = 1000 };

void multi_db_table_done(struct multi_db_table *table)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		free(table->columns[i].name);
		free(table->columns[i].source);
		free(table->columns[i].type);
		free(table->columns[i].doc);
	}
	free(table->columns);
	free(table->has);
	free(table->name);
}

/* Make room for the flags of all columns so far, for all files to come. */
static int make_room(const struct multi_db *multi_db, struct multi_db_table *table)
{
	size_t n_files = multi_db->n_files;
	bool *more;

	more = realloc(table->has, table->n_columns * n_files * sizeof *more);
	if (!more)
		return -ENOMEM;
	table->has = more;
	memset(more + (table->n_columns - 1) * n_files, 0, n_files * sizeof *more);
	return 0;
}

static int add_column(const struct multi_db *multi_db, struct multi_db_table *table, const char *name,
		      const char *source, const char *type, const char *doc)
{
	struct multi_db_column *column;
	int r;

	r = grow(&table->columns, table->n_columns, &table->columns_allocated, sizeof *table->columns);
	if (r < 0)
		return r;
	column = &table->columns[table->n_columns++];
	*column = (struct multi_db_column){
		.name = strdup(name),
		.source = source ? strdup(source) : NULL,
		.type = strdup(type),
		.doc = strdup(doc),
		.is_alike = source != NULL,
	};
	if (!column->name || (source && !column->source) || !column->type || !column->doc)
		return -ENOMEM;
	return make_room(multi_db, table);
}

static struct multi_db_table *find_table(struct multi_db *multi_db, bool is_program, const char *name)
{
	for (size_t i = 0; i < multi_db->n_tables; i++)
		if (multi_db->tables[i].is_program == is_program && strcasecmp(multi_db->tables[i].name, name) == 0)
			return &multi_db->tables[i];
	return NULL;
}

static int get_table(struct multi_db *multi_db, bool is_program, const char *name, bool is_view,
		     struct multi_db_table **ret)
{
	struct multi_db_table *table = find_table(multi_db, is_program, name);
	int r = 0;

	if (!table) {
		r = grow(&multi_db->tables, multi_db->n_tables, &multi_db->tables_allocated, sizeof *multi_db->tables);
		if (r < 0)
			return r;
		table = &multi_db->tables[multi_db->n_tables++];
		*table = (struct multi_db_table){ .name = strdup(name),
						  .is_program = is_program,
						  .is_run = !is_program && strcasecmp(name, "run") == 0 };
		if (!table->name)
			return -ENOMEM;
		r = add_column(multi_db, table, "run", NULL, "INTEGER", "the file, in the order given, from 1");
		if (r >= 0 && table->is_run)
			r = add_column(multi_db, table, "file", NULL, "TEXT", "its path, as given");
	}
	table->is_view |= is_view;
	*ret = table;
	return r;
}

/* SIZE_MAX: not found. */
static size_t find_column(const struct multi_db_table *table, const char *source)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (table->columns[i].source && strcasecmp(table->columns[i].source, source) == 0)
			return i;
	return SIZE_MAX;
}

static bool is_taken(const struct multi_db_table *table, const char *name)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (strcasecmp(table->columns[i].name, name) == 0)
			return true;
	return false;
}

/* The file's name, with as many "_" appended as make it unique. */
static int free_name(const struct multi_db_table *table, const char *source, char **ret)
{
	CLEANUP(freep) char *name = strdup(source);

	while (name && is_taken(table, name)) {
		char *longer;

		if (asprintf(&longer, "%s_", name) < 0)
			longer = NULL;
		free(name);
		name = longer;
	}
	if (!name)
		return -ENOMEM;
	*ret = TAKE(name);
	return 0;
}

/* @key: position in the table's key, from 1; 0: not in the key. */
static int take_column(struct multi_db *multi_db, size_t n, struct multi_db_table *table, const char *source,
		       const char *type, int key, const char *ddl)
{
	CLEANUP(freep) char *name = NULL;
	size_t column = find_column(table, source);
	char doc[MAX_DOC];
	int r = 0;

	if (table->is_run && strcasecmp(source, "run") == 0)
		return 0;
	if (column == SIZE_MAX && table->n_columns == MAX_COLUMNS)
		return 0;
	if (column == SIZE_MAX) {
		r = free_name(table, source, &name);
		if (r < 0)
			return r;
		ddl_comment(ddl, source, doc, sizeof doc);
		column = table->n_columns;
		r = add_column(multi_db, table, name, source, type, doc);
		if (r < 0)
			return r;
	}
	table->columns[column].is_alike &= strcasecmp(table->columns[column].type, type) == 0;
	table->columns[column].is_key |= key == 1 || table->is_view;
	table->has[column * multi_db->n_files + n] = true;
	return 0;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return text ? text : "";
}

/* Estimate the number of rows from the key, which counts without gaps. */
static int64_t guess_rows(sqlite3 *db, const struct multi_db_table *table)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int64_t guess = strcasecmp(table->name, "sample") == 0 ? GUESSED_SAMPLES : GUESSED_ROWS;
	char *sql;

	for (size_t i = 0; i < table->n_columns && !table->is_view; i++) {
		if (!table->columns[i].is_key || strcasecmp(table->columns[i].source, table->name) != 0)
			continue;
		sql = sqlite3_mprintf("SELECT max(\"%w\") FROM \"%w\"", table->columns[i].source, table->name);
		if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
		    sqlite3_step(statement) == SQLITE_ROW)
			guess = MIN(MAX(sqlite3_column_int64(statement, 0), 1), (int64_t)1 << 40);
		sqlite3_free(sql);
		break;
	}
	return guess;
}

static int read_columns(struct multi_db *multi_db, size_t n, struct multi_db_table *table)
{
	static const char in_file[] = "SELECT c.name, c.type, c.pk, (SELECT sql FROM sqlite_schema WHERE name = ?1)"
				      " FROM pragma_table_xinfo(?1) c WHERE c.hidden <> 1",
			  of_program[] = "SELECT c.name, c.type || CASE c.hidden WHEN 1 THEN ' HIDDEN' ELSE '' END, 0,"
					 " (SELECT sql FROM " PROGRAM_SCHEMA ".sqlite_schema WHERE name = ?1)"
					 " FROM pragma_table_xinfo(?1, '" PROGRAM_SCHEMA "') c";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	sqlite3 *db = multi_db->files[n];
	int code, r = 0;

	code = sqlite3_prepare_v2(db, table->is_program ? of_program : in_file, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 1, table->name, -1, SQLITE_STATIC);
	if (code != SQLITE_OK)
		return store_errno(db, code);
	while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
		r = take_column(multi_db, n, table, text_of(statement, 0), text_of(statement, 1),
				sqlite3_column_int(statement, 2), (const char *)sqlite3_column_text(statement, 3));
	/* A view whose table is missing is no table; anyone may have added one. */
	if (r >= 0 && code != SQLITE_DONE && (code & 0xff) != SQLITE_ERROR)
		r = store_errno(db, code);
	if (r >= 0)
		table->n_rows += guess_rows(db, table);
	return r;
}

/* A view that needs more memory than a list gets is no honest one. */
static int list_errno(sqlite3 *db, int code)
{
	return (code & 0xff) == SQLITE_NOMEM ? -EBADMSG : store_errno(db, code);
}

int multi_db_read_file(struct multi_db *multi_db, size_t n)
{
	CLEANUP(tables_endp) sqlite3_int64 before = tables_begin();
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	sqlite3 *db = multi_db->files[n];
	int code, r = 0;

	(void)before;
	code = sqlite3_prepare_v2(db, tables_sql, -1, &statement, NULL);
	if (code != SQLITE_OK)
		return list_errno(db, code);
	while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		bool is_program = strcmp(text_of(statement, 0), PROGRAM_SCHEMA) == 0;
		struct multi_db_table *table;

		if (!is_program && strcmp(text_of(statement, 0), "main") != 0)
			continue;
		r = get_table(multi_db, is_program, text_of(statement, 1), strcmp(text_of(statement, 2), "view") == 0,
			      &table);
		if (r >= 0)
			r = read_columns(multi_db, n, table);
	}
	return r < 0 ? r : code == SQLITE_DONE || code == SQLITE_ROW ? 0 : list_errno(db, code);
}
