/* SPDX-License-Identifier: MIT */
/* counters.c - see counters.h.
 *
 * Control groups are of version 1, 2, or both: the hierarchy that has the CPU controller has cpu.stat with throttled times. A
 * quota of an ancestor holds as well. Source: proc(5), Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/
 * sched-bwc.rst.
 */
#include "src/cli/cluster/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum { MAX_PATH = 4096, MAX_DEPTH = 64 };

static void add_thread_times(pid_t pid, pid_t tid, struct counters *counters)
{
	CLEANUP(freep) char *text = NULL;
	unsigned long long run_ns, queued_ns;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (read_file(path, 256, &text, NULL) < 0 || sscanf(text, "%llu %llu", &run_ns, &queued_ns) != 2)
		return;
	counters->cpu_s = MAX(counters->cpu_s, 0) + (double)run_ns / 1e9;
	counters->queued_s = MAX(counters->queued_s, 0) + (double)queued_ns / 1e9;
}

/* ---- Control groups ---- */

static int read_group_file(const char *folder, const char *name, char **ret)
{
	char path[MAX_PATH + 32];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return read_file(path, 1 << 16, ret, NULL);
}

/* A number of a file of one number; negative: there is none. */
static double number_of(const char *folder, const char *name)
{
	CLEANUP(freep) char *text = NULL;

	return read_group_file(folder, name, &text) < 0 ? -1 : strtod(text, NULL);
}

static double limit_of(const char *folder)
{
	CLEANUP(freep) char *text = NULL;
	double quota = -1, period = -1;

	if (read_group_file(folder, "cpu.max", &text) >= 0) {
		if (sscanf(text, "%lf %lf", &quota, &period) != 2)
			quota = -1; /* "max 100000" */
	} else {
		quota = number_of(folder, "cpu.cfs_quota_us");
		period = number_of(folder, "cpu.cfs_period_us");
	}
	return quota > 0 && period > 0 ? quota / period : -1;
}

/* false: the folder has no such times. */
static bool read_stat(const char *folder, double *ret_s)
{
	CLEANUP(freep) char *stat = NULL;
	const char *usec, *nsec;

	if (read_group_file(folder, "cpu.stat", &stat) < 0)
		return false;
	usec = strstr(stat, "throttled_usec ");
	nsec = strstr(stat, "throttled_time ");
	if (!usec && !nsec)
		return false;
	*ret_s = usec ? strtod(usec + strlen("throttled_usec "), NULL) / 1e6
		      : strtod(nsec + strlen("throttled_time "), NULL) / 1e9;
	return true;
}

/* A group and its ancestors in a hierarchy that is mounted at @root. @path: "/a/b", without its end. */
static void add_group(const char *root, const char *path, size_t n_path, struct counters *counters)
{
	char folder[MAX_PATH];

	if (strlen(root) + n_path >= sizeof folder)
		return;
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		double throttled_s, limit;

		snprintf(folder, sizeof folder, "%s%.*s", root, (int)n_path, path);
		if (read_stat(folder, &throttled_s))
			counters->throttled_s = MAX(counters->throttled_s, 0) + throttled_s;
		else if (n_path <= 1 && access(folder, F_OK) == 0)
			counters->throttled_s = MAX(counters->throttled_s, 0); /* the root group has no quota */
		limit = limit_of(folder);
		if (limit >= 0)
			counters->limit_cpus = counters->limit_cpus < 0 ? limit : MIN(counters->limit_cpus, limit);
		if (n_path <= 1)
			return;
		while (n_path > 0 && path[n_path - 1] != '/')
			n_path--;
		n_path = n_path > 1 ? n_path - 1 : n_path;
	}
}

/* "cpu" among controllers with commas between them. */
static bool has_cpu(const char *controllers, size_t n)
{
	for (size_t i = 0; i + 3 <= n; i++)
		if (strncmp(controllers + i, "cpu", 3) == 0 && (i == 0 || controllers[i - 1] == ',') &&
		    (i + 3 == n || controllers[i + 3] == ','))
			return true;
	return false;
}

/* A line of /proc/PID/cgroup: "4:cpu,cpuacct:/a/b" of version 1, "0::/a/b" of version 2. */
static void add_hierarchy(const char *mounted, const char *line, size_t n, struct counters *counters)
{
	const char *first = memchr(line, ':', n), *second;
	char root[MAX_PATH];

	second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - line)) : NULL;
	if (!second || second + 1 == line + n)
		return;
	if (second == first + 1) {
		add_group(mounted, second + 1, (size_t)(line + n - second - 1), counters);
		snprintf(root, sizeof root, "%s/unified", mounted);
		add_group(root, second + 1, (size_t)(line + n - second - 1), counters);
	} else if (has_cpu(first + 1, (size_t)(second - first - 1)) && second - first < 32) {
		snprintf(root, sizeof root, "%s/%.*s", mounted, (int)(second - first - 1), first + 1);
		if (access(root, F_OK) < 0)
			snprintf(root, sizeof root, "%s/cpu", mounted);
		add_group(root, second + 1, (size_t)(line + n - second - 1), counters);
	}
}

void counters_add_groups(const char *root, const char *groups, struct counters *counters)
{
	for (const char *line = groups; *line; line += strcspn(line, "\n"), line += *line == '\n')
		add_hierarchy(root, line, strcspn(line, "\n"), counters);
}

static void read_groups(pid_t pid, struct counters *counters)
{
	CLEANUP(freep) char *groups = NULL;
	size_t n_bytes;

	if (proc_read(pid, "cgroup", 1 << 16, &groups, &n_bytes) >= 0)
		counters_add_groups("/sys/fs/cgroup", groups, counters);
}

/* ---- All of it ---- */

static double stolen_of_machine(void)
{
	CLEANUP(freep) char *text = NULL;
	unsigned long long stolen;

	if (read_file("/proc/stat", 4096, &text, NULL) < 0 ||
	    sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
		return -1;
	return (double)stolen / (double)sysconf(_SC_CLK_TCK);
}

/* Resident, in MB; negative: unknown. Source: proc_pid_statm(5). */
static double memory_of(pid_t pid)
{
	CLEANUP(freep) char *text = NULL;
	unsigned long long pages;
	size_t n_bytes;

	if (proc_read(pid, "statm", 256, &text, &n_bytes) < 0 || sscanf(text, "%*u %llu", &pages) != 1)
		return -1;
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

void counters_read(pid_t pid, struct counters *ret)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;

	*ret = (struct counters){
		.cpu_s = -1, .queued_s = -1, .throttled_s = -1, .stolen_s = stolen_of_machine(), .limit_cpus = -1
	};
	if (proc_tasks(pid, &tids, &n) >= 0)
		for (size_t i = 0; i < n; i++)
			add_thread_times(pid, tids[i], ret);
	read_groups(pid, ret);
}

/* A thread that has ended meanwhile takes its time along: the difference may even be negative. */
static double difference(double before, double after)
{
	return before < 0 || after < 0 ? -1 : MAX(after - before, 0);
}

void counters_usage(pid_t pid, const struct counters *before, double seconds, struct rank_usage *ret)
{
	struct counters after;

	counters_read(pid, &after);
	ret->seconds = seconds;
	ret->cpu_s = difference(before->cpu_s, after.cpu_s);
	ret->queued_s = difference(before->queued_s, after.queued_s);
	ret->throttled_s = difference(before->throttled_s, after.throttled_s);
	ret->stolen_s = difference(before->stolen_s, after.stolen_s);
	ret->limit_cpus = after.limit_cpus;
	ret->memory_mb = memory_of(pid);
}
