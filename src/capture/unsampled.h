/* SPDX-License-Identifier: MIT */
/* unsampled.h - what the kernel's account of CPU time has more than the samples of a capture. Private. */
#ifndef PROBING_CAPTURE_UNSAMPLED_H
#define PROBING_CAPTURE_UNSAMPLED_H

#include "src/capture/capture_private.h"

/*
 * unsampled_begin - account what these processes use from now on.
 * Nothing happens where weights are not CPU time. Errors: -ENOMEM.
 */
int unsampled_begin(struct capture *capture, const struct capture_options *options, const pid_t *pids, size_t n_pids);

/* The same of one more, which is sampled from now on. Errors: -ENOMEM. */
int unsampled_add(struct capture *capture, pid_t pid);

/* Whether records of switches shall come with the samples, to know what is shorter than the distance of two of them. */
bool unsampled_may_time_runs(const struct capture *capture, const struct capture_options *options);

/* unsampled_note - any event that has been read. Errors: -ENOMEM. */
int unsampled_note(struct capture *capture, const struct capture_event *event);

/*
 * unsampled_put_before - of a thread that ends without having been sampled, its time is given out before its end.
 * @ret: what is given out now, in place of the event, which then waits.
 */
void unsampled_put_before(struct capture *capture, struct capture_event *ret);

/* A sample that is given out. */
void unsampled_count(struct capture *capture, const struct sample *sample);

/* Sampling has just been stopped, and its events are still open. */
void unsampled_stop(struct capture *capture);

/*
 * unsampled_take - all samples have been given out: what is missing, of one process after the other.
 * Returns whether ret was filled.
 */
bool unsampled_take(struct capture *capture, struct capture_event *ret);

#endif
