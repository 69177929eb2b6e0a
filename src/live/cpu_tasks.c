/* SPDX-License-Identifier: MIT */
/* cpu_tasks.c - cpu.tasks: the threads of a process, their CPUs and their waits. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/proc.h"
#include "base/syscall_name.h"
#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

enum { MAX_STATUS = 1 << 16, MAX_NAME = 64 };

static const char *policy_name(unsigned policy)
{
	static const char *const names[] = { "other", "fifo", "rr", "batch", NULL, "idle", "deadline" }; /* sched(7) */

	return policy < N_ELEMENTS(names) ? names[policy] : NULL;
}

static void put_status_number(struct live_rows *rows, const char *status, const char *key)
{
	int64_t number;

	if (status && parse_number(status, key, 10, &number))
		live_integer(rows, number);
	else
		live_null(rows);
}

/* Kernel function and system call; only visible to a process that may trace this one. */
static int put_waiting(struct live_rows *rows, pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *wchan = NULL;
	struct proc_call call;
	char file[64];

	snprintf(file, sizeof file, "task/%d/wchan", (int)tid);
	wchan = proc_text(pid, file, MAX_NAME);
	if (!wchan)
		return -ENOMEM;
	live_text(rows, wchan[0] && strcmp(wchan, "0") != 0 ? wchan : NULL);
	live_text(rows, proc_call_read(pid, tid, &call) == 0 && !call.is_running ? syscall_name(call.number) : NULL);
	return 0;
}

static int put_task(struct live_rows *rows, pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *text = NULL, *status = NULL, *name = NULL;
	struct stat_line stat;
	char file[64], state[2] = "";
	int r;

	snprintf(file, sizeof file, "task/%d/stat", (int)tid);
	r = live_read_file(pid, file, 4096, &text, NULL);
	if (r == 0)
		r = parse_stat(text, &stat);
	if (r < 0)
		return r;
	snprintf(file, sizeof file, "task/%d/status", (int)tid);
	(void)live_read_file(pid, file, MAX_STATUS, &status, NULL);
	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	name = proc_text(pid, file, MAX_NAME);
	state[0] = stat.state;
	live_integer(rows, tid);
	live_text(rows, name ? name : "");
	live_text(rows, state);
	live_integer(rows, stat.cpu);
	live_real(rows, live_seconds(stat.user_ticks));
	live_real(rows, live_seconds(stat.system_ticks));
	put_status_number(rows, status, "voluntary_ctxt_switches");
	put_status_number(rows, status, "nonvoluntary_ctxt_switches");
	r = put_waiting(rows, pid, tid);
	live_integer(rows, stat.priority);
	live_integer(rows, stat.nice);
	live_text(rows, policy_name(stat.policy));
	live_real(rows, live_boot_time() + live_seconds(stat.start_ticks));
	return r;
}

static int read_tasks(struct live *live, struct live_rows *rows)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;
	int r;

	r = proc_tasks(live->options.pid, &tids, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		size_t n_before = rows->n_values;

		r = put_task(rows, live->options.pid, tids[i]);
		if (r == -ENOMEM)
			return r;
		if (r < 0) /* the thread has ended meanwhile */
			live_cut(rows, n_before);
	}
	return 0;
}

const struct live_table live_cpu_tasks = {
	.schema = "cpu",
	.name = "tasks",
	.read = read_tasks,
};
