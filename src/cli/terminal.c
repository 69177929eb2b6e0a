/* terminal.c - what may be shown where. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/cli/cli.h"

unsigned cli_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col > 0 ? size.ws_col : 80; /* a terminal that does not say */
}

bool cli_colour(int fd)
{
	const char *refused = getenv("NO_COLOR"), *kind = getenv("TERM");

	if (refused && refused[0])
		return false;
	return isatty(fd) && kind && strcmp(kind, "dumb") != 0;
}
