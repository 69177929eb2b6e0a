/* SPDX-License-Identifier: MIT */
/* live_recording.h - a process is recorded for a while, so that it can be shown as a recording is. */
#ifndef PROBING_CLI_LIVE_RECORDING_H
#define PROBING_CLI_LIVE_RECORDING_H

#include <sys/types.h>

#include "base/private_folder.h"

struct live_recording { /* zeros: none, which is harmless to end */
	struct private_folder folder;
	char *path;
};

/* live_folder - a private folder in $TMPDIR or /tmp, and a path in it, "live.db". @ret: ended with live_recording_done().
 * A signal that ends the process removes both. Negative errno. */
int live_folder(struct live_recording *ret);

/*
 * live_recording_make - record a process, with the progress line of record on a terminal. Ctrl-C ends it early.
 * @ret: ended with live_recording_done(), which removes the file, also after a failure.
 * Returns 0, or prints a message and returns an exit status.
 */
int live_recording_make(pid_t pid, double seconds, struct live_recording *ret);
void live_recording_done(struct live_recording *live);

#endif
