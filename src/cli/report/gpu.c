/* SPDX-License-Identifier: MIT */
/* gpu.c - see report.h. */
#include "src/cli/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store.h"

#define MAX_NS (INT64_MAX / 2)

#define WORK                                                                                                                \
	"(SELECT 1 AS is_kernel, trace, coalesce(device, '') AS device, name, calls, duration_ns, start_ns FROM gpu_kernel" \
	" UNION ALL SELECT 0, trace, coalesce(device, ''), name, calls, duration_ns, start_ns FROM gpu_memcpy)"

/*
 * sum() fails where whole numbers of a foreign recording do not fit into 64 bits; total() does not, and is exact up to 104 days.
 * Times on several streams of a GPU overlap: count what is behind the latest end so far.
 */
static const char devices_sql[] =
	"SELECT device, total(max(start_ns + duration_ns - max(start_ns, coalesce(before, start_ns)), 0)),"
	" sum(is_kernel), sum(1 - is_kernel) FROM (SELECT *, max(start_ns + duration_ns) OVER (PARTITION BY trace, device"
	" ORDER BY start_ns, duration_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM " WORK
	" WHERE start_ns IS NOT NULL) GROUP BY device ORDER BY device";
static const char work_sql[] = "SELECT name, NULL, total(duration_ns) AS ns, total(calls), 0 FROM " WORK
			       " GROUP BY name ORDER BY ns DESC, name";
static const char idle_sql[] =
	"SELECT function, python, total(duration_ns) AS ns, count(DISTINCT start_ns), launched FROM gpu_idle"
	" GROUP BY function, python, launched ORDER BY ns DESC, function, python";
static const char idle_of_sql[] = "SELECT total(duration_ns), count(*) FROM gpu_idle WHERE device = ?1";
/* One launch a kernel, also where many calls have one correlation: the pairs would be the square of them. */
static const char launches_sql[] =
	"SELECT k.start_ns - a.start_ns AS delay, k.name FROM gpu_kernel AS k JOIN (SELECT trace, correlation,"
	" min(start_ns) AS start_ns FROM gpu_api_call WHERE correlation IS NOT NULL GROUP BY trace, correlation) AS a"
	" ON a.trace = k.trace AND a.correlation = k.correlation WHERE k.start_ns >= a.start_ns ORDER BY delay, k.name";

static bool has_table(sqlite3 *db, const char *name)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;

	return sqlite3_prepare_v2(db, "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1", -1,
				  &statement, NULL) == SQLITE_OK &&
	       sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
	       sqlite3_step(statement) == SQLITE_ROW;
}

static int begin(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	return store_errno(db, sqlite3_prepare_v2(db, sql, -1, ret, NULL));
}

/* A text of a row; NULL stays NULL. -ENOMEM. */
static int take_text(sqlite3_stmt *row, int column, char **ret)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* A foreign recording has any number: the sum of two must fit. */
static int64_t time_of(sqlite3_stmt *row, int column)
{
	return MIN(MAX(sqlite3_column_int64(row, column), INT64_C(0)), MAX_NS);
}

static int read_idle_of(sqlite3 *db, struct report_gpu_device *device)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code, r;

	device->idle_ns = -1;
	if (!has_table(db, "gpu_idle"))
		return 0;
	r = begin(db, idle_of_sql, &row);
	if (r < 0)
		return r;
	sqlite3_bind_text(row, 1, device->name, -1, SQLITE_STATIC);
	code = sqlite3_step(row);
	if (code != SQLITE_ROW)
		return store_errno(db, code);
	if (sqlite3_column_int64(row, 1) > 0)
		device->idle_ns = time_of(row, 0);
	return 0;
}

static int read_devices(sqlite3 *db, struct report_gpu *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code = SQLITE_OK, r;

	r = begin(db, devices_sql, &row);
	while (r >= 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
		struct report_gpu_device device = { .busy_ns = time_of(row, 1),
						    .n_kernels = sqlite3_column_int64(row, 2),
						    .n_copies = sqlite3_column_int64(row, 3) };

		r = grow(&ret->devices, ret->n_devices, &ret->devices_allocated, sizeof *ret->devices);
		if (r >= 0)
			r = take_text(row, 0, &device.name);
		if (r < 0)
			return r;
		ret->devices[ret->n_devices++] = device;
		r = read_idle_of(db, &ret->devices[ret->n_devices - 1]);
	}
	return r < 0 ? r : store_errno(db, code);
}

static int read_rows(sqlite3 *db, const char *sql, struct report_gpu_rows *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code = SQLITE_OK, r;

	r = begin(db, sql, &row);
	while (r >= 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
		struct report_gpu_row *item = &ret->items[ret->n];

		ret->all_ns = MIN(ret->all_ns + time_of(row, 2), MAX_NS);
		if (ret->n == REPORT_GPU_ROWS) {
			ret->n_more++;
			continue;
		}
		*item = (struct report_gpu_row){ .ns = time_of(row, 2),
						 .n = sqlite3_column_int64(row, 3),
						 .launched = sqlite3_column_int(row, 4) != 0 };
		r = take_text(row, 0, &item->name);
		if (r >= 0)
			r = take_text(row, 1, &item->python);
		ret->n++;
	}
	return r < 0 ? r : store_errno(db, code);
}

/* The rows come in the order of their delays: keep all of these, and the last name. */
static int read_launches(sqlite3 *db, struct report_gpu *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	CLEANUP(freep) int64_t *delays = NULL;
	size_t allocated = 0, n = 0;
	int code = SQLITE_OK, r;

	r = begin(db, launches_sql, &row);
	while (r >= 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
		r = grow(&delays, n, &allocated, sizeof *delays);
		if (r < 0)
			return r;
		delays[n++] = sqlite3_column_int64(row, 0);
		free(TAKE(ret->longest));
		r = take_text(row, 1, &ret->longest);
	}
	if (r < 0 || n == 0)
		return r < 0 ? r : store_errno(db, code);
	ret->n_launches = (int64_t)n;
	ret->median_ns = delays[(n - 1) / 2];
	ret->ninety_ns = delays[(n - 1) * 9 / 10];
	ret->longest_ns = delays[n - 1];
	return store_errno(db, code);
}

int gpu_summary(sqlite3 *db, struct report_gpu *ret)
{
	int r;

	*ret = (struct report_gpu){ 0 };
	if (!has_table(db, "gpu_kernel") || !has_table(db, "gpu_memcpy") || !has_table(db, "gpu_api_call"))
		return 0;
	r = read_devices(db, ret);
	if (r >= 0)
		r = read_rows(db, work_sql, &ret->work);
	if (r >= 0 && has_table(db, "gpu_idle"))
		r = read_rows(db, idle_sql, &ret->idle);
	if (r >= 0)
		r = read_launches(db, ret);
	return r < 0 ? r : ret->work.n > 0;
}
