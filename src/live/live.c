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
#include "src/live/rings.h"
#include "src/live/rows.h"
#include "src/metrics/metrics.h"

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
	r = place->ring ? live_ring_read(place->live, place->ring, &rows) : place->table->read(place->live, &rows);
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

static const struct catalogue_table *describe(const struct live_place *place)
{
	return place->ring ? &place->ring->described : catalogue_find(place->table->schema, place->table->name);
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	struct live_place *place = aux;
	const struct catalogue_table *described = describe(place);
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

/* @module_name: of this place only. */
static int put_place(struct live *live, const struct live_place *from, const char *module_name)
{
	struct live_place *place = &live->places[live->n_places++];
	const struct catalogue_table *described;
	int code, r = 0;

	*place = *from;
	described = describe(place);
	if (!described)
		return -EINVAL;
	if (sqlite3_create_module_v2(live->db, module_name, &module, place, NULL) != SQLITE_OK)
		return -ENOMEM;
	if (!has_schema(live->db, described->schema))
		r = execute(live->db, sqlite3_mprintf("ATTACH ':memory:' AS \"%w\"", described->schema));
	if (r < 0)
		return r;
	code = catalogue_create_virtual(live->db, described, module_name);
	return code == SQLITE_OK ? 0 : code == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
}

static int put_table(struct live *live, const struct live_table *table)
{
	char name[64];

	if (live->has_ended && !table->outlives_process)
		return 0;
	snprintf(name, sizeof name, "live_%s_%s", table->schema, table->name);
	return put_place(live, &(struct live_place){ .live = live, .table = table }, name);
}

/* One that SQLite does not take says so, and leaves the others. */
static int put_ring(struct live *live, size_t n)
{
	const struct live_ring *ring = &live->rings.tables[n];
	char name[64], sentence[MAX_SENTENCE];
	int r;

	if (ring == live_rings_variables(&live->rings))
		return 0;
	snprintf(name, sizeof name, "live_ring_%zu", n);
	r = put_place(live, &(struct live_place){ .live = live, .ring = ring }, name);
	if (r != -EINVAL)
		return r;
	snprintf(sentence, sizeof sentence, "the ring %.64s cannot be a table: %.200s", ring->described.name,
		 sqlite3_errmsg(live->db));
	live_note(live, sentence);
	return 0;
}

static int put_all(struct live *live)
{
	size_t n = 0;
	int r = 0;

	while (live_tables[n])
		n++;
	live->places = calloc(n + live->rings.n_tables, sizeof *live->places);
	if (!live->places)
		return -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = put_table(live, live_tables[i]);
	for (size_t i = 0; i < live->rings.n_tables && r >= 0; i++)
		r = put_ring(live, i);
	return r;
}

int live_open(sqlite3 *db, const struct live_options *options, struct live **ret)
{
	CLEANUP(live_closep) struct live *live = NULL;
	struct proc_stat stat;
	int r;

	live = calloc(1, sizeof *live);
	if (!live)
		return -ENOMEM;
	live->options = *options;
	live->db = db;
	r = proc_stat_read(options->pid, 0, &stat);
	live->has_ended = r == -ESRCH;
	if (r < 0 && !live->has_ended)
		return r;
	r = live_rings_find(live, live->has_ended, &live->rings);
	if (r == 0 && live->has_ended && live->rings.n_tables == 0)
		r = -ESRCH;
	if (r == 0)
		r = put_all(live);
	if (r < 0)
		return r;
	*ret = TAKE(live);
	return 0;
}

bool live_has_ended(const struct live *live)
{
	return live->has_ended;
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
	live_rings_done(&live->rings);
	backtrace_session_free(live->session);
	gpu_reader_free(live->gpu);
	free(live);
}

void live_closep(struct live **live)
{
	live_close(*live);
}
