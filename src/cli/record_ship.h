/* SPDX-License-Identifier: MIT */
/* record_ship.h - record --to: a process beside the recorder that sends the recording (verb_ship.c). */
#ifndef PROBING_CLI_RECORD_SHIP_H
#define PROBING_CLI_RECORD_SHIP_H

#include <sys/types.h>

/*
 * record_ship - start "probing ship PATH --to URL" in a session of its own. It follows the recording, and goes on after the
 * recorder has ended, until all has been sent: the recorder never waits for it. Its messages are in PATH.ship.log.
 * @path: of the recording, which exists.
 * @ret:  its PID.
 * Errors: those of new_file_open_log(); what posix_spawn(3) reports.
 */
int record_ship(const char *path, const char *url, pid_t *ret);

#endif
