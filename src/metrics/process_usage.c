/* SPDX-License-Identifier: MIT */
/* process_usage.c - process_usage: memory, CPU time and I/O of processes. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/proc.h"
#include "src/metrics/sources.h"

/* After the main thread has ended, "status" of the process has no memory, and that of another thread has. */
static const char *read_status(struct metrics *metrics, struct kept_process *process)
{
	char path[PROC_PATH_BYTES];
	const char *text = NULL;

	if (process->fds[1] >= 0)
		text = metric_read_fd(metrics, 1, process->fds[1]);
	if (text && proc_status_value(text, "VmSize"))
		return text;
	if (process->fds[1] >= 0)
		close(process->fds[1]);
	process->fds[1] = -1;
	proc_path(process->pid, "status", path);
	return metric_read_kept(metrics, 1, path, &process->fds[1]);
}

int metrics_read_process(struct metrics *metrics, pid_t pid, struct process_usage_row *ret)
{
	struct kept_process *process = metric_process(metrics, pid);
	struct process_files files = { 0 };
	char path[PROC_PATH_BYTES];
	int r;

	if (!process)
		return -ENOMEM;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	files.stat = metric_read_kept(metrics, 0, path, &process->fds[0]);
	if (files.stat)
		files.status = read_status(metrics, process);
	if (!files.status) {
		r = errno == ENOENT ? -ESRCH : -errno;
		process->has_ended = r == -ESRCH;
		return r;
	}
	snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
	files.io = metric_read_kept(metrics, 2, path, &process->fds[2]);
	r = metrics_parse_process(&files, metrics->tick_ns, ret);
	process->has_ended = r == -ESRCH;
	if ((size_t)(process - metrics->processes) >= metrics->max_kept)
		for (size_t i = 0; i < PROCESS_N_FILES; i++)
			if (process->fds[i] >= 0) {
				close(process->fds[i]);
				process->fds[i] = -1;
			}
	return r;
}

static int put(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink)
{
	int r = 0;

	for (size_t i = 0; i < moment->n_pids && r >= 0; i++) {
		struct process_usage_row now;

		r = metrics_read_process(metrics, moment->pids[i], &now);
		if (r >= 0) {
			const struct metric_value row[] = {
				metric_integer(moment->pids[i]), metric_real(moment->seconds),
				metric_integer(now.rss),         metric_integer(now.anonymous),
				metric_integer(now.swap),        metric_integer(now.virtual),
				metric_integer(now.threads),     metric_integer(now.user_ns),
				metric_integer(now.system_ns),   metric_integer(now.major_faults),
				metric_integer(now.read_bytes),  metric_integer(now.written_bytes),
				metric_integer(now.read_chars),  metric_integer(now.written_chars),
			};

			r = sink->put(sink->data, "process_usage", row, N_ELEMENTS(row));
		} else if (r != -ENOMEM) {
			r = 0; /* it has just ended, or is hidden */
		}
	}
	return r;
}

const struct metric_source metric_process_usage = { "process_usage", put };
