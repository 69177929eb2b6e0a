/* SPDX-License-Identifier: MIT */
/*
 * merge.c - runs, processes and rows keyed by PID, of several recordings in one.
 *
 * pids.c assigns the PIDs in the new file before.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/archive/copy_private.h"

/* ---- Compatibility ---- */

static int read_text(sqlite3 *db, const char *sql, char to[64])
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code, r;

	to[0] = '\0';
	r = copy_prepare(db, sql, &row);
	if (r < 0)
		return r;
	code = sqlite3_step(row);
	if (code == SQLITE_ROW && sqlite3_column_text(row, 0))
		snprintf(to, 64, "%s", (const char *)sqlite3_column_text(row, 0));
	return store_errno(db, code);
}

/* What weights count; older files only have time. */
static int read_kind(sqlite3 *db, char mode[64], char event[64])
{
	bool has_event = sqlite3_table_column_metadata(db, "main", "run", "event", NULL, NULL, NULL, NULL, NULL) ==
			 SQLITE_OK;
	int r;

	r = read_text(db, "SELECT mode FROM run LIMIT 1", mode);
	if (r >= 0)
		r = read_text(db, has_event ? "SELECT event FROM run LIMIT 1" : "SELECT 'cpu-clock'", event);
	return r;
}

int merge_check(struct copy *copy, const struct source *sources, size_t n_sources)
{
	char mode[64], event[64], other_mode[64], other_event[64];
	int r;

	r = read_kind(sources[0].db, mode, event);
	for (size_t i = 1; i < n_sources && r >= 0; i++) {
		r = read_kind(sources[i].db, other_mode, other_event);
		if (r < 0 || (strcmp(mode, other_mode) == 0 && strcmp(event, other_event) == 0))
			continue;
		copy->result->which = i;
		snprintf(copy->result->why, sizeof copy->result->why,
			 "samples of mode %s at %s, and of mode %s at %s before: their weights do not add up",
			 other_mode, other_event, mode, event);
		return -EDOM;
	}
	return r;
}

/* ---- Rows with new numbers ---- */

/* Statements to read and write rows; PID columns are renumbered. */
struct moved {
	const char *table; /* a source may lack it */
	const char *read, *write;
	uint8_t pids;  /* bits of PID columns */
	uint8_t tids;  /* bits of TID columns; the first column has their process */
	uint8_t times; /* bits of columns with seconds since 1970 */
};

static const struct moved moved[] = {
	{ "process", "SELECT pid, parent_pid, name, command, python, started, ended FROM process",
	  "INSERT INTO process(pid, parent_pid, name, command, python, started, ended) VALUES(?1,?2,?3,?4,?5,?6,?7)"
	  " ON CONFLICT(pid) DO UPDATE SET python = coalesce(python, excluded.python), started = min(started, excluded.started),"
	  " ended = max(coalesce(ended, excluded.ended), coalesce(excluded.ended, ended))",
	  3, 0, 96 },
	{ "thread", "SELECT pid, tid, name, started, ended FROM thread",
	  "INSERT INTO thread(pid, tid, name, started, ended) VALUES(?1,?2,?3,?4,?5)"
	  " ON CONFLICT(pid, tid) DO UPDATE SET started = min(started, excluded.started),"
	  " ended = max(coalesce(ended, excluded.ended), coalesce(excluded.ended, ended))",
	  1, 2, 24 },
	{ "pause", "SELECT started, ended FROM pause",
	  "INSERT INTO pause(started, ended) VALUES(?1,?2) ON CONFLICT(started) DO UPDATE SET ended = excluded.ended",
	  0, 0, 3 },
	{ "counter", "SELECT name, value FROM counter WHERE name <> '" STORE_SEAL "'",
	  "INSERT INTO counter(name, value) VALUES(?1,?2) ON CONFLICT(name) DO UPDATE SET value = CASE name"
	  " WHEN 'first sample ns' THEN min(value, excluded.value) ELSE value + excluded.value END",
	  0, 0, 0 },
};

/* Bind a column's value with its new number. */
static int bind_moved(const struct moved *what, const struct source *source, sqlite3_stmt *row, int column,
		      sqlite3_stmt *to)
{
	const struct numbers *numbers = &source->numbers[KIND_PROCESS];
	int64_t value = sqlite3_column_int64(row, column), pid = sqlite3_column_int64(row, 0), new = 0;
	bool is_pid = what->pids >> column & 1, is_tid = what->tids >> column & 1;

	if (what->times >> column & 1)
		return copy_bind_time(source, row, column, to, column + 1);
	if (sqlite3_column_type(row, column) == SQLITE_NULL || (!is_pid && !is_tid))
		return sqlite3_bind_value(to, column + 1, sqlite3_column_value(row, column));
	if (!numbers_find(numbers, is_tid ? pid : value, &new))
		return SQLITE_CORRUPT;
	return sqlite3_bind_int64(to, column + 1, is_tid ? value + new - pid : new);
}

static int move_rows(struct copy *copy, struct source *source, const struct moved *what)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	int code, r;

	if (!copy_has(source->db, what->table))
		return 0;
	r = copy_prepare(source->db, what->read, &rows);
	if (r >= 0)
		r = copy_prepare(copy->db, what->write, &write);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(rows) && r >= 0; i++)
			r = store_errno(copy->db, bind_moved(what, source, rows, i, write));
		if (r >= 0)
			r = copy_run(copy->db, write);
	}
	if (r >= 0)
		r = store_errno(source->db, code);
	return r == -EBADMSG ? copy_damaged(copy, source, what->table) : r;
}

/* ---- Hosts and ranks of processes ---- */

/* A file of an older version has no ranks, and its hosts are those of its runs. */
static const char *ranks_sql(sqlite3 *db)
{
	if (store_has_ranks(db))
		return "SELECT pid, coalesce(host, (SELECT host FROM run LIMIT 1)), rank, local_rank, world_size, job FROM process";
	if (copy_has(db, "run_process"))
		return "SELECT pid, (SELECT host FROM run_process AS l JOIN run USING (run) WHERE l.pid = p.pid LIMIT 1),"
		       " NULL, NULL, NULL, NULL FROM process AS p";
	return "SELECT pid, (SELECT host FROM run LIMIT 1), NULL, NULL, NULL, NULL FROM process";
}

/* After the processes themselves. */
static int move_ranks(struct copy *copy, struct source *source)
{
	static const struct moved ranks = { .pids = 1 };
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	int code, r;

	r = copy_prepare(source->db, ranks_sql(source->db), &rows);
	if (r >= 0)
		r = copy_prepare(copy->db,
				 "UPDATE process SET host = coalesce(host, ?2), rank = coalesce(rank, ?3),"
				 " local_rank = coalesce(local_rank, ?4), world_size = coalesce(world_size, ?5),"
				 " job = coalesce(job, ?6) WHERE pid = ?1",
				 &write);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(rows) && r >= 0; i++)
			r = store_errno(copy->db, bind_moved(&ranks, source, rows, i, write));
		if (r >= 0)
			r = copy_run(copy->db, write);
	}
	if (r >= 0)
		r = store_errno(source->db, code);
	return r == -EBADMSG ? copy_damaged(copy, source, "ranks") : r;
}

/* ---- Runs ---- */

static int column_of(sqlite3_stmt *row, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(row); i++)
		if (sqlite3_stricmp(sqlite3_column_name(row, i), name) == 0)
			return i;
	return -1;
}

/* Link the run's processes; the run's row is written already. */
static int link_run(struct copy *copy, struct source *source, int64_t old, int64_t run)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	const char *known = "SELECT pid, was FROM run_process WHERE run = ?1";
	int code, r;

	r = copy_prepare(source->db, copy_has(source->db, "run_process") ? known : "SELECT pid, pid FROM process",
			 &rows);
	if (r >= 0)
		r = copy_prepare(copy->db, "INSERT OR IGNORE INTO run_process(run, pid, was) VALUES(?1,?2,?3)", &write);
	if (r < 0)
		return r;
	sqlite3_bind_int64(rows, 1, old); /* SQLite rejects a missing parameter, which does no harm */
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t pid = 0;

		if (!numbers_find(&source->numbers[KIND_PROCESS], sqlite3_column_int64(rows, 0), &pid))
			return -EBADMSG;
		sqlite3_bind_int64(write, 1, run);
		sqlite3_bind_int64(write, 2, pid);
		sqlite3_bind_int64(write, 3, sqlite3_column_int64(rows, 1));
		r = copy_run(copy->db, write);
	}
	return r < 0 ? r : store_errno(source->db, code);
}

/* A run that was merged before, with a clock of its own, has both offsets. */
static int put_clock(struct copy *copy, const struct source *source, int64_t run)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *write = NULL;
	int r = copy_prepare(copy->db,
			     "UPDATE run SET clock_offset = coalesce(clock_offset, 0) + ?2,"
			     " clock_error = coalesce(clock_error, 0) + ?3 WHERE run = ?1",
			     &write);

	if (r < 0)
		return r;
	sqlite3_bind_int64(write, 1, run);
	sqlite3_bind_double(write, 2, (double)source->clock.offset_ns / 1e9);
	sqlite3_bind_double(write, 3, (double)source->clock.error_ns / 1e9);
	return copy_run(copy->db, write);
}

static int put_run(struct copy *copy, struct source *source, sqlite3_stmt *row, sqlite3_stmt *write)
{
	int run_at = column_of(row, "run"), pid_at = column_of(row, "pid");
	int started_at = column_of(row, "started"), ended_at = column_of(row, "ended");
	int64_t run = 0, pid = 0;
	int r;

	if (run_at < 0 || pid_at < 0 ||
	    !numbers_find(&source->numbers[KIND_PROCESS], sqlite3_column_int64(row, pid_at), &pid))
		return -EBADMSG;
	r = copy_number(copy->db, "SELECT coalesce(max(run), 0) + 1 FROM run", &run);
	for (int i = 0; i < sqlite3_column_count(row) && r >= 0; i++)
		r = store_errno(copy->db, i == run_at   ? sqlite3_bind_int64(write, i + 1, run)
					  : i == pid_at ? sqlite3_bind_int64(write, i + 1, pid)
					  : i == started_at || i == ended_at
						  ? copy_bind_time(source, row, i, write, i + 1)
						  : sqlite3_bind_value(write, i + 1, sqlite3_column_value(row, i)));
	if (r >= 0)
		r = copy_run(copy->db, write);
	if (r >= 0 && source->clock.is_known)
		r = put_clock(copy, source, run);
	if (r >= 0)
		r = link_run(copy, source, sqlite3_column_int64(row, run_at), run);
	copy->result->n_runs++;
	return r;
}

static char *run_insert_sql(const char *columns, int n)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO run(%s) VALUES(", columns);
	for (int i = 0; i < n; i++)
		sqlite3_str_appendf(sql, i == 0 ? "?" : ",?");
	sqlite3_str_appendf(sql, ")");
	return sqlite3_str_finish(sql);
}

static int put_runs(struct copy *copy, struct source *source, const char *columns)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	char *sql = sqlite3_mprintf("SELECT %s FROM run ORDER BY run", columns);
	int code, r;

	r = sql ? copy_prepare(source->db, sql, &rows) : -ENOMEM;
	sqlite3_free(sql);
	if (r < 0)
		return r;
	sql = run_insert_sql(columns, sqlite3_column_count(rows));
	r = sql ? copy_prepare(copy->db, sql, &write) : -ENOMEM;
	sqlite3_free(sql);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = put_run(copy, source, rows, write);
	return r < 0 ? r : store_errno(source->db, code);
}

static int move_runs(struct copy *copy, struct source *source)
{
	char *columns = NULL;
	int r;

	r = copy_columns(source->db, copy->db, "run", &columns);
	if (r >= 0)
		r = put_runs(copy, source, columns);
	sqlite3_free(columns);
	return r == -EBADMSG ? copy_damaged(copy, source, "runs") : r;
}

/* Copy measured runs; their run numbers continue like the runs' own. @n_before: runs of earlier sources. */
static int move_bench(struct copy *copy, struct source *source, int64_t n_before)
{
	static const char read_sql[] =
		"SELECT (SELECT count(*) FROM run WHERE run.run <= b.run), command, started, wall, user, sys, max_rss, exit_status"
		" FROM bench_run AS b ORDER BY bench_run";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	int code, r;

	if (!copy_has(source->db, "bench_run"))
		return 0;
	r = copy_prepare(source->db, read_sql, &rows);
	if (r >= 0)
		r = copy_prepare(copy->db,
				 "INSERT INTO bench_run(run, command, started, wall, user, sys, max_rss, exit_status)"
				 " VALUES(nullif(?1, 0) + ?9,?2,?3,?4,?5,?6,?7,?8)",
				 &write);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(rows); i++)
			sqlite3_bind_value(write, i + 1, sqlite3_column_value(rows, i));
		sqlite3_bind_int64(write, 9, n_before);
		r = copy_run(copy->db, write);
	}
	return r < 0 ? r : store_errno(source->db, code);
}

/* ---- Evaluation places: of two sources, the one with more tries wins ---- */

static int move_places(struct copy *copy, struct source *source)
{
	static const char write_sql[] =
		"INSERT INTO anchor_location(module, address, holds, is_leaf, below_cfa, register, agreed, tries)"
		" VALUES(?1,?2,?3,?4,?5,?6,?7,?8) ON CONFLICT(module, address, holds, is_leaf) DO UPDATE SET"
		" below_cfa = excluded.below_cfa, register = excluded.register, agreed = excluded.agreed, tries = excluded.tries"
		" WHERE excluded.tries > tries";
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	int code, r;

	if (!copy_has(source->db, "anchor_location"))
		return 0;
	r = copy_prepare(source->db,
			 "SELECT module, address, holds, is_leaf, below_cfa, register, agreed, tries"
			 " FROM anchor_location",
			 &rows);
	if (r >= 0)
		r = copy_prepare(copy->db, write_sql, &write);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t module = 0;

		if (!numbers_find(&source->numbers[KIND_MODULE], sqlite3_column_int64(rows, 0), &module))
			return copy_damaged(copy, source, "places of interpreters");
		for (int i = 1; i < sqlite3_column_count(rows); i++)
			sqlite3_bind_value(write, i + 1, sqlite3_column_value(rows, i));
		sqlite3_bind_int64(write, 1, module);
		r = copy_run(copy->db, write);
	}
	return r < 0 ? r : store_errno(source->db, code);
}

int merge_rest(struct copy *copy, struct source *source)
{
	int64_t n_before = 0;
	int r;

	r = copy_number(copy->db, "SELECT count(*) FROM run", &n_before);
	if (r >= 0)
		r = move_runs(copy, source);
	if (r >= 0)
		r = move_bench(copy, source, n_before);
	for (size_t i = 0; i < N_ELEMENTS(moved) && r >= 0; i++)
		r = move_rows(copy, source, &moved[i]);
	if (r >= 0)
		r = move_ranks(copy, source);
	return r < 0 ? r : move_places(copy, source);
}
