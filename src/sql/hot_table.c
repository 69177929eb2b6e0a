/* SPDX-License-Identifier: MIT */
/*
 * hot_table.c - sums as virtual tables, in front of the views of the same names.
 *
 * Each reading loads the profile again, because a recording may be growing. The columns are those of the
 * view's descriptor, and a column is found by its name, so that both remain the same table.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/hot.h"

static const struct {
	const char *name;
	enum hot_by by;
} tables[] = {
	{ "hot_function", HOT_BY_FUNCTION },
	{ "hot_line", HOT_BY_LINE },
	{ "caller_callee", HOT_BY_CALL },
};

struct sums_table {
	sqlite3_vtab base; /* first: SQLite casts pointers to it */
	sqlite3 *db;
	const struct catalogue_table *described;
	enum hot_by by;
};

struct sums_cursor {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	struct profile *profile;
	struct hot sums;
	size_t row;
};

static int sums_connect(sqlite3 *db, void *data, int n, const char *const *arguments, sqlite3_vtab **ret, char **error)
{
	const struct catalogue_table *described = n >= 3 ? catalogue_find("main", arguments[2]) : NULL;
	struct sums_table *table;
	int code = SQLITE_ERROR;

	(void)data;
	for (size_t i = 0; i < N_ELEMENTS(tables); i++) {
		if (!described || strcmp(described->name, tables[i].name) != 0)
			continue;
		code = catalogue_declare(db, described);
		if (code != SQLITE_OK)
			return code;
		table = sqlite3_malloc(sizeof *table);
		if (!table)
			return SQLITE_NOMEM;
		*table = (struct sums_table){ .db = db, .described = described, .by = tables[i].by };
		*ret = &table->base;
		return SQLITE_OK;
	}
	*error = sqlite3_mprintf("there are no sums of that name");
	return code;
}

static int sums_disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int sums_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->estimatedCost = 100000;
	info->estimatedRows = 1000;
	return SQLITE_OK;
}

static int sums_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	struct sums_cursor *cursor = sqlite3_malloc(sizeof *cursor);

	(void)table;
	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct sums_cursor){ .row = 0 };
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void clear(struct sums_cursor *cursor)
{
	hot_done(&cursor->sums);
	profile_free(cursor->profile);
	cursor->profile = NULL;
	cursor->row = 0;
}

static int sums_close(sqlite3_vtab_cursor *base)
{
	clear((struct sums_cursor *)base);
	sqlite3_free(base);
	return SQLITE_OK;
}

static int sums_filter(sqlite3_vtab_cursor *base, int plan, const char *text, int n, sqlite3_value **arguments)
{
	struct sums_cursor *cursor = (struct sums_cursor *)base;
	struct sums_table *table = (struct sums_table *)base->pVtab;
	int r;

	(void)plan;
	(void)text;
	(void)n;
	(void)arguments;
	clear(cursor);
	r = profile_load(table->db, &cursor->profile);
	if (r == 0)
		r = hot_make(cursor->profile, table->by, &cursor->sums);
	if (r == 0)
		return SQLITE_OK;
	if (r == -ENOMEM)
		return SQLITE_NOMEM;
	sqlite3_free(base->pVtab->zErrMsg);
	base->pVtab->zErrMsg = sqlite3_mprintf("the stacks of the recording cannot be read: %s", strerror(-r));
	return SQLITE_ERROR;
}

static int sums_next(sqlite3_vtab_cursor *base)
{
	((struct sums_cursor *)base)->row++;
	return SQLITE_OK;
}

static int sums_eof(sqlite3_vtab_cursor *base)
{
	const struct sums_cursor *cursor = (const struct sums_cursor *)base;

	return cursor->row >= cursor->sums.n;
}

static int sums_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)((struct sums_cursor *)base)->row + 1;
	return SQLITE_OK;
}

/* ---- Columns ---- */

struct row {
	const struct sums_cursor *cursor;
	const struct hot_sum *sum;
	const struct profile_frame *frame, *caller; /* NULL: none */
};

static void put_text(sqlite3_context *context, const char *text)
{
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* 0 becomes NULL. */
static void put_id(sqlite3_context *context, int64_t id)
{
	if (id != 0)
		sqlite3_result_int64(context, id);
}

static void put_count(sqlite3_context *context, uint64_t count)
{
	sqlite3_result_int64(context, (sqlite3_int64)count);
}

static void put_share(sqlite3_context *context, const struct row *row, uint64_t weight)
{
	if (row->cursor->sums.weight > 0)
		sqlite3_result_double(context, 100.0 * (double)weight / (double)row->cursor->sums.weight);
}

static void function(sqlite3_context *context, const struct row *row)
{
	put_id(context, row->frame ? row->frame->function : 0);
}

static void name(sqlite3_context *context, const struct row *row)
{
	put_text(context, row->frame ? row->frame->name : "[no stack]");
}

static void kind(sqlite3_context *context, const struct row *row)
{
	put_text(context, row->frame ? frame_kind_name(row->frame->kind) : NULL);
}

static void file(sqlite3_context *context, const struct row *row)
{
	put_text(context, row->frame ? row->frame->file : NULL);
}

static void line(sqlite3_context *context, const struct row *row)
{
	put_id(context, row->frame ? row->frame->line : 0);
}

static void module(sqlite3_context *context, const struct row *row)
{
	put_text(context, row->frame ? row->frame->module : NULL);
}

static void caller(sqlite3_context *context, const struct row *row)
{
	put_text(context, row->caller ? row->caller->name : NULL);
}

static void caller_function(sqlite3_context *context, const struct row *row)
{
	put_id(context, row->caller ? row->caller->function : 0);
}

static void self_samples(sqlite3_context *context, const struct row *row)
{
	put_count(context, row->sum->self_samples);
}

static void self_weight(sqlite3_context *context, const struct row *row)
{
	put_count(context, row->sum->self_weight);
}

static void total_samples(sqlite3_context *context, const struct row *row)
{
	put_count(context, row->sum->total_samples);
}

static void total_weight(sqlite3_context *context, const struct row *row)
{
	put_count(context, row->sum->total_weight);
}

static void self_share(sqlite3_context *context, const struct row *row)
{
	put_share(context, row, row->sum->self_weight);
}

static void total_share(sqlite3_context *context, const struct row *row)
{
	put_share(context, row, row->sum->total_weight);
}

static const struct {
	const char *name;
	void (*put)(sqlite3_context *context, const struct row *row);
} columns[] = {
	{ "function", function },
	{ "name", name },
	{ "kind", kind },
	{ "file", file },
	{ "line", line },
	{ "module", module },
	{ "caller", caller },
	{ "callee", name },
	{ "caller_function", caller_function },
	{ "callee_function", function },
	{ "self_samples", self_samples },
	{ "self_weight", self_weight },
	{ "total_samples", total_samples },
	{ "total_weight", total_weight },
	{ "samples", total_samples },
	{ "weight", total_weight },
	{ "self_share", self_share },
	{ "total_share", total_share },
};

static int sums_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct sums_cursor *cursor = (const struct sums_cursor *)base;
	const struct sums_table *table = (const struct sums_table *)base->pVtab;
	const struct hot_sum *sum = &cursor->sums.items[cursor->row];
	const struct row row = {
		.cursor = cursor,
		.sum = sum,
		.frame = sum->frame < 0 ? NULL : &cursor->profile->frames[sum->frame],
		.caller = sum->caller < 0 ? NULL : &cursor->profile->frames[sum->caller],
	};

	for (size_t i = 0; i < N_ELEMENTS(columns); i++)
		if (strcmp(columns[i].name, table->described->columns[column].name) == 0)
			columns[i].put(context, &row);
	return SQLITE_OK;
}

static const sqlite3_module sums_module = {
	.xCreate = sums_connect,
	.xConnect = sums_connect,
	.xBestIndex = sums_best_index,
	.xDisconnect = sums_disconnect,
	.xDestroy = sums_disconnect,
	.xOpen = sums_open,
	.xClose = sums_close,
	.xFilter = sums_filter,
	.xNext = sums_next,
	.xEof = sums_eof,
	.xColumn = sums_column,
	.xRowid = sums_rowid,
};

int hot_register(sqlite3 *db)
{
	int code;

	if (!catalogue_is_recording(db))
		return SQLITE_OK;
	code = sqlite3_create_module_v2(db, "probing_hot", &sums_module, NULL, NULL);
	for (size_t i = 0; i < N_ELEMENTS(tables) && code == SQLITE_OK; i++) {
		char *sql = sqlite3_mprintf(
			"DROP VIEW IF EXISTS temp.%s; CREATE VIRTUAL TABLE temp.%s USING probing_hot", tables[i].name,
			tables[i].name);

		code = sql ? catalogue_execute(db, sql) : SQLITE_NOMEM;
		sqlite3_free(sql);
	}
	return code;
}
