/* SPDX-License-Identifier: MIT */
/* fuzz_control_line.c - what somebody writes into the FIFO of a recorder.
 *
 * Whatever it is, each line ends, holds nothing a terminal obeys, and is a command only as such.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct control_line *line, enum control_command command)
{
	size_t n = strnlen(line->text, sizeof line->text);

	if (n == sizeof line->text || command > CONTROL_UNKNOWN)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line->text[i] < ' ')
			abort();
	if (command == CONTROL_STOP && !strstr(line->text, "stop"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct control_line line = { .n = 0 };
	enum control_command command;

	for (size_t i = 0; i < n_bytes; i++)
		if (control_line_take(&line, (char)data[i], &command))
			check(&line, command);
	return 0;
}
