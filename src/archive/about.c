/* SPDX-License-Identifier: MIT */
/* about.c - the description of a recording, and the sizes of its parts. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/archive/archive.h"
#include "src/store/store.h"

const char *const about_part_names[N_PARTS] = {
	[PART_SAMPLES] = "samples", [PART_TREE] = "tree",   [PART_NAMES] = "names",
	[PART_ROWS] = "rows",       [PART_OTHER] = "other", [PART_FREE] = "free",
};

/* SQL errors in a foreign file mean damage. */
static int read_error(sqlite3 *db, int code)
{
	int r = store_errno(db, code);

	return r == -EINVAL ? -EBADMSG : r;
}

static int read_numbers(sqlite3 *db, const char *sql, int64_t *const *to, int n)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code;

	code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	for (int i = 0; i < n && code == SQLITE_ROW; i++)
		*to[i] = sqlite3_column_int64(row, i);
	return read_error(db, code);
}

static int column_of(sqlite3_stmt *row, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(row); i++)
		if (sqlite3_stricmp(sqlite3_column_name(row, i), name) == 0)
			return i;
	return -1;
}

/* Older files may lack a column. */
static double number_in(sqlite3_stmt *row, const char *name)
{
	int column = column_of(row, name);

	return column < 0 ? 0 : sqlite3_column_double(row, column);
}

static char *text_in(sqlite3_stmt *row, const char *name, const char *otherwise)
{
	int column = column_of(row, name);
	const char *text = column < 0 ? NULL : (const char *)sqlite3_column_text(row, column);

	return strdup(text ? text : otherwise);
}

static void run_done(struct about_run *run)
{
	char *texts[] = { run->command, run->mode,    run->stack_source, run->python, run->host,
			  run->kernel,  run->probing, run->event,        run->unit };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		free(texts[i]);
}

static int add_run(struct about *about, sqlite3_stmt *row)
{
	struct about_run *run;
	int r;

	r = grow(&about->runs, about->n_runs, &about->runs_allocated, sizeof *about->runs);
	if (r < 0)
		return r;
	run = &about->runs[about->n_runs++];
	*run = (struct about_run){
		.run = (int64_t)number_in(row, "run"),
		.pid = (int64_t)number_in(row, "pid"),
		.cpus = (int64_t)number_in(row, "cpus"),
		.period = (int64_t)number_in(row, "period"),
		.started = number_in(row, "started"),
		.ended = number_in(row, "ended"),
		.hz = number_in(row, "hz"),
		.clean = number_in(row, "clean") != 0,
		.kernel_frames = number_in(row, "kernel_frames") != 0,
		.command = text_in(row, "command", ""),
		.mode = text_in(row, "mode", ""),
		.stack_source = text_in(row, "stack_source", ""),
		.python = text_in(row, "python", ""),
		.host = text_in(row, "host", ""),
		.kernel = text_in(row, "kernel", ""),
		.probing = text_in(row, "probing", ""),
		.event = text_in(row, "event", "cpu-clock"),
		.unit = text_in(row, "unit", "ns"),
	};
	return run->command && run->mode && run->stack_source && run->python && run->host && run->kernel &&
			       run->probing && run->event && run->unit
		       ? 0
		       : -ENOMEM;
}

static int read_runs(sqlite3 *db, struct about *about)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r;

	r = read_error(db, sqlite3_prepare_v2(db, "SELECT * FROM run ORDER BY run", -1, &rows, NULL));
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = add_run(about, rows);
	return r < 0 ? r : read_error(db, code);
}

static int read_times(sqlite3 *db, struct about *about)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code;

	code = sqlite3_prepare_v2(db, "SELECT count(*), min(timestamp), max(timestamp) FROM sample", -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW) {
		about->n_samples = sqlite3_column_int64(row, 0);
		about->first = sqlite3_column_double(row, 1);
		about->last = sqlite3_column_double(row, 2);
	}
	return read_error(db, code);
}

static int read_counts(sqlite3 *db, struct about *about)
{
	static const char sql[] =
		"SELECT (SELECT count(*) FROM process), (SELECT count(*) FROM thread), (SELECT count(*) FROM module),"
		" (SELECT count(*) FROM function), (SELECT count(*) FROM frame), (SELECT count(*) FROM stack),"
		" coalesce((SELECT value FROM counter WHERE name = 'samples'), -1),"
		" coalesce((SELECT value FROM counter WHERE name = 'lost'), -1),"
		" coalesce((SELECT value FROM counter WHERE name = 'dropped'), -1)";
	int64_t *const to[] = { &about->n_processes, &about->n_threads, &about->n_modules,
				&about->n_functions, &about->n_frames,  &about->n_stacks,
				&about->n_taken,     &about->n_lost,    &about->n_dropped };
	int64_t *const pauses[] = { &about->n_pauses }, *const version[] = { &about->schema_version };
	int r;

	r = read_numbers(db, sql, to, N_ELEMENTS(to));
	if (r >= 0)
		r = read_numbers(db, "PRAGMA user_version", version, 1);
	if (r >= 0 &&
	    sqlite3_table_column_metadata(db, "main", "pause", NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK)
		r = read_numbers(db, "SELECT count(*) FROM pause", pauses, 1);
	return r;
}

/* Older files have no rows of programs. */
static int read_rows(sqlite3 *db, struct about *about)
{
	static const char sql[] =
		"SELECT (SELECT total(rows) FROM row_block), total(lost),"
		" (SELECT group_concat(name, ', ') FROM (SELECT name FROM row_table GROUP BY name COLLATE NOCASE ORDER BY 1 LIMIT 64))"
		" FROM row_table";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code;

	if (sqlite3_table_column_metadata(db, "main", "row_block", NULL, NULL, NULL, NULL, NULL, NULL) != SQLITE_OK)
		return 0;
	code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW) {
		const char *tables = (const char *)sqlite3_column_text(row, 2);

		about->n_rows = sqlite3_column_int64(row, 0);
		about->n_rows_lost = sqlite3_column_int64(row, 1);
		about->row_tables = tables ? strdup(tables) : NULL;
		if (tables && !about->row_tables)
			return -ENOMEM;
	}
	return read_error(db, code);
}

/* The purpose of a table's pages; a tracepoint's table has a colon in its name. */
static enum about_part part_of(const char *table)
{
	static const struct {
		const char *table;
		enum about_part part;
	} parts[] = {
		{ "stack", PART_TREE },      { "stack_total", PART_TREE }, { "frame", PART_TREE },
		{ "function", PART_NAMES },  { "module", PART_NAMES },     { "row_table", PART_ROWS },
		{ "row_column", PART_ROWS }, { "row_block", PART_ROWS },
	};

	if (strncmp(table, "sample", 6) == 0 || strchr(table, ':'))
		return PART_SAMPLES;
	for (size_t i = 0; i < N_ELEMENTS(parts); i++)
		if (strcmp(parts[i].table, table) == 0)
			return parts[i].part;
	return PART_OTHER;
}

/* The table dbstat only exists if SQLite was built with it. */
static int read_parts(sqlite3 *db, struct about *about)
{
	static const char sql[] =
		"SELECT coalesce(s.tbl_name, d.name), sum(d.pgsize) FROM dbstat AS d LEFT JOIN sqlite_schema AS s"
		" ON s.name = d.name WHERE d.aggregate = 1 GROUP BY 1";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int64_t page = 0, n_free = 0;
	int64_t *const page_to[] = { &page }, *const free_to[] = { &n_free };
	int code, r;

	r = read_numbers(db, "PRAGMA page_size", page_to, 1);
	if (r >= 0)
		r = read_numbers(db, "PRAGMA freelist_count", free_to, 1);
	if (r < 0)
		return r;
	about->part_bytes[PART_FREE] = page * n_free;
	if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK)
		return 0;
	while ((code = sqlite3_step(rows)) == SQLITE_ROW)
		about->part_bytes[part_of((const char *)sqlite3_column_text(rows, 0))] += sqlite3_column_int64(rows, 1);
	about->has_parts = code == SQLITE_DONE;
	return read_error(db, code);
}

static int64_t bytes_of(const char *path, const char *suffix)
{
	CLEANUP(freep) char *name = NULL;
	struct stat st;

	if (asprintf(&name, "%s%s", path, suffix) < 0)
		return 0;
	return stat(name, &st) < 0 ? 0 : st.st_size;
}

int about_read(sqlite3 *db, const char *path, bool is_written, struct about *ret)
{
	int r;

	*ret = (struct about){ .is_written = is_written };
	ret->file_bytes = bytes_of(path, "");
	ret->log_bytes = bytes_of(path, "-wal");
	r = read_runs(db, ret);
	if (r >= 0)
		r = read_times(db, ret);
	if (r >= 0)
		r = read_counts(db, ret);
	if (r >= 0)
		r = read_rows(db, ret);
	return r < 0 ? r : read_parts(db, ret);
}

void about_done(struct about *about)
{
	for (size_t i = 0; i < about->n_runs; i++)
		run_done(&about->runs[i]);
	free(about->runs);
	free(about->row_tables);
}
