/* SPDX-License-Identifier: MIT */
/* metrics.c - tables of metrics that recordings have, too: of the process and the machine, now. */
#include <errno.h>

#include "base/util.h"
#include "src/live/rows.h"
#include "src/live/tables.h"
#include "src/metrics/metrics.h"

int live_put_metric(void *data, const char *table, const struct metric_value *values, size_t n)
{
	struct live_rows *rows = data;

	(void)table;
	for (size_t i = 0; i < n; i++)
		switch (values[i].type) {
		case METRIC_INTEGER:
			live_integer(rows, values[i].integer);
			break;
		case METRIC_REAL:
			live_real(rows, values[i].real);
			break;
		case METRIC_TEXT:
			live_text(rows, values[i].text);
			break;
		default:
			live_null(rows);
		}
	return 0;
}

static int read_table(struct live *live, struct live_rows *rows, const char *table)
{
	CLEANUP(metrics_freep) struct metrics *metrics = NULL;
	const struct metric_sink sink = { live_put_metric, rows };
	const struct metrics_moment moment = { (double)realtime_ns() / 1e9, &live->options.pid, 1 };
	int r;

	r = metrics_new(&metrics);
	return r < 0 ? r : metrics_put(metrics, table, &moment, &sink);
}

#define METRIC_TABLE(table)                                                                                            \
	static int read_##table(struct live *live, struct live_rows *rows)                                             \
	{                                                                                                              \
		return read_table(live, rows, #table);                                                                 \
	}                                                                                                              \
	const struct live_table live_##table = {                                                                       \
		.schema = "main",                                                                                      \
		.name = #table,                                                                                        \
		.read = read_##table,                                                                                  \
	}

METRIC_TABLE(process_usage);
METRIC_TABLE(machine_usage);
METRIC_TABLE(cgroup_usage);
METRIC_TABLE(pressure);
METRIC_TABLE(disk_usage);
METRIC_TABLE(network_usage);
