/* SPDX-License-Identifier: MIT */
/* poller.h - threads polled on a timer, without perf_event_open(2). Private.
 *
 * It reads the CPU time of each thread from /proc. A thread that is running gives
 * a sample whose weight is the time since its last one, with neither registers nor stack:
 * its memory shows its present frames.
 */
#ifndef PROBING_CAPTURE_POLLER_H
#define PROBING_CAPTURE_POLLER_H

#include "src/capture/capture.h"

struct poller;

/*
 * poller_attach - poll all threads of running processes, and children they start from now on.
 * Skips processes that have ended; -ESRCH if all have.
 * @ret: ended with poller_free().
 * Errors: -ESRCH; -EINVAL the rate; -ENOMEM; what timerfd_create(2) reports.
 */
int poller_attach(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct poller **ret);

/* poller_add - poll one more running process; no effect if it is polled already. -ESRCH, -ENOMEM. */
int poller_add(struct poller *poller, pid_t pid);

/*
 * poller_launch - the same of a child, from its coming exec on. Unless children are not followed, this process becomes
 * the parent of its descendants whose own parent ends, until poller_free().
 */
int poller_launch(const struct capture_options *options, pid_t child, struct poller **ret);

/* A process that this one has become the parent of, and has to wait for; returns each once. 0: none. */
pid_t poller_take_orphan(struct poller *poller);

void poller_free(struct poller *poller);

/* Readable when a tick is due or not complete yet. Borrowed. */
int poller_fd(const struct poller *poller);

/* poller_next - as capture_next(); reads a thread's time when it returns its sample. */
int poller_next(struct poller *poller, struct capture_event *ret);

/*
 * poller_pause - one last tick, for the time that threads have used up to now, and no more until
 * poller_resume(). Time used meanwhile does not count. -ENOMEM, and what timerfd_settime(2) reports.
 */
void poller_pause(struct poller *poller);
int poller_resume(struct poller *poller);

/* One last tick, and no more. */
void poller_stop(struct poller *poller);

void poller_read_counts(const struct poller *poller, struct capture_counts *ret);

#endif
