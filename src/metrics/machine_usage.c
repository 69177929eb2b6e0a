/* SPDX-License-Identifier: MIT */
/* machine_usage.c - machine_usage: memory, CPU time and I/O of the machine. */
#include <errno.h>

#include "src/metrics/sources.h"

int metrics_read_machine(struct metrics *metrics, struct machine_usage_row *ret)
{
	struct machine_files files = { .stat = metric_machine_file(metrics, FILE_STAT) };

	if (!files.stat)
		return -errno;
	files.meminfo = metric_machine_file(metrics, FILE_MEMINFO);
	files.vmstat = metric_machine_file(metrics, FILE_VMSTAT);
	files.net_dev = metric_machine_file(metrics, FILE_NET_DEV);
	files.cpu_pressure = metric_machine_file(metrics, FILE_PRESSURE_CPU);
	files.memory_pressure = metric_machine_file(metrics, FILE_PRESSURE_MEMORY);
	files.io_pressure = metric_machine_file(metrics, FILE_PRESSURE_IO);
	return metrics_parse_machine(&files, metrics->tick_ns, ret);
}

static int put(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink)
{
	struct machine_usage_row now;
	int r;

	r = metrics_read_machine(metrics, &now);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* /proc is hidden */
	const struct metric_value row[] = {
		metric_text(metrics->host),         metric_real(moment->seconds),
		metric_integer(now.user_ns),        metric_integer(now.system_ns),
		metric_integer(now.idle_ns),        metric_integer(now.iowait_ns),
		metric_integer(now.steal_ns),       metric_integer(now.memory),
		metric_integer(now.available),      metric_integer(now.swap_used),
		metric_integer(now.read_bytes),     metric_integer(now.written_bytes),
		metric_integer(now.received_bytes), metric_integer(now.sent_bytes),
		metric_integer(now.cpu_stalled_ns), metric_integer(now.memory_stalled_ns),
		metric_integer(now.io_stalled_ns),
	};

	return sink->put(sink->data, "machine_usage", row, N_ELEMENTS(row));
}

const struct metric_source metric_machine_usage = { "machine_usage", put };
