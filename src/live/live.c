/* SPDX-License-Identifier: MIT */
/* live.c - virtual tables over a running process; see live.h.
 *
 * Invariants:
 * 1. Rows are read at the first step of a statement that needs them, and are kept as long as any of these
 *    tables has an open cursor: a statement sees the rows of one reading.
 * 2. A failure to read is an error with a sentence, never an empty table.
 *
 * SQLite stores the descriptor's text as declaration of a table, including comments, so that the
 * connection has the documentation of its columns.
 */
#include "src/live/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/backtrace/backtrace.h"
#include "src/live/rows.h"

enum { MAX_SENTENCE = 1024 };

struct table {
	sqlite3_vtab base;
	struct live_place *place;
	size_t n_columns;
};

struct cursor {
	sqlite3_vtab_cursor base;
	size_t row, n_rows;
};

/* ---- Helpers for tables ---- */

int live_read_file(pid_t pid, const char *name, size_t max_bytes, char **ret, size_t *ret_bytes)
{
	return proc_read(pid, name, max_bytes, ret, ret_bytes);
}

void live_note(struct live *live, const char *sentence)
{
	if (live->options.note)
		live->options.note(live->options.data, sentence);
}

double live_seconds(uint64_t ticks)
{
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

double live_boot_time(void)
{
	CLEANUP(freep) char *text = NULL;
	const char *line;

	if (read_file("/proc/stat", 8 << 20, &text, NULL) < 0)
		return 0;
	line = strstr(text, "\nbtime ");
	return line ? strtod(line + strlen("\nbtime "), NULL) : 0;
}

/* ---- Errors ---- */

static void explain(pid_t pid, int error, char *to, size_t n_bytes)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		backtrace_explain(pid, to, n_bytes);
		break;
	case -ESRCH:
		snprintf(to, n_bytes, "there is no process %d, or it has just ended", (int)pid);
		break;
	case -ENODATA:
		snprintf(to, n_bytes, "process %d has no program: it has ended, or is a kernel thread", (int)pid);
		break;
	default:
		snprintf(to, n_bytes, "%s", strerror(-error));
	}
}

static int fail(struct table *table, int error)
{
	struct live *live = table->place->live;
	char sentence[MAX_SENTENCE];

	live->error = error;
	if (error == -ENOMEM)
		return SQLITE_NOMEM;
	if (live->why[0])
		snprintf(sentence, sizeof sentence, "%s", live->why);
	else
		explain(live->options.pid, error, sentence, sizeof sentence);
	sqlite3_free(table->base.zErrMsg);
	table->base.zErrMsg = sqlite3_mprintf("%s", sentence);
	return SQLITE_ERROR;
}

/* ---- Rows ---- */

static void forget(struct live *live)
{
	for (size_t i = 0; i < live->n_places; i++) {
		struct live_place *place = &live->places[i];

		if (place->rows)
			live_rows_done(place->rows);
		free(TAKE(place->rows));
	}
}

static int read_rows(struct table *table)
{
	struct live_place *place = table->place;
	struct live_rows rows = { 0 };
	int r;

	if (place->rows)
		return 0;
	r = place->table->read(place->live, &rows);
	if (r == 0)
		r = rows.error;
	if (r == 0 && rows.n_values % table->n_columns != 0)
		r = -EPROTO; /* the descriptor is wrong */
	if (r == 0) {
		place->rows = malloc(sizeof rows);
		r = place->rows ? 0 : -ENOMEM;
	}
	if (r < 0)
		live_rows_done(&rows);
	else
		*place->rows = rows;
	return r;
}

/* ---- SQLite's callbacks. Source: sqlite.org/vtab.html ---- */

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	struct live_place *place = aux;
	const struct catalogue_table *described = catalogue_find(place->table->schema, place->table->name);
	struct table *table;
	int code;

	(void)argc;
	(void)argv;
	code = described ? catalogue_declare(db, described) : SQLITE_INTERNAL;
	if (code != SQLITE_OK) {
		*error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
		return code;
	}
	table = calloc(1, sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	table->place = place;
	table->n_columns = described->n_columns;
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* The only plan is a full scan. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	(void)base;
	info->estimatedCost = 1000;
	info->estimatedRows = 1000;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct table *table = (struct table *)base;
	struct cursor *cursor = calloc(1, sizeof *cursor);

	if (!cursor)
		return SQLITE_NOMEM;
	table->place->live->n_cursors++;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct live *live = ((struct table *)base->pVtab)->place->live;

	if (--live->n_cursors == 0)
		forget(live);
	free(base);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct table *table = (struct table *)base->pVtab;
	int r;

	(void)index;
	(void)text;
	(void)argc;
	(void)argv;
	table->place->live->error = 0;
	table->place->live->why[0] = '\0';
	r = read_rows(table);
	if (r < 0)
		return fail(table, r);
	cursor->row = 0;
	cursor->n_rows = table->place->rows->n_values / table->n_columns;
	return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
	((struct cursor *)base)->row++;
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (struct cursor *)base;

	return cursor->row >= cursor->n_rows;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int n)
{
	const struct cursor *cursor = (struct cursor *)base;
	const struct table *table = (struct table *)base->pVtab;

	live_result(context, table->place->rows, cursor->row * table->n_columns + (size_t)n);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)((struct cursor *)base)->row + 1;
	return SQLITE_OK;
}

static const sqlite3_module module = {
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

/* ---- Registration ---- */

static int execute(sqlite3 *db, char *sql)
{
	int code;

	if (!sql)
		return -ENOMEM;
	code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	return code == SQLITE_OK ? 0 : code == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
}

static bool has_schema(sqlite3 *db, const char *schema)
{
	return sqlite3_db_filename(db, schema) != NULL;
}

/* Column lines of the declaration; NULL: out of memory. */
static char *column_lines(const struct catalogue_table *table)
{
	sqlite3_str *lines = sqlite3_str_new(NULL);

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct catalogue_column *column = &table->columns[i];

		sqlite3_str_appendf(lines, "  %s %s%s%s -- %s%s%s%s\n", column->name, column->type,
				    column->not_null ? " NOT NULL" : "", i + 1 < table->n_columns ? "," : "",
				    column->unit ? "[" : "", column->unit ? column->unit : "", column->unit ? "] " : "",
				    column->doc);
	}
	return sqlite3_str_finish(lines);
}

static int create(struct live *live, const struct live_table *table, const char *module_name)
{
	const struct catalogue_table *described = catalogue_find(table->schema, table->name);
	char *lines = described ? column_lines(described) : NULL;
	int r = -ENOMEM;

	if (lines)
		r = execute(live->db, sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\".\"%w\" USING %s( -- %s\n%s)",
						      table->schema, table->name, module_name, described->doc, lines));
	sqlite3_free(lines);
	return r;
}

static int put_table(struct live *live, const struct live_table *table)
{
	struct live_place *place = &live->places[live->n_places++];
	char name[64];
	int r = 0;

	*place = (struct live_place){ .live = live, .table = table };
	snprintf(name, sizeof name, "live_%s_%s", table->schema, table->name);
	if (sqlite3_create_module_v2(live->db, name, &module, place, NULL) != SQLITE_OK)
		return -ENOMEM;
	if (!has_schema(live->db, table->schema))
		r = execute(live->db, sqlite3_mprintf("ATTACH ':memory:' AS \"%w\"", table->schema));
	return r < 0 ? r : create(live, table, name);
}

int live_open(sqlite3 *db, const struct live_options *options, struct live **ret)
{
	CLEANUP(live_closep) struct live *live = NULL;
	struct proc_stat stat;
	size_t n = 0;
	int r;

	r = proc_stat_read(options->pid, 0, &stat);
	if (r < 0)
		return r;
	while (live_tables[n])
		n++;
	live = calloc(1, sizeof *live);
	if (!live)
		return -ENOMEM;
	live->options = *options;
	live->db = db;
	live->places = calloc(n, sizeof *live->places);
	if (!live->places)
		return -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = put_table(live, live_tables[i]);
	if (r < 0)
		return r;
	*ret = TAKE(live);
	return 0;
}

int live_error(const struct live *live)
{
	return live->error;
}

void live_close(struct live *live)
{
	if (!live)
		return;
	forget(live);
	free(live->places);
	backtrace_session_free(live->session);
	free(live);
}

void live_closep(struct live **live)
{
	live_close(*live);
}
