/* SPDX-License-Identifier: MIT */
/* sources.h - the tables of metrics, each in its own file, and what they share. Private. */
#ifndef PROBING_METRICS_SOURCES_H
#define PROBING_METRICS_SOURCES_H

#include <stdbool.h>

#include "base/id_map.h"
#include "src/metrics/metrics.h"

struct metric_source {
	const char *table;
	int (*put)(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink);
};
extern const struct metric_source metric_process_usage, metric_machine_usage, metric_cgroup_usage, metric_pressure,
	metric_disk_usage, metric_network_usage;

/* ---- Numbers ---- */

/* Numbers that no kernel counts are a file's mistake; the product of two must not overflow. Else METRIC_UNKNOWN. */
int64_t metric_scaled(uint64_t number, uint64_t unit);
int64_t metric_sum(int64_t a, int64_t b);
/* The number of a line "KEY NUMBER", in @unit; @text NULL: unknown. */
int64_t metric_word(const char *text, const char *key, uint64_t unit);

/* ---- Files that stay open ---- */

enum { METRIC_N_TEXTS = 16, MACHINE_N_FILES = 8, PROCESS_N_FILES = 3, CGROUP_N_FILES = 16 };

struct kept_process {
	pid_t pid;
	int fds[PROCESS_N_FILES]; /* -1: not open */
	uint64_t look;            /* the last one that saw it */
	bool has_ended;           /* it had no memory, at the last look: a zombie stays in /proc */
	uint64_t grouped;         /* the look that read its cgroups; 0: none has */
	uint64_t networked;       /* the look that read its network namespace; 0: none has */
	uint64_t network;         /* inode of its network namespace; 0: unknown */
};

struct kept_cgroup {
	char *path;           /* as /proc/PID/cgroup has it */
	unsigned controllers; /* bits of enum cgroup_controller */
	unsigned missing;     /* bits of files that it does not have */
	int fds[CGROUP_N_FILES];
	uint64_t look; /* the last one at which a process was in it, or below it */
};

struct cgroup_mount {
	unsigned controllers;
	char *root, *folder;
};

struct metrics {
	char *texts[METRIC_N_TEXTS];
	size_t allocated[METRIC_N_TEXTS];
	char host[65];
	uint64_t tick_ns;
	uint64_t look; /* number of this look, from 1 */
	int machine[MACHINE_N_FILES];
	struct kept_process *processes;
	size_t n_processes, processes_allocated;
	struct id_map by_pid;
	size_t max_kept; /* processes whose files stay open */
	struct kept_cgroup *cgroups;
	size_t n_cgroups, cgroups_allocated;
	struct cgroup_mount *mounts;
	size_t n_mounts, mounts_allocated;
	struct gpu_reader *gpu;   /* NULL: not asked for */
	double gpu_asked_seconds; /* timestamp of the look that is under way */
	bool has_gpu_devices;     /* their rows are put */
};

/*
 * metric_read_fd - a whole file from its start, NUL-terminated, in text buffer @slot until the slot's next use.
 * NULL: it cannot be read, or is larger than 1 MB (errno says why).
 */
const char *metric_read_fd(struct metrics *metrics, unsigned slot, int fd);

/* metric_read_kept - the same of a file that stays open. @fd: -1: it is opened first; -1 again after a failure. */
const char *metric_read_kept(struct metrics *metrics, unsigned slot, const char *path, int *fd);

/* metric_read_once - the same of a file that is closed again. */
const char *metric_read_once(struct metrics *metrics, unsigned slot, const char *path);

/* metric_process - what is kept of a process; it is added if it is new. NULL: out of memory. Valid until the next call. */
struct kept_process *metric_process(struct metrics *metrics, pid_t pid);

/* Files of the machine. */
enum machine_file {
	FILE_STAT,
	FILE_MEMINFO,
	FILE_VMSTAT,
	FILE_NET_DEV,
	FILE_PRESSURE_CPU,
	FILE_PRESSURE_MEMORY,
	FILE_PRESSURE_IO,
	FILE_DISKSTATS
};
const char *metric_machine_file(struct metrics *metrics, enum machine_file file);

/* ---- cgroup.c ---- */

/* Version 2 has all in one hierarchy; of version 1, each of these may have its own. */
enum cgroup_controller {
	CGROUP_CPU = 1,
	CGROUP_CPUACCT = 2,
	CGROUP_MEMORY = 4,
	CGROUP_PIDS = 8,
	CGROUP_BLKIO = 16,
	CGROUP_V2 = 32
};

/* cgroup_parse_mounts - fill the metrics' mounts by a text like /proc/self/mountinfo. -ENOMEM. */
int cgroup_parse_mounts(struct metrics *metrics, char *text);

/* cgroup_find - note the cgroups of the moment's processes and their ancestors; metrics->cgroups has them. -ENOMEM. */
int cgroup_find(struct metrics *metrics, const struct metrics_moment *moment);

/* cgroup_add - note the groups of a text like /proc/PID/cgroup. -ENOMEM. */
int cgroup_add(struct metrics *metrics, char *text);

/*
 * cgroup_file - a file of a group, in the controller's hierarchy. @file: below CGROUP_N_FILES, another one for each name.
 * NULL: there is none.
 */
const char *cgroup_file(struct metrics *metrics, struct kept_cgroup *cgroup, enum cgroup_controller controller,
			unsigned file, const char *name);
void cgroup_done(struct metrics *metrics);

/* ---- Parsers, for untrusted bytes ---- */

struct pressure_row { /* METRIC_UNKNOWN, and NAN: the kernel has none */
	int64_t ns;
	double avg10, avg60, avg300; /* percent */
};
/* pressure_parse - the line of that kind ("some", "full"). False: there is none. */
bool pressure_parse(const char *text, const char *kind, struct pressure_row *ret);

struct disk_row {
	char device[64];
	int64_t reads, read_bytes, read_ns, writes, written_bytes, write_ns, in_flight, busy_ns;
};
/* disk_parse - a line of /proc/diskstats. False: it is none. */
bool disk_parse(const char *line, struct disk_row *ret);

struct network_row {
	char interface[64];
	int64_t received_bytes, received_packets, receive_errors, receive_drops, sent_bytes, sent_packets, send_errors,
		send_drops;
};
/* network_parse - a line of /proc/net/dev. False: it is none. */
bool network_parse(const char *line, struct network_row *ret);

struct cgroup_row {
	int64_t cpu_ns, user_ns, system_ns, quota_us, period_us, periods, throttled_periods, throttled_ns, memory,
		memory_limit, memory_high, swap, limit_hits, oom_kills, tasks, tasks_limit, read_bytes, written_bytes;
};
/* Texts of a group's files; NULL: there is none. */
struct cgroup_files {
	bool is_v2;
	const char *cpu_stat, *cpu_max, *cpu_quota, *cpu_period, *cpu_usage, *cpu_times;
	const char *memory, *memory_limit, *memory_high, *swap, *memory_events;
	const char *tasks, *tasks_limit, *io;
};
void cgroup_parse(const struct cgroup_files *files, uint64_t tick_ns, struct cgroup_row *ret);

#endif
