/* SPDX-License-Identifier: MIT */
/* counters.h - what a process uses, by counters of the kernel. */
#ifndef PROBING_CLI_CLUSTER_COUNTERS_H
#define PROBING_CLI_CLUSTER_COUNTERS_H

#include <sys/types.h>

#include "src/cluster/cluster.h"

/* Totals since the start of a process, of its control groups and of the machine; negative: unknown. */
struct counters {
	double cpu_s, queued_s, throttled_s, stolen_s;
	double limit_cpus; /* the least quota of its control groups; unknown: they have none */
};

void counters_read(pid_t pid, struct counters *ret);

/*
 * counters_add_groups - add throttled_s and limit_cpus of control groups and their ancestors; -1 before: unknown.
 * @root: where they are mounted, "/sys/fs/cgroup". @groups: a text as /proc/PID/cgroup has it.
 */
void counters_add_groups(const char *root, const char *groups, struct counters *counters);

/* counters_usage - what was used between counters that were read before, and now. @seconds: the time between. */
void counters_usage(pid_t pid, const struct counters *before, double seconds, struct rank_usage *ret);

#endif
