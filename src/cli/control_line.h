/* SPDX-License-Identifier: MIT */
/* control_line.h - commands out of what has been written into a FIFO. */
#ifndef PROBING_CLI_CONTROL_LINE_H
#define PROBING_CLI_CONTROL_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum control_command {
	CONTROL_PAUSE,
	CONTROL_RESUME,
	CONTROL_FLUSH,
	CONTROL_STOP,
	CONTROL_STATUS,
	CONTROL_UNKNOWN, /* anything else */
};

enum { CONTROL_MAX_LINE = 256 };

/* What has come of the next line. Begins as zeros. */
struct control_line {
	char text[CONTROL_MAX_LINE];
	size_t n;
	bool is_cut; /* too long: the rest of it is skipped */
};

/*
 * control_line_take - one character more.
 * @ret: the command, when the line is whole; its text is in the line until the next call, with
 *       what a terminal would take for more than text made harmless.
 * Returns whether it is; an empty line is none.
 */
bool control_line_take(struct control_line *line, char c, enum control_command *ret);

#endif
