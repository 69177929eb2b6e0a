/* SPDX-License-Identifier: MIT */
/* switch_rate.h - how often threads come to a processor, as far as they have lived. Private. */
#ifndef PROBING_CAPTURE_SWITCH_RATE_H
#define PROBING_CAPTURE_SWITCH_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * switch_rate_is_high - do processes switch so often that events of their threads would cost more than events of processors?
 * By all of their lives: of one that has just begun nothing is known yet, and that is no.
 * Source: /proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst of Linux 6.12.
 */
bool switch_rate_is_high(const pid_t *pids, size_t n_pids);

#endif
