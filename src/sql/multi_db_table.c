/* SPDX-License-Identifier: MIT */
/* multi_db_table.c - one table of several recordings: the rows of the first file, then of the second ...
 *
 * A query of it becomes a query of each file: the used columns, and
 * the comparisons that SQLite passes to us. SQLite checks them again itself, so that passing on too few is
 * never wrong; passing on one that the file evaluates in another way would be, and so only those are passed whose
 * types are equal.
 *
 * SQLite identifies a row by its number: for "a = 1 OR b = 2" it takes the rows of the first, then those of the
 * second that were not among them. Not all tables of a file number their rows, and so the number is computed from the
 * row's values; the n-th of equal rows is always the same one, for a comparison passes all of them or none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/sqlite_hash.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/multi_db_private.h"

struct table {
	sqlite3_vtab base;
	struct multi_db *multi_db;
	const struct multi_db_table *table;
};

struct cursor {
	sqlite3_vtab_cursor base;
	char *text; /* plan for which the statements were prepared; NULL: none */
	struct multi_db_plan plan;
	sqlite3_value *values[MULTI_DB_MAX_COMPARED];
	sqlite3_stmt **statements; /* one per file; NULL: not prepared yet */
	size_t file;               /* current file */
	size_t last;               /* end of the range of files */
	struct id_map seen;        /* number of equal rows seen in this scan, for numbering */
	uint64_t number;           /* of the current row; 0: not computed yet */
};

/* ---- Declare ---- */

static const struct multi_db_table *find(const struct multi_db *multi_db, const char *schema, const char *name)
{
	bool is_program = strcasecmp(schema, PROGRAM_SCHEMA) == 0;

	for (size_t i = 0; i < multi_db->n_tables; i++)
		if (multi_db->tables[i].is_program == is_program && strcasecmp(multi_db->tables[i].name, name) == 0)
			return &multi_db->tables[i];
	return NULL;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	struct multi_db *multi_db = aux;
	const struct multi_db_table *found = argc > 2 ? find(multi_db, argv[1], argv[2]) : NULL;
	char *columns = found ? multi_db_declaration(found) : NULL, *sql = NULL;
	struct table *table;
	int code = SQLITE_NOMEM;

	if (columns)
		sql = sqlite3_mprintf("CREATE TABLE x(%s)", columns);
	if (sql)
		code = sqlite3_declare_vtab(db, sql);
	sqlite3_free(columns);
	sqlite3_free(sql);
	if (code != SQLITE_OK) {
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
		return code;
	}
	table = calloc(1, sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	table->multi_db = multi_db;
	table->table = found;
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* ---- Read ---- */

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct table *table = (struct table *)base;

	return multi_db_plan_make(table->multi_db, table->table, info);
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	const struct table *table = (struct table *)base;
	struct cursor *cursor = calloc(1, sizeof *cursor);

	if (cursor)
		cursor->statements = calloc(table->multi_db->n_files, sizeof *cursor->statements);
	if (!cursor || !cursor->statements) {
		free(cursor);
		return SQLITE_NOMEM;
	}
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void forget_values(struct cursor *cursor)
{
	for (size_t i = 0; i < MULTI_DB_MAX_COMPARED; i++)
		sqlite3_value_free(TAKE(cursor->values[i]));
}

static void forget_statements(struct cursor *cursor, size_t n_files)
{
	for (size_t i = 0; i < n_files; i++)
		sqlite3_finalize(TAKE(cursor->statements[i]));
	free(TAKE(cursor->text));
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	const struct table *table = (struct table *)base->pVtab;
	struct cursor *cursor = (struct cursor *)base;

	forget_values(cursor);
	forget_statements(cursor, table->multi_db->n_files);
	id_map_done(&cursor->seen);
	free(cursor->statements);
	free(cursor);
	return SQLITE_OK;
}

static int fail(struct table *table, size_t file, int code)
{
	sqlite3_free(table->base.zErrMsg);
	table->base.zErrMsg = sqlite3_mprintf("%s: %s", table->multi_db->paths[file],
					      sqlite3_errmsg(table->multi_db->files[file]));
	return code & 0xff;
}

static int prepare(struct table *table, struct cursor *cursor)
{
	char *sql = multi_db_question(table->multi_db, table->table, &cursor->plan, cursor->file);
	int code;

	if (!sql)
		return SQLITE_NOMEM;
	code = sqlite3_prepare_v2(table->multi_db->files[cursor->file], sql, -1, &cursor->statements[cursor->file],
				  NULL);
	sqlite3_free(sql);
	return code;
}

/* Prepare the current file's statement for its first row. */
static int start_file(struct table *table, struct cursor *cursor)
{
	sqlite3_stmt **statement = &cursor->statements[cursor->file];
	int code = SQLITE_OK;

	if (!*statement)
		code = prepare(table, cursor);
	else
		sqlite3_reset(*statement);
	for (size_t i = 0; i < cursor->plan.n_compared && code == SQLITE_OK; i++)
		if ((int)i < sqlite3_bind_parameter_count(*statement))
			code = sqlite3_bind_value(*statement, (int)i + 1, cursor->values[i]);
	return code == SQLITE_OK ? SQLITE_OK : fail(table, cursor->file, code);
}

/* Advance to the next row, in this file or a later one. @is_new: the current file has not started. */
static int advance(struct table *table, struct cursor *cursor, bool is_new)
{
	cursor->number = 0;
	while (cursor->file < cursor->last) {
		int code = SQLITE_DONE;

		if (is_new && multi_db_file_has(table->multi_db, table->table, cursor->file)) {
			code = start_file(table, cursor);
			if (code != SQLITE_OK)
				return code;
		}
		if (cursor->statements[cursor->file] && multi_db_file_has(table->multi_db, table->table, cursor->file))
			code = sqlite3_step(cursor->statements[cursor->file]);
		if (code == SQLITE_ROW)
			return SQLITE_OK;
		if (code != SQLITE_DONE)
			return fail(table, cursor->file, code);
		if (cursor->statements[cursor->file])
			sqlite3_reset(cursor->statements[cursor->file]);
		cursor->file++;
		is_new = true;
	}
	return SQLITE_OK;
}

/* Limit the files by constraints on their number; SQLite checks them again. */
static void choose_files(const struct table *table, struct cursor *cursor)
{
	cursor->file = 0;
	cursor->last = table->multi_db->n_files;
	for (size_t i = 0; i < cursor->plan.n_compared; i++) {
		const char *operator= cursor->plan.compared[i].operator;
		int64_t value;

		if (cursor->plan.compared[i].column != COLUMN_RUN ||
		    sqlite3_value_type(cursor->values[i]) != SQLITE_INTEGER)
			continue;
		value = MAX(MIN(sqlite3_value_int64(cursor->values[i]), (int64_t)table->multi_db->n_files + 1), 0);
		if (operator[0] == '<')
			cursor->last = MIN(cursor->last, (size_t)value);
		if (operator[0] == '>')
			cursor->file = MAX(cursor->file, (size_t)MAX(value - 1, 0));
		if (operator[0] == '=') {
			cursor->file = MAX(cursor->file, (size_t)MAX(value - 1, 0));
			cursor->last = MIN(cursor->last, (size_t)value);
		}
	}
}

static int take_plan(struct table *table, struct cursor *cursor, const char *text)
{
	if (cursor->text && strcmp(cursor->text, text) == 0)
		return SQLITE_OK;
	forget_statements(cursor, table->multi_db->n_files);
	cursor->text = strdup(text);
	return cursor->text ? multi_db_plan_parse(text, &cursor->plan) : SQLITE_NOMEM;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *plan, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct table *table = (struct table *)base->pVtab;
	int code;

	(void)index;
	forget_values(cursor);
	code = take_plan(table, cursor, plan);
	for (int i = 0; i < argc && code == SQLITE_OK; i++) {
		cursor->values[i] = sqlite3_value_dup(argv[i]);
		code = cursor->values[i] ? SQLITE_OK : SQLITE_NOMEM;
	}
	if (code != SQLITE_OK)
		return code;
	id_map_clear(&cursor->seen);
	choose_files(table, cursor);
	return advance(table, cursor, true);
}

static int next(sqlite3_vtab_cursor *base)
{
	return advance((struct table *)base->pVtab, (struct cursor *)base, false);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (struct cursor *)base;

	return cursor->file >= cursor->last;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int n)
{
	const struct cursor *cursor = (struct cursor *)base;
	const struct table *table = (struct table *)base->pVtab;

	if (n == COLUMN_RUN)
		sqlite3_result_int64(context, (sqlite3_int64)cursor->file + 1);
	else if (n == COLUMN_FILE && table->table->is_run)
		sqlite3_result_text(context, table->multi_db->paths[cursor->file], -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_value(context, sqlite3_column_value(cursor->statements[cursor->file], n));
	return SQLITE_OK;
}

static int number_row(const struct table *table, struct cursor *cursor)
{
	uint64_t hash = mix64(cursor->file + 1), n = 0;
	struct id_slot *seen;

	for (size_t i = 0; i < table->table->n_columns; i++)
		hash = sqlite_hash(hash, cursor->statements[cursor->file], (int)i);
	hash |= hash == 0;
	seen = id_map_find(&cursor->seen, hash);
	if (seen)
		n = ++seen->id;
	else if (id_map_add(&cursor->seen, hash, 0) < 0)
		return SQLITE_NOMEM;
	cursor->number = mix64(hash + n * UINT64_C(0x9e3779b97f4a7c15));
	cursor->number |= cursor->number == 0;
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	struct cursor *cursor = (struct cursor *)base;
	int code = SQLITE_OK;

	if (cursor->number == 0)
		code = number_row((const struct table *)base->pVtab, cursor);
	*ret = (sqlite3_int64)cursor->number;
	return code;
}

const sqlite3_module multi_db_module = {
	.xCreate = connect_table,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_table,
	.xDestroy = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = at_end,
	.xColumn = column,
	.xRowid = rowid,
};
