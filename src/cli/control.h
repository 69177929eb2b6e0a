/* SPDX-License-Identifier: MIT */
/* control.h - commands to a recording under way, through a FIFO. */
#ifndef PROBING_CLI_CONTROL_H
#define PROBING_CLI_CONTROL_H

#include <stdbool.h>

#include "base/place.h"
#include "src/cli/control_line.h"

struct control {
	int fd, reply_fd; /* not above 0: none; so zeros are a control that there is none of */
	char *path, *reply_path;
	struct control_fifo {
		struct place place;
		struct stat st;
		bool made; /* by us, so that we remove it */
	} command, reply;
	struct control_line line;
};

/*
 * control_open - open the FIFOs, and create missing ones, for our user alone. Existing ones must belong
 * to our user, and must not be writable by everybody.
 * @paths: "CONTROL" or "CONTROL,REPLY".
 * @ret:   must not move; ended with control_close().
 * Returns 0, or prints a message and returns an exit status.
 */
int control_open(const char *paths, struct control *ret);

/* Removes FIFOs that control_open() created, if they still exist. Zeros the struct. */
void control_close(struct control *control);

/*
 * control_next - the next command that has come.
 * @ret_line: as it was written, for messages; borrowed until the next call.
 * Returns whether there is one. Empty lines are none. Never waits.
 */
bool control_next(struct control *control, enum control_command *ret, const char **ret_line);

/* One line of answer, if there is a reply FIFO; dropped if its reader is too far behind. */
void control_reply(const struct control *control, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
