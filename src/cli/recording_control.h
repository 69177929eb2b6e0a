/* SPDX-License-Identifier: MIT */
/* recording_control.h - a recording is paused, resumed, and asked how it is. Private to recording_run.c. */
#ifndef PROBING_CLI_RECORDING_CONTROL_H
#define PROBING_CLI_RECORDING_CONTROL_H

#include "src/cli/recording_run.h"

/* Time that was recorded up to now: pauses do not count. */
uint64_t recording_recorded_ns(const struct recording *recording);

/* Errors are left in recording->error. What was sampled before is taken first. */
void recording_pause(struct recording *recording);
void recording_resume(struct recording *recording);

/* The end of a recording ends its pause, too. */
void recording_end_pause(struct recording *recording);

/* Do what has come through the FIFO. Returns whether to end. */
bool recording_obey(struct recording *recording);

/* Answer those who asked for a flush, when it is in the file. To be called before a flush of our own. */
void recording_answer_flush(struct recording *recording);

#endif
