/* SPDX-License-Identifier: MIT */
/* switches.h - samples taken as threads leave the processor. Private.
 *
 * Records of the sampling events report the switches themselves (PERF_RECORD_SWITCH).
 * The stacks come from events of their own, which need the right to see the kernel, because
 * a thread leaves the processor there. Without that right the stacks are missing.
 */
#ifndef PROBING_CAPTURE_SWITCHES_H
#define PROBING_CAPTURE_SWITCHES_H

#include "src/capture/events.h"

/* switches_ask - make an event set that has opened nothing yet report switches, too. */
void switches_ask(struct event_set *set, enum capture_mode mode);

/*
 * switches_init - choose the attributes for sampling switches; opens nothing.
 * @beside: the set with the same threads, already opened: the samples have the same format.
 * Ended with events_done(), also after switches_start() has failed.
 */
void switches_init(struct event_set *set, const struct event_set *beside);

/*
 * switches_start - open them for running processes, or for one child before its exec.
 * @system_wide: for all processes; see events_attach_wide().
 * Returns 1; 0 where that is not permitted, or takes more descriptors than there are: set is
 * then empty. Errors: as events_attach_all().
 */
int switches_start(struct event_set *set, const pid_t *pids, size_t n_pids, bool launch, bool system_wide);

/*
 * switches_clock - a timer that becomes readable together with the rings, some hundred times a
 * second: records of switches do not wake the reader, and a waiting thread must be read during its wait.
 * @epoll_fd: of the rings. @ret: closed by the caller.
 * Errors: what timerfd_create(2) and epoll_ctl(2) report.
 */
int switches_clock(int epoll_fd, int *ret);
void switches_clock_served(int clock);

#endif
