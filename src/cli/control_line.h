/* SPDX-License-Identifier: MIT */
/* control_line.h - parses commands written into a FIFO. */
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

/* State of the next line. Starts as zeros. */
struct control_line {
	char text[CONTROL_MAX_LINE];
	size_t n;
	bool is_cut; /* too long: the rest is skipped */
};

/*
 * control_line_take - add one character.
 * @ret: the command, when the line is complete; its text is in the line until the next call, with
 *       terminal controls made harmless.
 * Returns whether it is complete; false for an empty line.
 */
bool control_line_take(struct control_line *line, char c, enum control_command *ret);

#endif
