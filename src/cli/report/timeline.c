/* SPDX-License-Identifier: MIT */
/* timeline.c - see report.h. Each series is one statement. */
#include "src/cli/report/report.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/report/report.h"

enum { MAX_SERIES = 256, NAME_BYTES = 160 };

/*
 * Sum of the growth of counters per second: a row for each member (process, interface) becomes one for each moment. A counter that
 * shrinks is another process' of the same PID.
 */
#define RATE(table, member, counter, unit, condition)                                                                  \
	"SELECT '', timestamp, sum(max(d, 0)) / max(dt) / " unit " FROM (SELECT timestamp, " counter " - lag(" counter \
	")"                                                                                                            \
	" OVER w AS d, timestamp - lag(timestamp) OVER w AS dt FROM " table " WHERE " condition                        \
	" WINDOW w AS (PARTITION BY host_or_none, " member " ORDER BY timestamp)) WHERE dt > 0 GROUP BY timestamp"
#define MB "1048576.0"
#define PROCESSES "(SELECT *, '' AS host_or_none FROM process_usage WHERE %s)"
#define OF_HOST(table) "(SELECT *, host AS host_or_none FROM " table ")"

/* %s: which processes. Columns: a suffix of the name, seconds, a number; in order of the suffix and of time. */
static const struct series_query {
	const char *name, *unit, *sql;
	bool is_level, is_always; /* is_always: shown even if all numbers are 0 */
} queries[] = {
	{ "CPU", "CPUs", RATE(PROCESSES, "pid", "(user_ns + system_ns)", "1e9", "1") " ORDER BY 2", false, true },
	{ "memory (RSS)", "MB",
	  "SELECT '', timestamp, sum(rss) / " MB " FROM process_usage WHERE %s GROUP BY timestamp ORDER BY 2", true,
	  true },
	{ "storage read", "MB/s", RATE(PROCESSES, "pid", "read_bytes", MB, "1") " ORDER BY 2", false, false },
	{ "storage write", "MB/s", RATE(PROCESSES, "pid", "written_bytes", MB, "1") " ORDER BY 2", false, false },
	{ "page faults (major)", "/s", RATE(PROCESSES, "pid", "major_faults", "1.0", "1") " ORDER BY 2", false, false },
	{ "GPU ", "%", "SELECT device, timestamp, gpu_util FROM gpu_metrics ORDER BY host, device, timestamp", false,
	  true },
	{ "memory of GPU ", "MB",
	  "SELECT device, timestamp, memory_used_mb FROM gpu_metrics ORDER BY host, device, timestamp", true, true },
	{ "power of GPU ", "W", "SELECT device, timestamp, power_w FROM gpu_metrics ORDER BY host, device, timestamp",
	  true, false },
	{ "throttled ", "s/s",
	  "SELECT path, timestamp, max(d, 0) / dt / 1e9 FROM (SELECT host, path, timestamp, throttled_ns - lag(throttled_ns) OVER w AS d,"
	  " timestamp - lag(timestamp) OVER w AS dt FROM cgroup_usage WINDOW w AS (PARTITION BY host, path ORDER BY timestamp))"
	  " WHERE dt > 0 ORDER BY host, path, timestamp",
	  false, false },
	{ "machine: CPU", "CPUs",
	  RATE(OF_HOST("machine_usage"), "host", "(user_ns + system_ns)", "1e9", "1") " ORDER BY 2", false, true },
	{ "machine: memory used", "MB",
	  "SELECT '', timestamp, (memory - available) / " MB " FROM machine_usage ORDER BY timestamp", true, true },
	{ "machine: disk read", "MB/s", RATE(OF_HOST("machine_usage"), "host", "read_bytes", MB, "1") " ORDER BY 2",
	  false, false },
	{ "machine: disk write", "MB/s", RATE(OF_HOST("machine_usage"), "host", "written_bytes", MB, "1") " ORDER BY 2",
	  false, false },
	{ "machine: received", "MB/s", RATE(OF_HOST("machine_usage"), "host", "received_bytes", MB, "1") " ORDER BY 2",
	  false, false },
	{ "machine: sent", "MB/s", RATE(OF_HOST("machine_usage"), "host", "sent_bytes", MB, "1") " ORDER BY 2", false,
	  false },
	{ "stalled for CPU", "%", RATE(OF_HOST("machine_usage"), "host", "cpu_stalled_ns", "1e7", "1") " ORDER BY 2",
	  false, false },
	{ "stalled for memory", "%",
	  RATE(OF_HOST("machine_usage"), "host", "memory_stalled_ns", "1e7", "1") " ORDER BY 2", false, false },
	{ "stalled for I/O", "%", RATE(OF_HOST("machine_usage"), "host", "io_stalled_ns", "1e7", "1") " ORDER BY 2",
	  false, false },
};

#define MAX_SECONDS 9e18

struct collected {
	struct timeline_series series[MAX_SERIES];
	char names[MAX_SERIES][NAME_BYTES];
	size_t n;
	double since, until; /* of the points */
	double from, to;     /* wanted */
};

struct points {
	struct timeline_point *points;
	size_t n, allocated;
};

/* ---- Series ---- */

static bool is_zero(const struct points *points)
{
	for (size_t i = 0; i < points->n; i++)
		if (points->points[i].value != 0)
			return false;
	return true;
}

/* Takes the points, and leaves none. */
static void end_series(struct collected *to, const char *name, const char *suffix, const char *unit, bool is_level,
		       bool is_always, struct points *points)
{
	if (points->n > 0 && (is_always || !is_zero(points)) && to->n < MAX_SERIES) {
		snprintf(to->names[to->n], NAME_BYTES, "%s%s", name, suffix);
		to->since = fmin(to->since, points->points[0].seconds);
		to->until = fmax(to->until, points->points[points->n - 1].seconds);
		to->series[to->n] = (struct timeline_series){
			to->names[to->n], unit, TAKE(points->points), points->n, is_level,
		};
		to->n++;
	}
	free(points->points);
	*points = (struct points){ 0 };
}

static int add_point(struct points *points, double seconds, double value)
{
	int r = grow(&points->points, points->n, &points->allocated, sizeof *points->points);

	if (r >= 0)
		points->points[points->n++] = (struct timeline_point){ seconds, value };
	return r;
}

/* A statement about a table that the file does not have gives no series. */
static int collect(sqlite3 *db, const char *sql, const char *name, const char *unit, bool is_level, bool is_always,
		   struct collected *to)
{
	char suffix[NAME_BYTES] = "";
	struct points points = { 0 };
	sqlite3_stmt *rows;
	int code, r = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK)
		return sqlite3_errcode(db) == SQLITE_ERROR ? 0 : store_errno(db, sqlite3_errcode(db));
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *of = (const char *)sqlite3_column_text(rows, 0);
		double seconds = sqlite3_column_double(rows, 1);

		double value = sqlite3_column_double(rows, 2);

		if (sqlite3_column_type(rows, 2) == SQLITE_NULL || !isfinite(value) || !(fabs(seconds) < MAX_SECONDS) ||
		    seconds < to->from || seconds >= to->to)
			continue;
		if (of && strncmp(of, suffix, NAME_BYTES - 1) != 0) {
			end_series(to, name, suffix, unit, is_level, is_always, &points);
			snprintf(suffix, sizeof suffix, "%s", of);
		}
		r = add_point(&points, seconds, value);
	}
	if (r >= 0)
		r = store_errno(db, code);
	sqlite3_finalize(rows);
	end_series(to, name, suffix, unit, is_level, is_always, &points);
	return r;
}

/* Tables that a program has written, with its steps. */
static int collect_steps(sqlite3 *db, struct collected *to)
{
	static const char find_sql[] =
		"SELECT s.name FROM main.sqlite_schema AS s WHERE s.type = 'table' AND EXISTS (SELECT 1 FROM"
		" pragma_table_info(s.name) WHERE name = 'step') AND EXISTS (SELECT 1 FROM pragma_table_info(s.name)"
		" WHERE name = 'timestamp')";
	sqlite3_stmt *tables;
	int code, r;

	r = store_errno(db, sqlite3_prepare_v2(db, find_sql, -1, &tables, NULL));
	while (r >= 0 && (code = sqlite3_step(tables)) == SQLITE_ROW) {
		const char *table = (const char *)sqlite3_column_text(tables, 0);
		char *sql = sqlite3_mprintf(
			"SELECT '', timestamp, (step - lag(step) OVER w) / (timestamp - lag(timestamp) OVER w)"
			" FROM (SELECT timestamp, max(step) AS step FROM main.\"%w\" GROUP BY timestamp)"
			" WINDOW w AS (ORDER BY timestamp) ORDER BY 2",
			table);
		char name[NAME_BYTES];

		snprintf(name, sizeof name, "steps of %s", table);
		r = sql ? collect(db, sql, name, "/s", false, false, to) : -ENOMEM;
		sqlite3_free(sql);
	}
	if (r >= 0)
		r = store_errno(db, code);
	sqlite3_finalize(tables);
	return r;
}

/* ---- The verb's part ---- */

/* "1", or "pid IN (1,2)": the view's PIDs are numbers. Owned by the caller: sqlite3_free(). */
static char *condition_of(const struct view *view)
{
	sqlite3_str *text = sqlite3_str_new(NULL);

	for (size_t i = 0; i < view->pids.n; i++)
		sqlite3_str_appendf(text, "%s%lld", i == 0 ? "pid IN (" : ",", atoll(view->pids.words[i]));
	sqlite3_str_appendall(text, view->pids.n > 0 ? ")" : "1");
	return sqlite3_str_finish(text);
}

static int collect_all(sqlite3 *db, const char *condition, struct collected *to)
{
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(queries) && r >= 0; i++) {
		const struct series_query *query = &queries[i];
		const char *at = strstr(query->sql, "%s");
		char *sql = at ? sqlite3_mprintf("%.*s%s%s", (int)(at - query->sql), query->sql, condition, at + 2)
			       : sqlite3_mprintf("%s", query->sql);

		r = sql ? collect(db, sql, query->name, query->unit, query->is_level, query->is_always, to) : -ENOMEM;
		sqlite3_free(sql);
	}
	return r < 0 ? r : collect_steps(db, to);
}

static double started(sqlite3 *db)
{
	sqlite3_stmt *row;
	double found = 0;

	if (sqlite3_prepare_v2(db, "SELECT min(started) FROM run", -1, &row, NULL) != SQLITE_OK)
		return 0;
	if (sqlite3_step(row) == SQLITE_ROW)
		found = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return found;
}

/* A foreign recording may have times that no calendar has: collect() leaves out those that time_t cannot hold. */
static void print_times(const struct collected *found)
{
	time_t since = (time_t)found->since, until = (time_t)found->until;
	char first[32], last[32];
	struct tm first_tm, last_tm;

	if (!localtime_r(&since, &first_tm) || !localtime_r(&until, &last_tm))
		return;
	strftime(first, sizeof first, "%Y-%m-%d %H:%M:%S", &first_tm);
	strftime(last, sizeof last, "%H:%M:%S %Z", &last_tm);
	printf("%s to %s\n", first, last);
}

static int print(struct collected *found, bool is_ascii)
{
	const struct timeline timeline = {
		.series = found->series,
		.n = found->n,
		.since = found->since,
		.until = found->until,
		.columns = cli_columns(STDOUT_FILENO),
		.is_ascii = is_ascii,
	};
	int r;

	print_times(found);
	r = report_timeline(&timeline, stdout);
	if (r >= 0 && fflush(stdout) != 0)
		r = -errno;
	return r < 0 ? cli_fail(cli_status(r), "the timeline cannot be written: %s", strerror(-r)) : EXIT_OK;
}

int timeline_print(const char *path, const struct view *view, bool is_ascii)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(freep) struct collected *found = calloc(1, sizeof *found);
	char *condition = condition_of(view);
	int r, status;

	if (!found || !condition) {
		sqlite3_free(condition);
		return cli_fail(EXIT_FAILED, "not enough memory");
	}
	status = cli_open_recording(path, &db);
	if (status == EXIT_OK) {
		double start = started(db);

		*found = (struct collected){ .since = HUGE_VAL, .until = -HUGE_VAL, .from = -HUGE_VAL, .to = HUGE_VAL };
		if (view->since.type != VIEW_TIME_NONE)
			found->from = view_time_resolve(&view->since, start);
		if (view->until.type != VIEW_TIME_NONE)
			found->to = view_time_resolve(&view->until, start);
		r = collect_all(db, condition, found);
		if (r < 0)
			status = cli_fail(cli_status(r), "the metrics cannot be read: %s", strerror(-r));
		else if (found->n == 0)
			status = cli_fail(
				EXIT_NO_INPUT,
				"%s has no metrics of that time and these processes: record without --metrics 0, for "
				"two seconds or more",
				path ? path : cli_default_recording());
		else
			status = print(found, is_ascii);
		for (size_t i = 0; i < found->n; i++)
			free((void *)found->series[i].points);
	}
	sqlite3_free(condition);
	return status;
}
