/* SPDX-License-Identifier: MIT */
/* metrics.c - reads the files that parse.c parses; see metrics.h. */
#include "src/metrics/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum { MAX_FILE_BYTES = 1 << 20 }; /* /proc/stat has a line per CPU and a number per interrupt */

static uint64_t tick_ns(void)
{
	return 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* NULL: it cannot be read, and the numbers in it stay unknown. */
static char *read_if_there(const char *path)
{
	char *text = NULL;

	return read_file(path, MAX_FILE_BYTES, &text, NULL) < 0 ? NULL : text;
}

int metrics_read_process(pid_t pid, struct process_usage_row *ret)
{
	CLEANUP(freep) char *stat = NULL, *status = NULL, *io = NULL;
	char path[PROC_PATH_BYTES];
	int r;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	r = read_file(path, MAX_FILE_BYTES, &stat, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	proc_path(pid, "status", path); /* of an ended main thread, it exists but without memory */
	r = read_file(path, MAX_FILE_BYTES, &status, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
	io = read_if_there(path);
	r = metrics_parse_process(&(struct process_files){ stat, status, io }, tick_ns(), ret);
	if (r < 0)
		return r;
	ret->pid = pid;
	ret->time_ns = realtime_ns();
	return 0;
}

int metrics_read_machine(struct machine_usage_row *ret)
{
	CLEANUP(freep) char *stat = NULL;
	CLEANUP(freep) char *meminfo = read_if_there("/proc/meminfo");
	CLEANUP(freep) char *vmstat = read_if_there("/proc/vmstat");
	CLEANUP(freep) char *net_dev = read_if_there("/proc/net/dev");
	CLEANUP(freep) char *cpu = read_if_there("/proc/pressure/cpu");
	CLEANUP(freep) char *memory = read_if_there("/proc/pressure/memory");
	CLEANUP(freep) char *io = read_if_there("/proc/pressure/io");
	int r;

	r = read_file("/proc/stat", MAX_FILE_BYTES, &stat, NULL);
	if (r < 0)
		return r;
	r = metrics_parse_machine(&(struct machine_files){ stat, meminfo, vmstat, net_dev, cpu, memory, io }, tick_ns(),
				  ret);
	if (r < 0)
		return r;
	if (gethostname(ret->host, sizeof ret->host) < 0)
		ret->host[0] = '\0';
	ret->time_ns = realtime_ns();
	return 0;
}
