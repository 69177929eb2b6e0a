/* SPDX-License-Identifier: MIT */
/*
 * copy.c - one recording made of one or several, from the first row to a complete file.
 *
 * Source by source come processes, the tree and its properties, then the samples of all. Everything is one
 * transaction, so that blocks of samples are full; then the file is compacted and gets its checksum.
 *
 * Invariants:
 * 1. Sources are read in a transaction each: one that is being recorded is read as of one moment.
 * 2. Sources are not trusted: an orphan row is reported as damage.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/archive/copy_private.h"

enum { STEP_ROWS = 2048, MAX_FIELDS = 1000 };

/* ---- Shared by the files of this folder ---- */

int copy_step(struct copy *copy, const char *what, uint64_t n_all)
{
	if (++copy->progress.n_done % STEP_ROWS != 0 || !copy->options->keep_going)
		return 0;
	copy->progress.what = what;
	copy->progress.n_all = MAX(n_all, copy->progress.n_done);
	return copy->options->keep_going(copy->options->data, &copy->progress) ? 0 : -ECANCELED;
}

int copy_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	return store_errno(db, sqlite3_prepare_v2(db, sql, -1, ret, NULL));
}

int copy_write_errno(sqlite3 *db, int sqlite_code)
{
	return (sqlite_code & 0xff) == SQLITE_CONSTRAINT ? -EBADMSG : store_errno(db, sqlite_code);
}

int copy_run(sqlite3 *db, sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	sqlite3_reset(statement);
	return copy_write_errno(db, code);
}

int copy_number(sqlite3 *db, const char *sql, int64_t *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code;

	code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (code != SQLITE_OK)
		return store_errno(db, code);
	code = sqlite3_step(row);
	*ret = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
	return store_errno(db, code);
}

int copy_bind_time(const struct source *source, sqlite3_stmt *row, int column, sqlite3_stmt *to, int parameter)
{
	int type = sqlite3_column_type(row, column);

	if (source->clock.offset_ns == 0 || (type != SQLITE_FLOAT && type != SQLITE_INTEGER))
		return sqlite3_bind_value(to, parameter, sqlite3_column_value(row, column));
	return sqlite3_bind_double(to, parameter,
				   sqlite3_column_double(row, column) - (double)source->clock.offset_ns / 1e9);
}

bool copy_has(sqlite3 *db, const char *table)
{
	return sqlite3_table_column_metadata(db, "main", table, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

int copy_damaged(struct copy *copy, const struct source *source, const char *what)
{
	if (!copy->result->why[0])
		snprintf(copy->result->why, sizeof copy->result->why, "its %s refer to missing rows", what);
	copy->result->which = source->index;
	return -EBADMSG;
}

int copy_columns(sqlite3 *from, sqlite3 *to, const char *table, char **ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	sqlite3_str *columns = sqlite3_str_new(NULL);
	int code;

	code = sqlite3_prepare_v2(from, "SELECT name FROM pragma_table_info(?1)", -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(row, 0);

		code = SQLITE_OK;
		if (name &&
		    sqlite3_table_column_metadata(to, "main", table, name, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK)
			sqlite3_str_appendf(columns, sqlite3_str_length(columns) == 0 ? "\"%w\"" : ", \"%w\"", name);
	}
	*ret = sqlite3_str_finish(columns);
	return !*ret ? -ENOMEM : store_errno(from, code);
}

/* "INSERT INTO table(columns) VALUES(?,?)"; NULL: no memory. */
static char *insert_sql(const struct copied_table *table, const char *columns, int n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT %s INTO \"%w\"(%s) VALUES(", table->keeps_first ? "OR IGNORE" : "",
			    table->name, columns);
	for (int i = 0; i < n; i++)
		sqlite3_str_appendall(sql, i == 0 ? "?" : ",?");
	sqlite3_str_appendall(sql, ")");
	return sqlite3_str_finish(sql);
}

static int copy_row(struct copy *copy, const struct source *source, const struct copied_table *table, sqlite3_stmt *row,
		    sqlite3_stmt *write)
{
	int r;

	for (int i = 0; i < sqlite3_column_count(row); i++) {
		int code = table->bind(table, source, row, i, write);

		if (code == COPY_LEFT_OUT)
			return 0;
		if (code != SQLITE_OK)
			return store_errno(copy->db, code);
	}
	r = copy_run(copy->db, write);
	return r < 0 ? r : copy_step(copy, table->what, 0);
}

static int copy_rows(struct copy *copy, struct source *source, const struct copied_table *table, const char *columns)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\"%s", columns, table->name,
				    table->is_numbered ? " ORDER BY 1" : "");
	int code, r;

	r = sql ? copy_prepare(source->db, sql, &rows) : -ENOMEM;
	sqlite3_free(sql);
	if (r < 0)
		return r;
	sql = insert_sql(table, columns, sqlite3_column_count(rows));
	r = sql ? copy_prepare(copy->db, sql, &write) : -ENOMEM;
	sqlite3_free(sql);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = copy_row(copy, source, table, rows, write);
	return r < 0 ? r : store_errno(source->db, code);
}

int copy_each_row(struct copy *copy, struct source *source, const struct copied_table *table)
{
	char *columns = NULL;
	int r = copy_columns(source->db, copy->db, table->name, &columns);

	if (r >= 0)
		r = copy_rows(copy, source, table, columns);
	sqlite3_free(columns);
	return r;
}

int copy_bind_pid(const struct source *source, sqlite3_stmt *row, int column, sqlite3_stmt *to)
{
	int64_t pid = 0;

	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return sqlite3_bind_null(to, column + 1);
	if (!numbers_find(&source->numbers[KIND_PROCESS], sqlite3_column_int64(row, column), &pid))
		return COPY_LEFT_OUT;
	return sqlite3_bind_int64(to, column + 1, pid);
}

static int execute(sqlite3 *db, const char *sql)
{
	return store_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

/* ---- Table of a tracepoint ---- */

struct fields {
	char *name;
	struct field_column columns[MAX_FIELDS];
	char *names[MAX_FIELDS], *types[MAX_FIELDS];
	size_t n;
};

static void fields_free(struct fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		free(fields->names[i]);
		free(fields->types[i]);
	}
	free(fields->name);
	free(fields);
}

DEFINE_CLEANUP(struct fields *, fields_free)

static int add_field(struct fields *fields, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 0), *type = (const char *)sqlite3_column_text(row, 1);

	if (fields->n == MAX_FIELDS)
		return -EBADMSG;
	fields->names[fields->n] = strdup(name ? name : "");
	fields->types[fields->n] = strdup(type && strcmp(type, "BLOB") == 0      ? "BLOB"
					  : type && strcmp(type, "INTEGER") == 0 ? "INTEGER"
										 : "TEXT");
	fields->columns[fields->n] = (struct field_column){ fields->names[fields->n], fields->types[fields->n] };
	fields->n++;
	return fields->names[fields->n - 1] && fields->types[fields->n - 1] ? 0 : -ENOMEM;
}

/* Recordings without a tracepoint have none: *ret stays NULL. */
static int read_fields(sqlite3 *db, struct fields **ret)
{
	static const char sql[] =
		"SELECT i.name, i.type, r.event FROM (SELECT event FROM run LIMIT 1) AS r, pragma_table_info(r.event) AS i"
		" WHERE r.event LIKE '%:%' ORDER BY i.cid LIMIT -1 OFFSET 1";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	CLEANUP(fields_freep) struct fields *fields = calloc(1, sizeof *fields);
	int code, r = 0;

	if (!fields)
		return -ENOMEM;
	if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK)
		return 0;
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		if (!fields->name)
			fields->name = strdup((const char *)sqlite3_column_text(rows, 2));
		r = fields->name ? add_field(fields, rows) : -ENOMEM;
	}
	if (r >= 0)
		r = store_errno(db, code);
	if (r >= 0 && fields->n > 0)
		*ret = TAKE(fields);
	return r;
}

static bool are_same(const struct fields *one, const struct fields *other)
{
	if (!one || !other || one->n != other->n)
		return one == other;
	for (size_t i = 0; i < one->n; i++)
		if (strcmp(one->names[i], other->names[i]) != 0)
			return false;
	return true;
}

/* All sources share one table, so their fields must be equal. */
static int make_fields(struct copy *copy, const struct source *sources, size_t n_sources)
{
	CLEANUP(fields_freep) struct fields *first = NULL;
	int r;

	r = read_fields(sources[0].db, &first);
	for (size_t i = 1; i < n_sources && r >= 0; i++) {
		CLEANUP(fields_freep) struct fields *other = NULL;

		r = read_fields(sources[i].db, &other);
		if (r < 0 || are_same(first, other))
			continue;
		copy->result->which = i;
		snprintf(copy->result->why, sizeof copy->result->why,
			 "its tracepoint has other fields, as on another kernel");
		return -EDOM;
	}
	if (r < 0 || !first)
		return r;
	r = store_create_fields(copy->to, first->name, first->columns, first->n);
	copy->fields = TAKE(first->name);
	return r;
}

/* ---- Users' own tables ---- */

/* Do not copy tables that belong to a newer version of probing. */
static int copy_others(struct copy *copy, struct source *source)
{
	static const char sql[] =
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
		" AND name <> 'sample'";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_OK, r;

	r = copy_prepare(source->db, sql, &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);

		/* A table of ours that does not exist yet was not needed. */
		if (!copy_has(copy->db, name) && !store_is_own_name(name))
			r = store_copy_table(source->db, copy->db, name, NULL, NULL);
	}
	if (r >= 0)
		r = store_errno(source->db, code);
	return r < 0 ? r : store_copy_views(source->db, copy->db);
}

/* ---- Copy ---- */

/* Drop what no total refers to, from stacks to functions, and the temporary indexes. */
static const char *const last_sql[] = {
	("WITH RECURSIVE live(stack) AS (SELECT stack FROM stack_total"
	 " UNION SELECT parent FROM stack JOIN live USING (stack) WHERE parent IS NOT NULL)"
	 " DELETE FROM stack WHERE stack NOT IN live"),
	("WITH RECURSIVE live(frame) AS (SELECT frame FROM stack"
	 " UNION SELECT inlined_into FROM frame JOIN live USING (frame) WHERE inlined_into IS NOT NULL)"
	 " DELETE FROM frame WHERE frame NOT IN live"),
	"DELETE FROM function WHERE function NOT IN (SELECT function FROM frame WHERE function IS NOT NULL)",
	("DELETE FROM module WHERE module NOT IN (SELECT module FROM frame WHERE module IS NOT NULL"
	 " UNION SELECT module FROM function WHERE module IS NOT NULL UNION SELECT module FROM anchor_location)"),
	"DROP INDEX copy_module",
	"DROP INDEX copy_function",
	"DROP INDEX copy_frame",
	"DROP INDEX copy_stack",
	"DROP TABLE temp.taken",
};

static int fill_from(struct copy *copy, struct source *source)
{
	int r;

	r = merge_numbers(copy, source);
	if (r >= 0)
		r = copy_tree(copy, source);
	if (r >= 0)
		r = copy_totals(copy, source);
	if (r >= 0)
		r = merge_rest(copy, source);
	if (r >= 0)
		r = copy_gpu(copy, source);
	if (r >= 0)
		r = copy_flight(copy, source);
	if (r >= 0)
		r = copy_metrics(copy, source);
	if (r >= 0)
		r = copy_program_rows(copy, source);
	return r;
}

static int fill(struct copy *copy, struct source *sources, size_t n_sources)
{
	int r;

	r = make_fields(copy, sources, n_sources);
	for (size_t i = 0; i < n_sources && r >= 0; i++)
		r = fill_from(copy, &sources[i]);
	if (r >= 0)
		r = copy_samples(copy, sources, n_sources);
	for (size_t i = 0; i < N_ELEMENTS(last_sql) && r >= 0; i++)
		r = execute(copy->db, last_sql[i]);
	if (r >= 0 && n_sources == 1 && !copy_has(sources[0].db, "run_process"))
		r = execute(copy->db, "DROP TABLE run_process");
	if (r >= 0 && copy->options->keep_all && n_sources == 1)
		r = copy_others(copy, &sources[0]);
	return r;
}

static int fill_and_checkpoint(struct copy *copy, struct source *sources, size_t n_sources)
{
	int r;

	r = store_begin(copy->to);
	if (r >= 0)
		r = fill(copy, sources, n_sources);
	if (r < 0) {
		store_rollback(copy->to);
		return r;
	}
	r = store_commit(copy->to);
	if (r >= 0)
		r = store_checksum(copy->to);
	if (r >= 0) /* values do not change, so the checksum stays */
		r = execute(copy->db, "VACUUM");
	return r < 0 ? r : store_checkpoint(copy->to);
}

static int begin_all(struct source *sources, sqlite3 *const *dbs, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		sources[i] = (struct source){ .db = dbs[i], .index = i };
		r = execute(dbs[i], "BEGIN");
	}
	return r;
}

static void end_all(struct source *sources, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (sources[i].db && !sqlite3_get_autocommit(sources[i].db))
			execute(sources[i].db, "ROLLBACK");
		for (size_t j = 0; j < N_KINDS; j++)
			numbers_done(&sources[i].numbers[j]);
	}
}

int copy_recordings(sqlite3 *const *sources, size_t n_sources, const char *path, const struct copy_options *options,
		    struct copy_result *ret)
{
	CLEANUP(store_closep) struct store *to = NULL;
	CLEANUP(freep) struct source *all = calloc(n_sources, sizeof *all);
	struct copy copy = { .options = options, .result = ret };
	int r;

	*ret = (struct copy_result){ 0 };
	if (!all)
		return -ENOMEM;
	r = begin_all(all, sources, n_sources);
	for (size_t i = 0; options->clocks && i < n_sources; i++)
		all[i].clock = options->clocks[i];
	if (r >= 0)
		r = merge_check(&copy, all, n_sources);
	if (r >= 0)
		r = store_create(path, NULL, &to);
	if (r >= 0) {
		copy.to = to;
		copy.db = store_connection(to);
		r = fill_and_checkpoint(&copy, all, n_sources);
	}
	end_all(all, n_sources);
	free((char *)copy.fields);
	return r;
}
