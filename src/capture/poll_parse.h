/* SPDX-License-Identifier: MIT */
/* poll_parse.h - the files of /proc that a look reads, as text in memory.
 *
 * A thread's name may hold anything, and so may these texts.
 */
#ifndef PROBING_CAPTURE_POLL_PARSE_H
#define PROBING_CAPTURE_POLL_PARSE_H

#include <stdint.h>
#include <sys/types.h>

enum { POLL_NAME_BYTES = 64 };

/* What /proc/PID/task/TID/stat says. */
struct poll_stat {
	char name[POLL_NAME_BYTES]; /* cut where it is longer */
	char state;
	uint64_t ticks; /* of CPU time, user and kernel together; _SC_CLK_TCK a second */
	unsigned cpu;   /* that it last ran on */
	/* Tells one program of a process from the next: made of where its code, data and stack
	 * begin, which exec(2) chooses anew. 0: not told. */
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
 * @text: goes on behind it. Returns 0 at the end, and where there is something else.
 */
pid_t poll_parse_child(const char **text);

#endif
