/* SPDX-License-Identifier: MIT */
/* background.h - a recorder that goes on after its command has returned. */
#ifndef PROBING_CLI_RECORD_BACKGROUND_H
#define PROBING_CLI_RECORD_BACKGROUND_H

struct background {
	int report; /* to the process that waits; -1: none does */
	char *log;  /* the path; NULL: there is none */
};

/*
 * background_begin - continue in a process of a session of its own, with no file open but the standard ones. The
 * calling process stays until that one records, or has ended. It then exits: with 0, after it has printed the
 * recorder's PID and file as one line on stdout; or with the status of the recorder, which has said why. Call it
 * without threads. Errors: negative errno of socketpair(2), fork(2).
 */
int background_begin(struct background *ret);

/*
 * background_leave - the recorder records: the waiting process exits, and later messages go to a new file PATH.log. If that
 * cannot be created, they are discarded.
 * @path: of the recording.
 * Errors: -EPIPE the command was interrupted: no process waits.
 */
int background_leave(struct background *background, const char *path);

/* background_done - remove the log if it is empty. Harmless before background_begin(). */
void background_done(struct background *background);

#endif
