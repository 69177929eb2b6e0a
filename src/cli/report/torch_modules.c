/* SPDX-License-Identifier: MIT */
/* torch_modules.c - see report.h. The rows come in order from one statement. */
#include "src/cli/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/report/report.h"
#include "src/store/store.h"

DEFINE_CLEANUP(struct torch_report *, torch_report_free)

static double read_start(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(db, "SELECT min(started) FROM run", -1, &row, NULL) != SQLITE_OK ||
	    sqlite3_step(row) != SQLITE_ROW)
		return 0;
	return sqlite3_column_double(row, 0);
}

/* Of passes that begin at once, the outer one comes first: of a forward pass it begins first, of a backward pass last. */
static char *make_sql(sqlite3 *db, const struct view *view, bool has_thread)
{
	sqlite3_str *sql = sqlite3_str_new(db);
	double started = read_start(db);

	sqlite3_str_appendf(sql,
			    "SELECT process, local_step, %s, module, operation_name, stage, time_offset, %s / 1e3,"
			    " duration_ms / 1e3, max_allocated FROM python.torch_trace WHERE duration_ms IS NOT NULL",
			    has_thread ? "coalesce(tid, 0)" : "0",
			    has_thread ? "coalesce(host_ms, duration_ms)" : "duration_ms");
	for (size_t i = 0; i < view->pids.n; i++)
		sqlite3_str_appendf(sql, "%s%lld", i == 0 ? " AND process IN (" : ",", atoll(view->pids.words[i]));
	sqlite3_str_appendall(sql, view->pids.n > 0 ? ")" : "");
	if (view->since.type != VIEW_TIME_NONE)
		sqlite3_str_appendf(sql, " AND timestamp >= %!.17g", view_time_resolve(&view->since, started));
	if (view->until.type != VIEW_TIME_NONE)
		sqlite3_str_appendf(sql, " AND timestamp < %!.17g", view_time_resolve(&view->until, started));
	sqlite3_str_appendall(sql, " ORDER BY 1, 2, 3, 7, 8 DESC, CASE stage WHEN 'backward' THEN -seq ELSE seq END");
	return sqlite3_str_finish(sql);
}

static const char *text_at(sqlite3_stmt *rows, int column)
{
	return (const char *)sqlite3_column_text(rows, column) ?: "";
}

static int add_row(struct torch_report *report, sqlite3_stmt *rows)
{
	return torch_report_add(
		report,
		&(struct torch_pass){
			.process = sqlite3_column_int64(rows, 0),
			.step = sqlite3_column_int64(rows, 1),
			.thread = sqlite3_column_int64(rows, 2),
			.module = text_at(rows, 3),
			.kind = text_at(rows, 4),
			.stage = text_at(rows, 5),
			.begin_s = sqlite3_column_double(rows, 6),
			.host_s = sqlite3_column_double(rows, 7),
			.duration_s = sqlite3_column_double(rows, 8),
			.peak_mb = sqlite3_column_type(rows, 9) == SQLITE_NULL ? -1 : sqlite3_column_double(rows, 9),
		});
}

/* NULL: there is no such table. Rows of an older probing have no thread. */
static int prepare(sqlite3 *db, const struct view *view, sqlite3_stmt **ret)
{
	int code = SQLITE_ERROR;

	for (int has_thread = 1; has_thread >= 0 && code == SQLITE_ERROR; has_thread--) {
		char *sql = make_sql(db, view, has_thread);

		code = sql ? sqlite3_prepare_v2(db, sql, -1, ret, NULL) : SQLITE_NOMEM;
		sqlite3_free(sql);
	}
	return code == SQLITE_ERROR ? 0 : store_errno(db, code);
}

/* Returns the number of rows, at most 1, or negative errno. */
static int collect(sqlite3 *db, const struct view *view, struct torch_report *report)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code = SQLITE_DONE, r, n = 0;

	r = prepare(db, view, &rows);
	while (r >= 0 && rows && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = add_row(report, rows);
		n = 1;
	}
	if (r >= 0)
		r = store_errno(db, code);
	return r < 0 ? r : n;
}

bool torch_modules_are_there(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;

	return sqlite3_prepare_v2(db, "SELECT 1 FROM row_table WHERE name = 'torch_trace'", -1, &row, NULL) ==
		       SQLITE_OK &&
	       sqlite3_step(row) == SQLITE_ROW;
}

struct printing {
	struct torch_report *report;
	const struct report_options *options;
};

static int print(const void *data, FILE *out)
{
	const struct printing *printing = data;

	return torch_report_print(printing->report, printing->options, out);
}

static int fail_print(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "cannot write the report: %s", strerror(-error));
}

/* What to do for rows. */
static int fail_empty(const char *path, const struct view *view)
{
	if (view->pids.n > 0 || view->since.type != VIEW_TIME_NONE || view->until.type != VIEW_TIME_NONE)
		return cli_fail(EXIT_NO_INPUT, "no passes of torch's modules in %s match --pid, --since and --until",
				path);
	if (endpoint_is_process(path))
		return cli_fail(EXIT_NO_INPUT,
				"process %s has no rows of torch_trace: 'probing config %s probing.torch.profiling=on' "
				"traces the modules of torch from now on",
				path, path);
	return cli_fail(
		EXIT_NO_INPUT,
		"%s has no rows of torch_trace: record a program that PROBING=1 PROBING_TORCH_PROFILING=on starts, "
		"or that 'probing config PID probing.torch.profiling=on' traces",
		path);
}

int torch_modules_print(const char *path, const struct view *view, const struct report_options *options)
{
	CLEANUP(torch_report_freep) struct torch_report *report = NULL;
	struct endpoint endpoint;
	int r, status;

	path = path ? path : cli_default_recording();
	status = endpoint_open(&path, 1, false, &endpoint);
	if (status != EXIT_OK)
		return status;
	r = torch_report_new(&report);
	if (r >= 0)
		r = collect(endpoint.db, view, report);
	if (r < 0)
		status = cli_fail(cli_status(r), "the rows of torch_trace of %s cannot be read: %s", path,
				  strerror(-r));
	else if (r == 0)
		status = fail_empty(path, view);
	else
		status = output_write("-", 0, print, fail_print, &(struct printing){ report, options });
	return endpoint_finish(&endpoint, status);
}
