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
		bool made; /* by us, so that it goes with us */
	} command, reply;
	struct control_line line;
};

/*
 * control_open - open the FIFOs, and make those that are not there, for our user alone. Those that are there must belong
 * to our user, and not everybody may write to them.
 * @paths: "CONTROL" or "CONTROL,REPLY".
 * @ret:   stays where it is; ended with control_close().
 * Returns 0, or an exit status after having said why not.
 */
int control_open(const char *paths, struct control *ret);

/* Removes what control_open() has made, where it still is. Zeros afterwards. */
void control_close(struct control *control);

/*
 * control_next - the next command that has come.
 * @ret_line: as it was written, for messages; borrowed until the next call.
 * Returns whether there is one. Empty lines are none. Never waits.
 */
bool control_next(struct control *control, enum control_command *ret, const char **ret_line);

/* One line of answer, where somebody wants one; dropped when nobody has read so many before. */
void control_reply(const struct control *control, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
