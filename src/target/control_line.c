/* SPDX-License-Identifier: MIT */
/* control_line.c - see target.h.
 *
 * Input is untrusted: a line is never longer than its buffer, and an unknown command is
 * shown to users as text.
 */
#include "src/target/target.h"

#include <string.h>

#include "base/util.h"

static const char *const words[] = {
	[CONTROL_PAUSE] = "pause", [CONTROL_RESUME] = "resume", [CONTROL_FLUSH] = "flush",
	[CONTROL_STOP] = "stop",   [CONTROL_STATUS] = "status",
};

static enum control_command parse(const char *line)
{
	size_t n;

	line += strspn(line, " \t");
	n = strcspn(line, " \t\r");
	if (line[n + strspn(line + n, " \t\r")] != '\0')
		return CONTROL_UNKNOWN;
	for (size_t i = 0; i < N_ELEMENTS(words); i++)
		if (strlen(words[i]) == n && memcmp(line, words[i], n) == 0)
			return (enum control_command)i;
	return CONTROL_UNKNOWN;
}

/* Make foreign text safe for a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

bool control_line_take(struct control_line *line, char c, enum control_command *ret)
{
	if (c != '\n') {
		if (line->n + 1 < sizeof line->text)
			line->text[line->n++] = c;
		else
			line->is_cut = true;
		return false;
	}
	line->text[line->n] = '\0';
	if (!line->is_cut && line->text[strspn(line->text, " \t\r")] == '\0') {
		line->n = 0;
		return false;
	}
	*ret = line->is_cut ? CONTROL_UNKNOWN : parse(line->text);
	make_printable(line->text);
	line->n = 0;
	line->is_cut = false;
	return true;
}
