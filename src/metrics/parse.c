/* SPDX-License-Identifier: MIT */
/* parse.c - numbers out of the files of /proc; see metrics.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/metrics/sources.h"

int64_t metric_scaled(uint64_t number, uint64_t unit)
{
	uint64_t product;

	if (__builtin_mul_overflow(number, unit, &product) || product > INT64_MAX)
		return METRIC_UNKNOWN;
	return (int64_t)product;
}

int64_t metric_sum(int64_t a, int64_t b)
{
	int64_t r;

	if (a == METRIC_UNKNOWN || b == METRIC_UNKNOWN || __builtin_add_overflow(a, b, &r))
		return METRIC_UNKNOWN;
	return r;
}

/* The number behind "KEY:" of a file of such lines, in @unit. */
static int64_t number_of(const char *text, const char *key, uint64_t unit)
{
	const char *value = text ? proc_status_value(text, key) : NULL;
	unsigned long long number;

	return value && sscanf(value, " %20llu", &number) == 1 ? metric_scaled(number, unit) : METRIC_UNKNOWN;
}

int64_t metric_word(const char *text, const char *key, uint64_t unit)
{
	size_t n = strlen(key);
	unsigned long long number;

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, key, n) == 0 && line[n] == ' ' && sscanf(line + n, " %20llu", &number) == 1)
			return metric_scaled(number, unit);
	return METRIC_UNKNOWN;
}

int metrics_parse_process(const struct process_files *files, uint64_t tick_ns, struct process_usage_row *ret)
{
	/* Of proc_pid_stat(5): major faults, its user and system time, and the number of threads. */
	static const char format[] =
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %20llu %*u %20llu %20llu %*d %*d %*d %*d %20llu";
	const char *rest = files->stat ? strrchr(files->stat, ')') : NULL; /* the name may contain any character */
	unsigned long long faults, user, system, threads;

	if (!rest || sscanf(rest + 1, format, &faults, &user, &system, &threads) != 4)
		return -EBADMSG;
	if (!files->status || !proc_status_value(files->status, "VmSize")) /* a zombie, or a kernel thread */
		return -ESRCH;
	ret->rss = number_of(files->status, "VmRSS", 1024);
	ret->anonymous = number_of(files->status, "RssAnon", 1024);
	ret->swap = number_of(files->status, "VmSwap", 1024);
	ret->virtual = number_of(files->status, "VmSize", 1024);
	ret->threads = metric_scaled(threads, 1);
	ret->user_ns = metric_scaled(user, tick_ns);
	ret->system_ns = metric_scaled(system, tick_ns);
	ret->major_faults = metric_scaled(faults, 1);
	ret->read_bytes = number_of(files->io, "read_bytes", 1);
	ret->written_bytes = number_of(files->io, "write_bytes", 1);
	ret->read_chars = number_of(files->io, "rchar", 1);
	ret->written_chars = number_of(files->io, "wchar", 1);
	return 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12": microseconds in which some task was stalled. */
static int64_t stalled_ns(const char *text)
{
	const char *total = text && strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
	unsigned long long number;

	return total && sscanf(total + strlen("total="), "%20llu", &number) == 1 ? metric_scaled(number, 1000)
										 : METRIC_UNKNOWN;
}

/* Lines "NAME: 8 numbers of received, 8 of sent", the bytes first, after two lines of heads. */
static void take_net(const char *text, struct machine_usage_row *ret)
{
	ret->received_bytes = ret->sent_bytes = text ? 0 : METRIC_UNKNOWN;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		unsigned long long received, sent;
		char name[64];

		if (sscanf(line, " %63[^: \t\n]: %20llu %*u %*u %*u %*u %*u %*u %*u %20llu", name, &received, &sent) !=
			    3 ||
		    strcmp(name, "lo") == 0)
			continue;
		ret->received_bytes = metric_sum(ret->received_bytes, metric_scaled(received, 1));
		ret->sent_bytes = metric_sum(ret->sent_bytes, metric_scaled(sent, 1));
	}
}

int metrics_parse_machine(const struct machine_files *files, uint64_t tick_ns, struct machine_usage_row *ret)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	int64_t total, available;

	if (!files->stat || sscanf(files->stat, "cpu %20llu %20llu %20llu %20llu %20llu %20llu %20llu %20llu", &user,
				   &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 8)
		return -EBADMSG;
	ret->user_ns = metric_sum(metric_scaled(user, tick_ns), metric_scaled(nice, tick_ns));
	ret->system_ns = metric_sum(metric_scaled(system, tick_ns),
				    metric_sum(metric_scaled(irq, tick_ns), metric_scaled(softirq, tick_ns)));
	ret->idle_ns = metric_scaled(idle, tick_ns);
	ret->iowait_ns = metric_scaled(iowait, tick_ns);
	ret->steal_ns = metric_scaled(steal, tick_ns);
	ret->memory = number_of(files->meminfo, "MemTotal", 1024);
	ret->available = number_of(files->meminfo, "MemAvailable", 1024);
	total = number_of(files->meminfo, "SwapTotal", 1024);
	available = number_of(files->meminfo, "SwapFree", 1024);
	ret->swap_used = total >= available && available != METRIC_UNKNOWN ? total - available : METRIC_UNKNOWN;
	ret->read_bytes = metric_word(files->vmstat, "pgpgin", 1024); /* in KiB, from all block devices */
	ret->written_bytes = metric_word(files->vmstat, "pgpgout", 1024);
	take_net(files->net_dev, ret);
	ret->cpu_stalled_ns = stalled_ns(files->cpu_pressure);
	ret->memory_stalled_ns = stalled_ns(files->memory_pressure);
	ret->io_stalled_ns = stalled_ns(files->io_pressure);
	return 0;
}
