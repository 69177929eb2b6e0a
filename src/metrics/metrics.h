/* SPDX-License-Identifier: MIT */
/* metrics.h - memory, CPU time and I/O of processes and of the machine, from /proc.
 *
 * Nothing of a process is opened but its files in /proc, and nothing is kept between two calls. Counters are totals since the
 * start of the process or of the machine: the difference of two rows is the use between them.
 * Source: proc(5), Documentation/accounting/psi.rst and Documentation/filesystems/proc.rst of Linux 6.12.
 */
#ifndef PROBING_METRICS_H
#define PROBING_METRICS_H

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

/* ---- Processes and the machine ---- */

/*
 * metrics_read_process - one process now.
 * @ret: numbers that its kernel does not have, or hides, are METRIC_UNKNOWN.
 * Errors: -ESRCH it has ended, or is a zombie; -ENOMEM; those of open(2) and read(2).
 */
int metrics_read_process(pid_t pid, struct process_usage_row *ret);

/* metrics_read_machine - the machine now. Errors: -ENOMEM; those of open(2) and read(2) of /proc/stat. */
int metrics_read_machine(struct machine_usage_row *ret);

/*
 * The parsers of both, for untrusted bytes. Each text ends with NUL; NULL: the file could not be read.
 * Leave pid, host and time_ns alone. -EBADMSG: @stat or @status is no such file. @tick_ns: a clock tick of "stat".
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
