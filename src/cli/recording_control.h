/* SPDX-License-Identifier: MIT */
/* recording_control.h - pausing, resuming and querying a recording. Private to recording_run.c. */
#ifndef PROBING_CLI_RECORDING_CONTROL_H
#define PROBING_CLI_RECORDING_CONTROL_H

#include "src/cli/recording_run.h"

/* Time that was recorded up to now: pauses do not count. */
uint64_t recording_recorded_ns(const struct recording *recording);

/* Errors go to recording->error. Takes all earlier samples first. */
void recording_pause(struct recording *recording);
void recording_resume(struct recording *recording);

/* The end of a recording ends its pause, too. */
void recording_end_pause(struct recording *recording);

/* Execute the commands in the FIFO. Returns whether to end. */
bool recording_obey(struct recording *recording);

/* Answer pending flush commands once the data are in the file. Call it before a flush of our own. */
void recording_answer_flush(struct recording *recording);
/* At the end, when all data are in the file; @error: negative: they are not. */
void recording_answer_last(struct recording *recording, int error);

#endif
