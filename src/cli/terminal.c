/* SPDX-License-Identifier: MIT */
/* terminal.c - width and colours of the terminal. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/cli/cli.h"

enum { MAX_COLUMNS = 100000 };

/* COLUMNS, if it is a valid width. */
static unsigned asked_for(void)
{
	const char *text = getenv("COLUMNS");
	char *end;
	long columns = text ? strtol(text, &end, 10) : 0;

	return text && *end == '\0' && columns > 0 && columns <= MAX_COLUMNS ? (unsigned)columns : 0;
}

unsigned cli_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0)
		return asked_for();
	return size.ws_col > 0 ? size.ws_col : 80; /* the terminal does not know its width */
}

bool cli_colour(int fd)
{
	const char *refused = getenv("NO_COLOR"), *kind = getenv("TERM");

	if (refused && refused[0])
		return false;
	return isatty(fd) && kind && strcmp(kind, "dumb") != 0;
}
