/* SPDX-License-Identifier: MIT */
/* metrics.c - rows of process_usage and machine_usage, between samples; see pipeline_private.h. */
#include "src/metrics/metrics.h"

#include <errno.h>

#include "base/util.h"
#include "src/pipeline/pipeline_private.h"

/* Reading the files takes at most this part of the time: with hundreds of processes, rows come less often. */
enum { MAX_SHARE = 1000 };

static int put_machine(struct pipeline *pipeline, uint64_t time_ns)
{
	struct machine_usage_row now, *row;
	int r;

	r = metrics_read_machine(&now);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* /proc is hidden */
	row = BATCH_ADD(pipeline->batch, machine_usages);
	if (!row)
		return -ENOMEM;
	*row = now;
	row->time_ns = time_ns;
	return 0;
}

static int put_process(struct pipeline *pipeline, pid_t pid, uint64_t time_ns)
{
	struct process_usage_row now, *row;
	int r;

	r = metrics_read_process(pid, &now);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* it has just ended, or is hidden */
	row = BATCH_ADD(pipeline->batch, process_usages);
	if (!row)
		return -ENOMEM;
	*row = now;
	row->time_ns = time_ns;
	return 0;
}

int pipeline_take_metrics(struct pipeline *pipeline, uint64_t now_ns)
{
	uint64_t period_ns = pipeline->options.metrics_ns, time_ns = pipeline_to_realtime(pipeline, now_ns);
	const struct processes *processes = &pipeline->processes;
	uint64_t began_ns = thread_cpu_ns(), due_ns;
	int r;

	if (period_ns == 0 || now_ns < pipeline->next_metrics_ns || pipeline->paused_ns != 0)
		return 0;
	r = put_machine(pipeline, time_ns);
	for (size_t i = 0; i < processes->n && r >= 0; i++)
		if (processes->processes[i]->ended_ns == 0)
			r = put_process(pipeline, processes->processes[i]->pid, time_ns);
	/* A late look does not move those after it, unless it is a whole period late. */
	due_ns = pipeline->next_metrics_ns + period_ns;
	if (due_ns <= now_ns)
		due_ns = now_ns + period_ns;
	pipeline->next_metrics_ns = MAX(due_ns, now_ns + (thread_cpu_ns() - began_ns) * MAX_SHARE);
	return r;
}
