/* SPDX-License-Identifier: MIT */
/* poller.h - threads looked at on a timer, where perf_event_open(2) is not to be had. Private.
 *
 * Of each thread the CPU time that it has used is read from /proc. One that is met running gives
 * a sample that weighs what it used since its last one, with neither registers nor stack: where
 * it is by now has to be read from its memory.
 */
#ifndef PROBING_CAPTURE_POLLER_H
#define PROBING_CAPTURE_POLLER_H

#include "src/capture/capture.h"

struct poller;

/*
 * poller_attach - look at all threads of running processes, and at children they start from now on.
 * Processes that have ended by now are passed over; -ESRCH where all have.
 * @ret: ended with poller_free().
 * Errors: -ESRCH; -EINVAL the rate; -ENOMEM; whatever timerfd_create(2) reports.
 */
int poller_attach(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct poller **ret);

/* poller_add - look at one more running process; nothing happens where it is looked at. -ESRCH, -ENOMEM. */
int poller_add(struct poller *poller, pid_t pid);

/*
 * poller_launch - the same of a child, from its coming exec on. Unless children are not followed, this process becomes the
 * parent of its descendants whose own parent ends, until poller_free().
 */
int poller_launch(const struct capture_options *options, pid_t child, struct poller **ret);

/* A process that this one has become the parent of, and has to wait for: each is told once. 0: there is none. */
pid_t poller_take_orphan(struct poller *poller);

void poller_free(struct poller *poller);

/* Readable when a look is due or not over yet. Borrowed. */
int poller_fd(const struct poller *poller);

/* poller_next - as capture_next(); a thread's time is read when its sample is asked for. */
int poller_next(struct poller *poller, struct capture_event *ret);

/*
 * poller_pause - one last look, which settles what threads have used up to now, and no more until
 * poller_resume(). What they use meanwhile is nobody's. -ENOMEM, and what timerfd_settime(2) reports.
 */
void poller_pause(struct poller *poller);
int poller_resume(struct poller *poller);

/* One last look, and no more. */
void poller_stop(struct poller *poller);

void poller_read_counts(const struct poller *poller, struct capture_counts *ret);

#endif
