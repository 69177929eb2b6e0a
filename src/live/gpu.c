/* SPDX-License-Identifier: MIT */
/* gpu.c - gpu_metrics, gpu.devices, gpu_process_usage: GPUs of the machine, now; see src/metrics/gpu.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/live/rows.h"
#include "src/live/tables.h"
#include "src/metrics/metrics.h"

/* A driver without persistence mode initialises each device first, which takes seconds. */
enum { PATIENCE_MS = 20000 };

/* -ENODATA: the machine has no driver, which a note has said. */
static int look(struct live *live, const struct gpu_look **ret)
{
	bool is_absent = false;
	const char *why;
	int r = 0;

	if (!live->gpu)
		r = gpu_reader_start(&live->gpu);
	if (r < 0)
		return r;
	(void)gpu_reader_ask(live->gpu, monotonic_ns());
	r = gpu_reader_take(live->gpu, PATIENCE_MS, ret);
	if (r >= 0)
		return 0;
	why = gpu_reader_why(live->gpu, monotonic_ns(), &is_absent);
	if (is_absent)
		live_note(live, why);
	else
		snprintf(live->why, sizeof live->why, "%s", why ? why : strerror(-r));
	gpu_reader_free(TAKE(live->gpu)); /* the next statement tries again */
	return is_absent ? -ENODATA : -EIO;
}

static int read_table(struct live *live, struct live_rows *rows, int which)
{
	const struct metric_sink sink = { live_put_metric, rows };
	const struct gpu_look *found;
	double now = (double)realtime_ns() / 1e9;
	char host[65];
	int r;

	r = look(live, &found);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	if (gethostname(host, sizeof host) < 0)
		host[0] = '\0';
	host[sizeof host - 1] = '\0';
	if (which == 0)
		return gpu_put_metrics(found, now, host, &sink);
	return which == 1 ? gpu_put_devices(found, host, &sink) : gpu_put_processes(found, now, host, &sink);
}

static int read_metrics(struct live *live, struct live_rows *rows)
{
	return read_table(live, rows, 0);
}

static int read_devices(struct live *live, struct live_rows *rows)
{
	return read_table(live, rows, 1);
}

static int read_processes(struct live *live, struct live_rows *rows)
{
	return read_table(live, rows, 2);
}

const struct live_table live_gpu_metrics = {
	.schema = "main",
	.name = "gpu_metrics",
	.read = read_metrics,
};
const struct live_table live_gpu_devices = {
	.schema = "gpu",
	.name = "devices",
	.read = read_devices,
};
const struct live_table live_gpu_process_usage = {
	.schema = "main",
	.name = "gpu_process_usage",
	.read = read_processes,
};
