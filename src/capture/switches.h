/* SPDX-License-Identifier: MIT */
/* switches.h - samples taken as threads leave the processor. Private.
 *
 * That a thread comes and goes is told by records of the events that sample anyway
 * (PERF_RECORD_SWITCH). Where it was is told by events of their own, which need the right to
 * see the kernel, for it is there that a thread leaves. Who has not got that does without them.
 */
#ifndef PROBING_CAPTURE_SWITCHES_H
#define PROBING_CAPTURE_SWITCHES_H

#include "src/capture/events.h"

/* switches_ask - have an event set that has opened nothing yet tell of switches, too. */
void switches_ask(struct event_set *set, enum capture_mode mode);

/*
 * switches_init - decide what to sample switches with; nothing is opened.
 * @beside: the set of which it shall have the threads, already opened: its samples look alike.
 * Ended with events_done(), also after switches_start() has failed.
 */
void switches_init(struct event_set *set, const struct event_set *beside);

/*
 * switches_start - open them for running processes, or for one child before its exec.
 * @system_wide: for all processes; see events_attach_wide().
 * Returns 1; 0 where that is not permitted, or takes more descriptors than there are: set is
 * then empty. Errors: as events_attach().
 */
int switches_start(struct event_set *set, const pid_t *pids, size_t n_pids, bool launch, bool system_wide);

/*
 * switches_clock - a timer that becomes readable together with the rings, some hundred times a
 * second: records of switches wake nobody, and who waits is to be looked at while it does.
 * @epoll_fd: of the rings. @ret: closed by the caller.
 * Errors: what timerfd_create(2) and epoll_ctl(2) report.
 */
int switches_clock(int epoll_fd, int *ret);
void switches_clock_served(int clock);

#endif
