/* SPDX-License-Identifier: MIT */
/* poll_parse.h - parsers for the files of /proc that a poll tick reads, from memory.
 *
 * A thread's name may contain anything, and so may these texts.
 */
#ifndef PROBING_CAPTURE_POLL_PARSE_H
#define PROBING_CAPTURE_POLL_PARSE_H

#include <stdint.h>
#include <sys/types.h>

enum { POLL_NAME_BYTES = 64 };

/* Fields of /proc/PID/task/TID/stat. */
struct poll_stat {
	char name[POLL_NAME_BYTES]; /* truncated */
	char state;
	uint64_t ticks; /* of CPU time, user and kernel together; _SC_CLK_TCK a second */
	unsigned cpu;   /* that it last ran on */
	/* Distinguishes successive programs of a process: derived from the addresses of its code, data and stack,
	 * which exec(2) chooses again. 0: unknown. */
	uint64_t image;
};

/* poll_parse_stat - Errors: -EBADMSG. Source: proc_pid_stat(5). */
int poll_parse_stat(const char *text, struct poll_stat *ret);

/*
 * poll_parse_schedstat - nanoseconds of CPU time, and how often it was put on a CPU. -EBADMSG.
 * Source: Documentation/scheduler/sched-stats.rst, Linux 6.12.
 */
int poll_parse_schedstat(const char *text, uint64_t *ret_ns, uint64_t *ret_n_runs);

/*
 * poll_parse_status - how often it left a CPU: to wait for something, and because another was to
 * run. -EBADMSG. Source: proc_pid_status(5).
 */
int poll_parse_status(const char *text, uint64_t *ret_n_waits, uint64_t *ret_n_preempted);

/* poll_parse_loadavg - the number given to the newest thread of this PID namespace. -EBADMSG.
 * Source: proc_loadavg(5). */
int poll_parse_loadavg(const char *text, pid_t *ret);

/*
 * poll_parse_child - the next number of a "children" file.
 * @text: advances past it. Returns 0 at the end, and for other text.
 */
pid_t poll_parse_child(const char **text);

#endif
