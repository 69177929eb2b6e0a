/* SPDX-License-Identifier: MIT */
/* cgroup_usage.c - cgroup_usage: use, limits and throttling of the cgroups of processes, and of their ancestors. */
#include <stdio.h>
#include <string.h>

#include "src/metrics/sources.h"

/* Version 1 has a number near the largest for "no limit", rounded down to a page. */
#define V1_NO_LIMIT (INT64_MAX & ~INT64_C(0xfffff))

/* A file that has one number, or "max", which is no limit. */
static int64_t number_in(const char *text)
{
	unsigned long long number;

	return text && text[0] != '-' && sscanf(text, "%20llu", &number) == 1 ? metric_scaled(number, 1)
									      : METRIC_UNKNOWN;
}

static int64_t limit_in(const char *text)
{
	int64_t number = number_in(text);

	return number >= V1_NO_LIMIT ? METRIC_UNKNOWN : number;
}

/* io.stat: "8:0 rbytes=1 wbytes=2 rios=3 ..."; io_service_bytes: "8:0 Read 1" and so on. Sums over devices. */
static int64_t sum_of(const char *text, const char *key)
{
	int64_t sum = text ? 0 : METRIC_UNKNOWN;

	for (const char *at = text; at && (at = strstr(at, key)) != NULL; at += strlen(key)) {
		unsigned long long number;

		if (sscanf(at + strlen(key), "%20llu", &number) == 1)
			sum = metric_sum(sum, metric_scaled(number, 1));
	}
	return sum;
}

static void parse_v2(const struct cgroup_files *files, struct cgroup_row *ret)
{
	unsigned long long quota, period;

	ret->cpu_ns = metric_word(files->cpu_stat, "usage_usec", 1000);
	ret->user_ns = metric_word(files->cpu_stat, "user_usec", 1000);
	ret->system_ns = metric_word(files->cpu_stat, "system_usec", 1000);
	ret->throttled_ns = metric_word(files->cpu_stat, "throttled_usec", 1000);
	ret->quota_us = ret->period_us = METRIC_UNKNOWN;
	if (files->cpu_max && files->cpu_max[0] != '-' &&
	    sscanf(files->cpu_max, "%20llu %20llu", &quota, &period) == 2) {
		ret->quota_us = metric_scaled(quota, 1);
		ret->period_us = metric_scaled(period, 1);
	}
	ret->limit_hits = metric_word(files->memory_events, "max", 1);
	ret->oom_kills = metric_word(files->memory_events, "oom_kill", 1);
	ret->read_bytes = sum_of(files->io, "rbytes=");
	ret->written_bytes = sum_of(files->io, "wbytes=");
}

static void parse_v1(const struct cgroup_files *files, uint64_t tick_ns, struct cgroup_row *ret)
{
	ret->cpu_ns = number_in(files->cpu_usage);
	ret->user_ns = metric_word(files->cpu_times, "user", tick_ns);
	ret->system_ns = metric_word(files->cpu_times, "system", tick_ns);
	ret->throttled_ns = metric_word(files->cpu_stat, "throttled_time", 1);
	ret->quota_us = number_in(files->cpu_quota);
	ret->period_us = number_in(files->cpu_period);
	ret->limit_hits = number_in(files->memory_events); /* memory.failcnt */
	ret->oom_kills = metric_word(files->memory_high, "oom_kill", 1);
	ret->read_bytes = sum_of(files->io, "Read ");
	ret->written_bytes = sum_of(files->io, "Write ");
}

void cgroup_parse(const struct cgroup_files *files, uint64_t tick_ns, struct cgroup_row *ret)
{
	if (files->is_v2)
		parse_v2(files, ret);
	else
		parse_v1(files, tick_ns, ret);
	ret->periods = metric_word(files->cpu_stat, "nr_periods", 1);
	ret->throttled_periods = metric_word(files->cpu_stat, "nr_throttled", 1);
	ret->memory = number_in(files->memory);
	ret->memory_limit = limit_in(files->memory_limit);
	ret->memory_high = files->is_v2 ? limit_in(files->memory_high) : METRIC_UNKNOWN;
	ret->swap = number_in(files->swap);
	ret->tasks = number_in(files->tasks);
	ret->tasks_limit = limit_in(files->tasks_limit);
}

static void read_v2(struct metrics *metrics, struct kept_cgroup *group, struct cgroup_files *ret)
{
	/* pressure.c has the first three files. */
	*ret = (struct cgroup_files){
		.is_v2 = true,
		.cpu_stat = cgroup_file(metrics, group, CGROUP_V2, 3, "cpu.stat"),
		.cpu_max = cgroup_file(metrics, group, CGROUP_V2, 4, "cpu.max"),
		.memory = cgroup_file(metrics, group, CGROUP_V2, 5, "memory.current"),
		.memory_limit = cgroup_file(metrics, group, CGROUP_V2, 6, "memory.max"),
		.memory_high = cgroup_file(metrics, group, CGROUP_V2, 7, "memory.high"),
		.swap = cgroup_file(metrics, group, CGROUP_V2, 8, "memory.swap.current"),
		.memory_events = cgroup_file(metrics, group, CGROUP_V2, 9, "memory.events"),
		.tasks = cgroup_file(metrics, group, CGROUP_V2, 10, "pids.current"),
		.tasks_limit = cgroup_file(metrics, group, CGROUP_V2, 11, "pids.max"),
		.io = cgroup_file(metrics, group, CGROUP_V2, 12, "io.stat"),
	};
}

static void read_v1(struct metrics *metrics, struct kept_cgroup *group, struct cgroup_files *ret)
{
	*ret = (struct cgroup_files){
		.cpu_stat = cgroup_file(metrics, group, CGROUP_CPU, 3, "cpu.stat"),
		.cpu_quota = cgroup_file(metrics, group, CGROUP_CPU, 4, "cpu.cfs_quota_us"),
		.cpu_period = cgroup_file(metrics, group, CGROUP_CPU, 5, "cpu.cfs_period_us"),
		.cpu_usage = cgroup_file(metrics, group, CGROUP_CPUACCT, 6, "cpuacct.usage"),
		.cpu_times = cgroup_file(metrics, group, CGROUP_CPUACCT, 7, "cpuacct.stat"),
		.memory = cgroup_file(metrics, group, CGROUP_MEMORY, 8, "memory.usage_in_bytes"),
		.memory_limit = cgroup_file(metrics, group, CGROUP_MEMORY, 9, "memory.limit_in_bytes"),
		.memory_events = cgroup_file(metrics, group, CGROUP_MEMORY, 10, "memory.failcnt"),
		.memory_high = cgroup_file(metrics, group, CGROUP_MEMORY, 11, "memory.oom_control"),
		.tasks = cgroup_file(metrics, group, CGROUP_PIDS, 12, "pids.current"),
		.tasks_limit = cgroup_file(metrics, group, CGROUP_PIDS, 13, "pids.max"),
		.io = cgroup_file(metrics, group, CGROUP_BLKIO, 14, "blkio.throttle.io_service_bytes"),
	};
}

/* A hybrid machine mounts version 2 without controllers: then version 1 has the numbers. */
static bool is_v2(const struct kept_cgroup *group)
{
	return group->controllers == CGROUP_V2;
}

static int put_group(const struct metrics *metrics, const struct metrics_moment *moment, const char *path,
		     const struct cgroup_row *now, const struct metric_sink *sink)
{
	bool has_quota = now->quota_us != METRIC_UNKNOWN && now->period_us > 0;
	const struct metric_value row[] = {
		metric_real(moment->seconds),
		metric_text(path),
		metric_integer(now->cpu_ns),
		metric_integer(now->user_ns),
		metric_integer(now->system_ns),
		metric_ratio(has_quota ? now->quota_us : METRIC_UNKNOWN, (double)now->period_us),
		metric_integer(now->periods),
		metric_integer(now->throttled_periods),
		metric_integer(now->throttled_ns),
		metric_integer(now->memory),
		metric_integer(now->memory_limit),
		metric_integer(now->memory_high),
		metric_integer(now->swap),
		metric_integer(now->limit_hits),
		metric_integer(now->oom_kills),
		metric_integer(now->tasks),
		metric_integer(now->tasks_limit),
		metric_integer(now->read_bytes),
		metric_integer(now->written_bytes),
		metric_text(metrics->host),
	};

	return sink->put(sink->data, "cgroup_usage", row, N_ELEMENTS(row));
}

/* A group that has just been removed has none of its files. */
static bool has_any(const struct cgroup_files *files)
{
	return files->cpu_stat || files->cpu_usage || files->memory || files->tasks || files->io;
}

static int put(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink)
{
	int r;

	r = cgroup_find(metrics, moment);
	for (size_t i = 0; i < metrics->n_cgroups && r >= 0; i++) {
		struct kept_cgroup *group = &metrics->cgroups[i];
		struct cgroup_files files;
		struct cgroup_row now;

		if (is_v2(group))
			read_v2(metrics, group, &files);
		else
			read_v1(metrics, group, &files);
		if (!has_any(&files))
			continue;
		cgroup_parse(&files, metrics->tick_ns, &now);
		r = put_group(metrics, moment, group->path, &now, sink);
	}
	return r;
}

const struct metric_source metric_cgroup_usage = { "cgroup_usage", put };
