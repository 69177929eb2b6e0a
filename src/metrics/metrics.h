/* SPDX-License-Identifier: MIT */
/* metrics.h - memory, CPU time and I/O of processes, their cgroups and the machine, from /proc and /sys/fs/cgroup; GPUs.
 *
 * Each table has a file of its own here, and a line in metrics.c. Counters are totals since the start of the process, or since
 * boot: the difference of two rows is the use between them. Files that are read again and again stay open, which halves the cost.
 * Source: proc(5), Documentation/accounting/psi.rst, Documentation/filesystems/proc.rst, Documentation/admin-guide/cgroup-v1,
 * cgroup-v2.rst and iostats.rst of Linux 6.12.
 */
#ifndef PROBING_METRICS_H
#define PROBING_METRICS_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/metrics/gpu.h"
#include "src/store/store.h"

/* ---- Rows of any table ---- */

/* Receives rows, each with a value for every column of its table. put: negative errno ends the reading. */
struct metric_sink {
	int (*put)(void *data, const char *table, const struct metric_value *values, size_t n);
	void *data;
};

static inline struct metric_value metric_integer(int64_t number)
{
	return number == METRIC_UNKNOWN ? (struct metric_value){ .type = METRIC_NULL }
					: (struct metric_value){ .type = METRIC_INTEGER, .integer = number };
}

static inline struct metric_value metric_real(double number)
{
	return (struct metric_value){ .type = METRIC_REAL, .real = number };
}

/* A number in a larger unit. */
static inline struct metric_value metric_ratio(int64_t number, double unit)
{
	return number == METRIC_UNKNOWN ? (struct metric_value){ .type = METRIC_NULL }
					: metric_real((double)number / unit);
}

/* NULL: it is NULL. The text is borrowed. */
static inline struct metric_value metric_text(const char *text)
{
	return text ? (struct metric_value){ .type = METRIC_TEXT, .text = text }
		    : (struct metric_value){ .type = METRIC_NULL };
}

/* ---- Reading ---- */

struct metrics;

/* metrics_new - @ret: ended with metrics_free(). -ENOMEM. */
int metrics_new(struct metrics **ret);
void metrics_free(struct metrics *metrics);
void metrics_freep(struct metrics **metrics);

/* A moment, and the processes that are looked at. */
struct metrics_moment {
	double seconds; /* the timestamp of its rows */
	const pid_t *pids;
	size_t n_pids;
};

/*
 * metrics_put - the rows of a table; NULL: of all tables that are not of GPUs. A file that is missing, or may not be read, costs its
 * values or rows only. Errors: -ENOMEM; those of the sink; -ENOENT @table is none of them.
 */
int metrics_put(struct metrics *metrics, const char *table, const struct metrics_moment *moment,
		const struct metric_sink *sink);

/* metrics_saw_end - whether a process had ended at the last look at process_usage; its parent may not have waited for it. */
bool metrics_saw_end(const struct metrics *metrics, pid_t pid);

/* GPUs: a look is asked for at one moment, and its rows come later. All do nothing before metrics_start_gpu(). */

/* metrics_start_gpu - start the process that reads GPUs, and ask it for a look: see gpu_reader_start(). */
int metrics_start_gpu(struct metrics *metrics);
/* metrics_ask_gpu - ask for a look, unless one is under way. @seconds: the timestamp of its rows. */
void metrics_ask_gpu(struct metrics *metrics, double seconds);
/* metrics_put_gpu - the rows of a look that has come since. Errors: those of the sink. */
int metrics_put_gpu(struct metrics *metrics, const struct metric_sink *sink);
/* metrics_gpu_trouble - why there are no rows of GPUs from some time on; NULL: there are, or the machine has none. Borrowed. */
const char *metrics_gpu_trouble(struct metrics *metrics);

/* ---- Processes and the machine ---- */

/* Numbers that the kernel does not have, or hides, are METRIC_UNKNOWN. */
struct process_usage_row {
	int64_t rss, anonymous, swap, virtual, threads, user_ns, system_ns, major_faults, read_bytes, written_bytes,
		read_chars, written_chars;
};
struct machine_usage_row {
	int64_t user_ns, system_ns, idle_ns, iowait_ns, steal_ns, memory, available, swap_used, read_bytes,
		written_bytes, received_bytes, sent_bytes, cpu_stalled_ns, memory_stalled_ns, io_stalled_ns;
};

/* metrics_read_process - one process now. -ESRCH it has ended, or is a zombie; -ENOMEM; those of open(2) and read(2). */
int metrics_read_process(struct metrics *metrics, pid_t pid, struct process_usage_row *ret);

/* metrics_read_machine - the machine now. -ENOMEM; those of open(2) and read(2) of /proc/stat. */
int metrics_read_machine(struct metrics *metrics, struct machine_usage_row *ret);

/*
 * The parsers of both, for untrusted bytes. Each text ends with NUL; NULL: the file could not be read.
 * -EBADMSG: @stat or @status is no such file. @tick_ns: a clock tick of "stat".
 */
struct process_files {
	const char *stat, *status, *io;
};
int metrics_parse_process(const struct process_files *files, uint64_t tick_ns, struct process_usage_row *ret);

struct machine_files {
	const char *stat, *meminfo, *vmstat, *net_dev;
	const char *cpu_pressure, *memory_pressure, *io_pressure;
};
int metrics_parse_machine(const struct machine_files *files, uint64_t tick_ns, struct machine_usage_row *ret);

#endif
