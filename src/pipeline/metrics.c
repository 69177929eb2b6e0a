/* SPDX-License-Identifier: MIT */
/* metrics.c - rows of metrics, between samples; see pipeline_private.h. */
#include "src/metrics/metrics.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/pipeline/pipeline_private.h"

/* Reading the files takes at most this part of the time: with hundreds of processes, rows come less often. */
enum { MAX_SHARE = 1000 };

/* ---- Rows ---- */

static int add_text(struct batch *batch, const char *text, int64_t *ret)
{
	size_t n = strlen(text) + 1;
	int r;

	r = grow(&batch->metric_text, batch->n_metric_text + n, &batch->metric_text_allocated, 1);
	if (r < 0)
		return r;
	memcpy(batch->metric_text + batch->n_metric_text, text, n);
	*ret = (int64_t)batch->n_metric_text;
	batch->n_metric_text += n;
	return 0;
}

static int add_row(void *data, const char *table, const struct metric_value *values, size_t n)
{
	struct batch *batch = data;
	struct new_metric *row = BATCH_ADD(batch, metrics);
	int r = 0;

	if (!row)
		return -ENOMEM;
	*row = (struct new_metric){ .table = table, .first = batch->n_metric_values };
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct metric_value *value = BATCH_ADD(batch, metric_values);

		if (!value)
			return -ENOMEM;
		*value = values[i];
		if (value->type == METRIC_TEXT)
			r = add_text(batch, values[i].text, &value->integer);
		row->n++;
	}
	return r;
}

/* ---- All of them ---- */

int pipeline_start_metrics(struct pipeline *pipeline)
{
	int r;

	r = metrics_new(&pipeline->metrics);
	return r < 0 ? r : metrics_start_gpu(pipeline->metrics);
}

const char *pipeline_gpu_trouble(const struct pipeline *pipeline)
{
	return pipeline->metrics ? metrics_gpu_trouble(pipeline->metrics) : NULL;
}

/* The processes that are known and have not ended, in the pipeline's array of them. */
static int find_pids(struct pipeline *pipeline, size_t *ret_n)
{
	const struct processes *processes = &pipeline->processes;
	size_t n = 0;

	for (size_t i = 0; i < processes->n; i++) {
		if (processes->processes[i]->ended_ns != 0)
			continue;
		if (grow(&pipeline->metric_pids, n, &pipeline->metric_pids_allocated, sizeof *pipeline->metric_pids) <
		    0)
			return -ENOMEM;
		pipeline->metric_pids[n++] = processes->processes[i]->pid;
	}
	*ret_n = n;
	return 0;
}

int pipeline_take_metrics(struct pipeline *pipeline, uint64_t now_ns)
{
	uint64_t period_ns = pipeline->options.metrics_ns, time_ns = pipeline_to_realtime(pipeline, now_ns);
	const struct metric_sink sink = { add_row, pipeline->batch };
	struct metrics_moment moment = { .seconds = store_seconds(time_ns) };
	uint64_t began_ns = thread_cpu_ns(), due_ns;
	int r;

	if (period_ns == 0)
		return 0;
	r = metrics_put_gpu(pipeline->metrics, &sink);
	if (r < 0 || now_ns < pipeline->next_metrics_ns || pipeline->paused_ns != 0)
		return r;
	metrics_ask_gpu(pipeline->metrics, moment.seconds);
	r = find_pids(pipeline, &moment.n_pids);
	moment.pids = pipeline->metric_pids;
	if (r >= 0)
		r = metrics_put(pipeline->metrics, NULL, &moment, &sink);
	/* A late look does not move those after it, unless it is a whole period late. */
	due_ns = pipeline->next_metrics_ns + period_ns;
	if (due_ns <= now_ns)
		due_ns = now_ns + period_ns;
	pipeline->next_metrics_ns = MAX(due_ns, now_ns + (thread_cpu_ns() - began_ns) * MAX_SHARE);
	return r;
}
