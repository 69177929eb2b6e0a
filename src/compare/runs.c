/* SPDX-License-Identifier: MIT */
/*
 * runs.c - the runs of a recording, with time and machine; see load.h.
 *
 * A merged recording has the run of each process in run_process. Older files lack columns: a missing
 * value is "", and differs from nothing.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/compare/load.h"
#include "src/compare/function_table.h"

const struct about_field about_fields[N_ABOUT] = {
	{ "host", "host", false },
	{ "cpu_model", "processor", true },
	{ "cpus", "number of CPUs", true },
	{ "kernel", "kernel", true },
	{ "python", "Python", true },
	{ "probing", "probing", true },
	{ "mode", "mode", true },
	{ "event", "event", true },
	{ "unit", "unit", true },
	{ "hz", "frequency", true },
	{ "period", "period", true },
	{ "stack_source", "stack source", true },
	{ "kernel_frames", "kernel frames", true },
	{ "command", "command", false },
};

void file_runs_done(struct file_runs *runs)
{
	free(runs->numbers);
	free(runs->pids);
}

void runs_done(struct compare_run *run)
{
	for (size_t i = 0; i < N_ABOUT; i++)
		free(run->about[i]);
	free(run->name);
	free(run->command);
	free(run->self);
}

/* Our statements on existing tables only fail for damage or lack of memory. */
static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	int code = sqlite3_prepare_v2(db, sql, -1, ret, NULL);

	return code == SQLITE_OK ? 0 : code == SQLITE_NOMEM ? -ENOMEM : -EBADMSG;
}

static int finished(int code)
{
	return code == SQLITE_DONE ? 0 : code == SQLITE_NOMEM ? -ENOMEM : -EBADMSG;
}

static bool has_table(sqlite3 *db, const char *table)
{
	return sqlite3_table_column_metadata(db, "main", table, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

static int column_of(sqlite3_stmt *row, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(row); i++)
		if (strcmp(sqlite3_column_name(row, i), name) == 0)
			return i;
	return -1;
}

/* For free(3); "" if there is none. */
static char *text_of(sqlite3_stmt *row, const char *name)
{
	int column = column_of(row, name);
	const char *text = column >= 0 ? (const char *)sqlite3_column_text(row, column) : NULL;

	return name_clean(text ? text : "");
}

/* NAN if there is none. */
static double real_of(sqlite3_stmt *row, const char *name)
{
	int column = column_of(row, name);

	if (column < 0 || sqlite3_column_type(row, column) == SQLITE_NULL)
		return NAN;
	return sqlite3_column_double(row, column);
}

static int64_t integer_of(sqlite3_stmt *row, const char *name, int64_t otherwise)
{
	int column = column_of(row, name);

	if (column < 0 || sqlite3_column_type(row, column) == SQLITE_NULL)
		return otherwise;
	return sqlite3_column_int64(row, column);
}

static int add_run(struct compare *compare, const struct compare_run *like, struct compare_run **ret)
{
	int r = grow(&compare->runs, compare->n_runs, &compare->runs_allocated, sizeof *compare->runs);

	if (r < 0)
		return r;
	compare->runs[compare->n_runs] = *like;
	*ret = &compare->runs[compare->n_runs++];
	for (size_t i = 0; i < N_ABOUT; i++) {
		(*ret)->about[i] = strdup("");
		if (!(*ret)->about[i])
			return -ENOMEM;
	}
	return 0;
}

/* Read a value of another run, from files with an end time. */
static int read_number(sqlite3 *db, const char *sql, int64_t bound, double *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int r, code;

	r = prepare(db, sql, &row);
	if (r < 0)
		return r;
	sqlite3_bind_int64(row, 1, bound);
	code = sqlite3_step(row);
	if (code == SQLITE_ROW) {
		*ret = sqlite3_column_type(row, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(row, 0);
		return 0;
	}
	return finished(code);
}

/*
 * Duration measured by bench, else by the recorder. For a launched command, use the process's own time, which excludes
 * resolving names.
 */
static int read_wall(sqlite3 *db, int64_t run, double *ret)
{
	static const char of_bench[] = "SELECT wall FROM bench_run WHERE run = ?1";
	static const char of_recorder[] =
		"SELECT coalesce((SELECT ended - started FROM process WHERE process.pid = run.pid AND ended > started"
		"  AND started >= run.started AND ended <= run.ended), ended - started)"
		" - (SELECT coalesce(total(ended - started), 0) FROM pause WHERE pause.started >= run.started"
		"    AND pause.ended <= run.ended) FROM run WHERE run = ?1";
	double wall = NAN;
	int r = 0;

	if (has_table(db, "bench_run"))
		r = read_number(db, of_bench, run, &wall);
	if (r >= 0 && isnan(wall) && has_table(db, "pause"))
		r = read_number(db, of_recorder, run, &wall);
	if (r >= 0)
		*ret = wall > 0 ? wall : NAN;
	return r;
}

static int fill_run(struct compare_run *run, const char *name, bool is_one, sqlite3_stmt *row, int64_t number)
{
	CLEANUP(freep) char *clean = NULL;

	for (size_t i = 0; i < N_ABOUT; i++) {
		free(run->about[i]);
		run->about[i] = text_of(row, about_fields[i].column);
		if (!run->about[i])
			return -ENOMEM;
	}
	run->is_recorded = true;
	run->command = text_of(row, "command");
	run->started = real_of(row, "started");
	clean = name_clean(name);
	if (!clean || !run->command)
		return -ENOMEM;
	if (is_one)
		run->name = TAKE(clean);
	else if (asprintf(&run->name, "%s#%lld", clean, (long long)number) < 0)
		run->name = NULL;
	return run->name ? 0 : -ENOMEM;
}

static int count_runs(sqlite3 *db, size_t *ret)
{
	double n = 0;
	int r = read_number(db, "SELECT count(*) FROM run", 0, &n);

	if (r >= 0)
		*ret = (size_t)n;
	return r;
}

static int read_recorded(struct compare *compare, enum side side, const char *name, sqlite3 *db, struct file_runs *runs)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	struct compare_run like = {
		.side = side, .wall_s = NAN, .user_s = NAN, .sys_s = NAN, .max_rss_bytes = -1, .counter = NAN
	};
	size_t n = 0;
	int code = SQLITE_DONE, r;

	r = count_runs(db, &n);
	if (r >= 0 && n == 0)
		r = -EBADMSG;
	if (r >= 0)
		r = prepare(db, "SELECT * FROM run ORDER BY run", &rows);
	if (r < 0)
		return r;
	runs->first = compare->n_runs;
	runs->numbers = calloc(n, sizeof *runs->numbers);
	if (!runs->numbers)
		return -ENOMEM;
	while (runs->n < n && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t number = integer_of(rows, "run", 0);
		struct compare_run *run;

		r = add_run(compare, &like, &run);
		if (r >= 0)
			r = fill_run(run, name, n == 1, rows, number);
		if (r >= 0)
			r = read_wall(db, number, &run->wall_s);
		if (r < 0)
			return r;
		runs->numbers[runs->n++] = number;
	}
	return code == SQLITE_ROW ? 0 : finished(code);
}

static int read_pids(sqlite3 *db, struct file_runs *runs, char *why)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r;

	if (runs->n == 1)
		return 0;
	if (!has_table(db, "run_process"))
		return -EBADMSG;
	r = prepare(db, "SELECT pid, run FROM run_process ORDER BY pid", &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = grow(&runs->pids, runs->n_pids, &runs->pids_allocated, sizeof *runs->pids);
		if (r < 0)
			return r;
		runs->pids[runs->n_pids] = (struct run_of_pid){ sqlite3_column_int64(rows, 0),
								sqlite3_column_int64(rows, 1) };
		if (runs->n_pids > 0 && runs->pids[runs->n_pids - 1].pid == runs->pids[runs->n_pids].pid) {
			snprintf(why, 256,
				 "process %lld lasts through several of its runs: give the original recordings",
				 (long long)runs->pids[runs->n_pids].pid);
			return -EDOM;
		}
		runs->n_pids++;
	}
	return r < 0 ? r : finished(code);
}

/* Counters belong to the whole file. */
static int read_counters(struct compare *compare, sqlite3 *db, const struct file_runs *runs, char *why)
{
	struct compare_run *first = &compare->runs[runs->first];
	const char *wanted = compare->options.per == PER_COUNTER ? compare->options.counter : NULL;
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	double lost = 0;
	int code, r;

	r = read_number(db, "SELECT total(value) FROM counter WHERE name = 'lost'", 0, &lost);
	if (r < 0)
		return r;
	first->lost = lost > 0 ? (uint64_t)fmin(lost, 1e18) : 0;
	if (!wanted)
		return 0;
	if (runs->n > 1) {
		snprintf(why, 256, "its counter '%.80s' is the sum of %zu runs: give the original recordings", wanted,
			 runs->n);
		return -EDOM;
	}
	r = prepare(db, "SELECT value FROM counter WHERE name = ?1", &row);
	if (r < 0)
		return r;
	sqlite3_bind_text(row, 1, wanted, -1, SQLITE_STATIC);
	code = sqlite3_step(row);
	if (code != SQLITE_ROW || sqlite3_column_int64(row, 0) <= 0) {
		snprintf(why, 256, "it has no counter '%.80s' above 0", wanted);
		return code == SQLITE_ROW || code == SQLITE_DONE ? -EDOM : finished(code);
	}
	first->counter = sqlite3_column_double(row, 0);
	return 0;
}

/* Also for recorded runs, but only what bench measured. */
static int read_timed(struct compare *compare, enum side side, const char *name, sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	struct compare_run like = { .side = side, .counter = NAN };
	int code, r;

	if (!has_table(db, "bench_run"))
		return 0;
	r = prepare(db, "SELECT * FROM bench_run WHERE run IS NULL ORDER BY bench_run", &rows);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		struct compare_run *run;

		r = add_run(compare, &like, &run);
		if (r < 0)
			return r;
		run->wall_s = real_of(rows, "wall");
		run->user_s = real_of(rows, "user");
		run->sys_s = real_of(rows, "sys");
		run->started = real_of(rows, "started");
		run->max_rss_bytes = integer_of(rows, "max_rss", -1);
		run->exit_status = (int)integer_of(rows, "exit_status", 0);
		run->command = text_of(rows, "command");
		run->name = name_clean(name);
		if (!run->command || !run->name)
			return -ENOMEM;
	}
	return r < 0 ? r : finished(code);
}

int runs_read(struct compare *compare, enum side side, const char *name, sqlite3 *db, struct file_runs *ret, char *why)
{
	int r;

	r = read_recorded(compare, side, name, db, ret);
	if (r >= 0)
		r = read_pids(db, ret, why);
	if (r >= 0)
		r = read_counters(compare, db, ret, why);
	return r < 0 ? r : read_timed(compare, side, name, db);
}

bool compare_differs(const struct compare *compare, size_t field, const char **ret_base, const char **ret_head)
{
	for (size_t i = 0; i < compare->n_runs; i++) {
		for (size_t j = i + 1; j < compare->n_runs; j++) {
			const struct compare_run *a = &compare->runs[i], *b = &compare->runs[j];

			if (!a->about[field][0] || !b->about[field][0] || strcmp(a->about[field], b->about[field]) == 0)
				continue;
			*ret_base = a->about[field];
			*ret_head = b->about[field];
			return true;
		}
	}
	return false;
}

int runs_add_rank(struct compare *compare, const struct compare_rank *rank)
{
	const struct compare_run like = { .side = rank->side,
					  .is_recorded = true,
					  .wall_s = NAN,
					  .user_s = NAN,
					  .sys_s = NAN,
					  .max_rss_bytes = -1,
					  .counter = NAN };
	struct compare_run *run;
	int r = add_run(compare, &like, &run);

	if (r < 0)
		return r;
	run->name = name_clean(rank->name);
	run->command = strdup("");
	return run->name && run->command ? 0 : -ENOMEM;
}

int runs_add_steps(struct compare *compare, const char *name, const struct compare_steps *steps, sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	struct compare_run like = {
		.side = steps->side, .wall_s = NAN, .user_s = NAN, .sys_s = NAN, .max_rss_bytes = -1, .counter = NAN
	};
	struct compare_run *run;
	int r;

	r = prepare(db, "SELECT * FROM run ORDER BY run LIMIT 1", &row);
	if (r >= 0 && sqlite3_step(row) != SQLITE_ROW)
		r = -EBADMSG;
	if (r >= 0)
		r = add_run(compare, &like, &run);
	if (r >= 0)
		r = fill_run(run, name, true, row, 1);
	if (r >= 0)
		run->n_steps = steps->n;
	return r;
}
