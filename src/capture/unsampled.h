/* SPDX-License-Identifier: MIT */
/* unsampled.h - CPU time in the kernel's account that is in no sample of a capture. Private. */
#ifndef PROBING_CAPTURE_UNSAMPLED_H
#define PROBING_CAPTURE_UNSAMPLED_H

#include "src/capture/capture_private.h"

/*
 * unsampled_begin - account for these processes from now on, and for the children that they start.
 * No effect if weights are not CPU time. Errors: -ENOMEM.
 */
int unsampled_begin(struct capture *capture, const struct capture_options *options, const pid_t *pids, size_t n_pids);

/* unsampled_restart - account from now on. Samples from before (since_ns) do not count. Errors: -ENOMEM. */
int unsampled_restart(struct capture *capture);

/* Time between the two does not count. */
void unsampled_pause(struct capture *capture);
void unsampled_resume(struct capture *capture);

/* unsampled_add - account for one more process, which is sampled from now on. Errors: -ENOMEM. */
int unsampled_add(struct capture *capture, pid_t pid);

/* Whether to record switches along with samples, to find threads that run for less than a period. */
bool unsampled_may_time_runs(const struct capture *capture, const struct capture_options *options);

/* unsampled_note - any event that has been read. Errors: -ENOMEM. */
int unsampled_note(struct capture *capture, const struct capture_event *event);

/*
 * unsampled_put_before - if a thread ends without a sample, return its time before its end.
 * @ret: replaced by that time; the event itself comes next.
 */
void unsampled_put_before(struct capture *capture, struct capture_event *ret);

/* Count a returned sample. */
void unsampled_count(struct capture *capture, const struct sample *sample);

/* Sampling has just been stopped, and its events are still open. */
void unsampled_stop(struct capture *capture);

/*
 * unsampled_take - after all samples: the missing time, of one process after the other.
 * Returns whether ret was filled.
 */
bool unsampled_take(struct capture *capture, struct capture_event *ret);

#endif
