/* SPDX-License-Identifier: MIT */
/* curves.c - what record --metrics measured: memory, CPU time, GPUs. Each curve is one statement; a recording without its table has none. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"
#include "src/store/store.h"

enum { MAX_CURVES = 128, MAX_POINTS = 4 << 20, NAME_BYTES = 160 };
#define MAX_SECONDS 2e9
#define MB "1048576.0"

/* Growth of counters per second, of all members together. A counter that shrinks belongs to another process of that PID. */
#define RATE(table, members, counter, unit)                                                                            \
	"SELECT '', timestamp, sum(max(d, 0)) / max(dt) / " unit " FROM (SELECT timestamp, " counter " - lag(" counter \
	") OVER w AS d, timestamp - lag(timestamp) OVER w AS dt FROM " table " WINDOW w AS (PARTITION BY " members     \
	" ORDER BY timestamp)) WHERE dt > 0 GROUP BY timestamp ORDER BY 2"
#define OF_GPU(value) "SELECT device, timestamp, " value " FROM gpu_metrics ORDER BY host, device, timestamp"

/* Columns: a suffix of the name, seconds, value. By suffix and time. */
static const struct curve_query {
	const char *name, *unit, *sql;
} queries[] = {
	{ "CPU", "CPUs", RATE("process_usage", "pid", "(user_ns + system_ns)", "1e9") },
	{ "memory (RSS)", "MB",
	  "SELECT '', timestamp, sum(rss) / " MB " FROM process_usage GROUP BY timestamp ORDER BY 2" },
	{ "storage read", "MB/s", RATE("process_usage", "pid", "read_bytes", MB) },
	{ "storage write", "MB/s", RATE("process_usage", "pid", "written_bytes", MB) },
	{ "GPU ", "%", OF_GPU("gpu_util") },
	{ "memory of GPU ", "MB", OF_GPU("memory_used_mb") },
	{ "power of GPU ", "W", OF_GPU("power_w") },
	{ "machine: CPU", "CPUs", RATE("machine_usage", "host", "(user_ns + system_ns)", "1e9") },
	{ "machine: memory used", "MB",
	  "SELECT host, timestamp, (memory - available) / " MB " FROM machine_usage ORDER BY 1, 2" },
	{ "machine: received", "MB/s", RATE("machine_usage", "host", "received_bytes", MB) },
	{ "machine: sent", "MB/s", RATE("machine_usage", "host", "sent_bytes", MB) },
};

void lanes_drop_curves(struct lanes *lanes)
{
	for (size_t i = 0; i < lanes->n_curves; i++) {
		free(lanes->curves[i].name);
		free(lanes->curves[i].points);
	}
	lanes->n_curves = 0;
}

static int add_curve(struct lanes *lanes, const struct curve_query *query, const char *suffix)
{
	struct curve curve = { .unit = query->unit };
	int r = grow(&lanes->curves, lanes->n_curves, &lanes->curves_allocated, sizeof *lanes->curves);

	if (r < 0)
		return r;
	if (asprintf(&curve.name, "%s%s", query->name, suffix) < 0)
		return -ENOMEM;
	lanes->curves[lanes->n_curves++] = curve;
	return 0;
}

static int add_point(struct lanes *lanes, double seconds, double value)
{
	struct curve *curve = &lanes->curves[lanes->n_curves - 1];
	uint64_t time_ns;
	int r;

	if (!(seconds > 0 && seconds < MAX_SECONDS) || !isfinite(value))
		return 0;
	time_ns = (uint64_t)(seconds * 1e9);
	if (curve->n > 0 && curve->points[curve->n - 1].time_ns > time_ns)
		return 0; /* of another host, or a clock that was set back */
	r = grow(&curve->points, curve->n, &curve->allocated, sizeof *curve->points);
	if (r < 0)
		return r;
	curve->points[curve->n++] = (struct curve_point){ time_ns, value };
	lanes_reach(lanes, time_ns, time_ns + 1);
	return 0;
}

static int load_curve(struct lanes *lanes, const struct curve_query *query)
{
	char last[NAME_BYTES] = "";
	sqlite3_stmt *row;
	bool has_curve = false;
	size_t n = 0;
	int code, r = 0;

	code = sqlite3_prepare_v2(lanes->db, query->sql, -1, &row, NULL);
	if (code != SQLITE_OK)
		return code == SQLITE_ERROR ? 0 : store_errno(lanes->db, code);
	while (r >= 0 && n++ < MAX_POINTS && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const char *of = (const char *)sqlite3_column_text(row, 0) ?: "";

		if (sqlite3_column_type(row, 2) == SQLITE_NULL)
			continue;
		if (!has_curve || strncmp(of, last, sizeof last - 1) != 0) {
			if (lanes->n_curves == MAX_CURVES)
				break;
			snprintf(last, sizeof last, "%s", of);
			r = add_curve(lanes, query, strncmp(query->name, "machine", 7) == 0 ? "" : last);
			has_curve = r >= 0;
		}
		if (r >= 0)
			r = add_point(lanes, sqlite3_column_double(row, 1), sqlite3_column_double(row, 2));
	}
	if (r >= 0 && code != SQLITE_DONE && code != SQLITE_ROW)
		r = store_errno(lanes->db, code);
	sqlite3_finalize(row);
	return r;
}

int lanes_load_curves(struct lanes *lanes)
{
	int r = 0;

	lanes_drop_curves(lanes);
	for (size_t i = 0; i < N_ELEMENTS(queries) && r >= 0; i++)
		r = load_curve(lanes, &queries[i]);
	return r;
}
